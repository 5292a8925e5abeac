// The turn boundary of one environment: one capture or restore at a time, and a place where requests from outside wait for the boundary.

/** How long nothing may run before a waiting request takes the gap between two steps of an agent for the boundary. */
const idleMs = 100;

export interface Coordinator {
  /** Runs `work` when no capture, restore or other exclusive work runs. */
  exclusive<T>(work: () => Promise<T>): Promise<T>;
  /** As `exclusive`, but not while a tool runs: what a tool writes after a restore would belong to no pair. */
  betweenTools<T>(work: () => Promise<T>): Promise<T>;
  /** Marks a model call or a tool as running; call the result when it ends. */
  enter(what: "model" | "tool"): () => void;
  /** Runs `work` at the next turn boundary, at once when nothing runs. */
  atBoundary<T>(work: () => Promise<T>): Promise<T>;
  /** A turn begins: requests that wait for the boundary run now, unless a tool still runs (the turn is then one inside of it). */
  boundary(): Promise<void>;
}

/** @param settle runs before each exclusive work: finishes what an earlier one had to leave half done */
export function makeCoordinator(settle: () => Promise<void> = async () => {}): Coordinator {
  let tail: Promise<unknown> = Promise.resolve();
  let running = 0;
  let tools = 0;
  const toolsEnded: (() => void)[] = [];
  let waiting: (() => Promise<void>)[] = [];
  let timer: NodeJS.Timeout | undefined;

  const exclusive = <T>(work: () => Promise<T>): Promise<T> => {
    const result = tail.then(settle).then(work);
    tail = result.catch(() => {});
    return result;
  };

  async function drain(): Promise<void> {
    clearTimeout(timer);
    const due = waiting;
    waiting = [];
    for (const work of due) await work();
  }

  function armTimer(): void {
    clearTimeout(timer);
    if (waiting.length > 0 && running === 0) timer = setTimeout(() => void drain(), idleMs);
  }

  async function betweenTools<T>(work: () => Promise<T>): Promise<T> {
    for (;;) {
      if (tools > 0) await new Promise<void>((resolve) => toolsEnded.push(resolve));
      const done = await exclusive(async () => (tools > 0 ? undefined : { value: await work() }));
      if (done !== undefined) return done.value;
    }
  }

  function leaveTool(): void {
    if (--tools > 0) return;
    for (const resolve of toolsEnded.splice(0)) resolve();
  }

  return {
    exclusive,
    betweenTools,
    enter(what) {
      running++;
      if (what === "tool") tools++;
      clearTimeout(timer);
      let left = false;
      return () => {
        if (left) return;
        left = true;
        running--;
        if (what === "tool") leaveTool();
        armTimer();
      };
    },
    atBoundary(work) {
      return new Promise((resolve, reject) => {
        waiting.push(() => work().then(resolve, reject));
        if (running === 0) void drain();
      });
    },
    boundary: async () => {
      if (tools === 0) await drain();
    },
  };
}
