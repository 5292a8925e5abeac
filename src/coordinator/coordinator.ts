// The turn boundary of one environment: one capture or restore at a time, and a place where requests from outside wait for the boundary.

import { AsyncLocalStorage } from "node:async_hooks";
import { RewindError } from "../errors.ts";

/** How long nothing may run before a waiting request takes the gap between two steps of an agent for the boundary. */
const idleMs = 100;

export interface Coordinator {
  /** Runs `work` when no capture, restore or other exclusive work runs. */
  exclusive<T>(work: () => Promise<T>): Promise<T>;
  /** Whether exclusive work runs or waits. */
  isBusy(): boolean;
  /**
   * As `exclusive`, but not while a tool runs: what a tool writes after a restore would belong to no pair. Ends the tools that may be ended.
   * @throws INSIDE_TOOL from inside of a tool, which would wait for itself
   */
  betweenTools<T>(work: () => Promise<T>): Promise<T>;
  /** @throws INSIDE_TOOL from inside of a tool that still runs */
  requireOutside(): void;
  /** Marks a model call or a tool as running; call the result when it ends. */
  enter(what: "model" | "tool"): () => void;
  /** Whether a tool runs. */
  inTool(): boolean;
  /** As `enter("tool")`; what `run` calls is known to be inside of this tool. */
  enterTool(entry?: ToolEntry): RunningTool;
  /** Tells the tools that may be ended to end. */
  endTools(): void;
  /**
   * The thread whose tool asks, also when that tool has returned and left the asker running; undefined outside of all tools.
   * @throws STALE_EPOCH when a rewind ended that tool, or one around it
   */
  insideOf(): string | undefined;
  /** Runs `work` at the next turn boundary, at once when nothing runs. */
  atBoundary<T>(work: () => Promise<T>): Promise<T>;
  /** A turn begins: requests that wait for the boundary run now, unless a tool still runs (the turn is then one inside of it). */
  boundary(): Promise<void>;
}

export interface ToolEntry {
  /** The conversation to which it belongs. */
  readonly thread?: string;
  /** A rewind ends it (`RunningTool.signal`) instead of waiting until it is done: it runs an agent of its own. Default false. */
  readonly endable?: boolean;
}

/** Call it when the tool has ended. */
export interface RunningTool {
  (): void;
  run<T>(work: () => Promise<T>): Promise<T>;
  /** Aborted when a rewind ends this tool: return at once, and give nothing back that comes later. */
  readonly signal: AbortSignal;
}

/** What a tool that runs leaves in everything that it starts. */
interface Frame {
  ended: boolean;
  readonly outer: Frame | undefined;
  readonly thread: string | undefined;
  readonly control: AbortController;
}

/**
 * @param settle runs before each exclusive work: finishes what an earlier one had to leave half done
 * @param hurry called when exclusive work has to wait for such work
 */
export function makeCoordinator(
  settle: () => Promise<void> = async () => {},
  hurry: () => void = () => {},
): Coordinator {
  let tail: Promise<unknown> = Promise.resolve();
  let ahead = 0;
  let running = 0;
  let tools = 0;
  const toolsEnded: (() => void)[] = [];
  let waiting: (() => Promise<void>)[] = [];
  let timer: NodeJS.Timeout | undefined;
  const frames = new AsyncLocalStorage<Frame>();
  const endable = new Set<Frame>();

  const exclusive = <T>(work: () => Promise<T>): Promise<T> => {
    if (ahead++ > 0) hurry();
    const result = tail.then(settle).then(work);
    const ended = (): void => void ahead--;
    tail = result.then(ended, ended);
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

  function requireOutside(): void {
    for (let frame = frames.getStore(); frame !== undefined; frame = frame.outer) {
      if (frame.ended) continue;
      throw new RewindError(
        "INSIDE_TOOL",
        "This was asked for from inside of a tool that still runs; it would wait for itself.",
        {
          hint: "Return from the tool first and ask from outside of it; the agent itself has its `rewind` tool.",
        },
      );
    }
  }

  async function betweenTools<T>(work: () => Promise<T>): Promise<T> {
    requireOutside();
    for (;;) {
      if (tools > 0) {
        const ended = new Promise<void>((resolve) => toolsEnded.push(resolve));
        endTools();
        await ended;
      }
      const done = await exclusive(async () => (tools > 0 ? undefined : { value: await work() }));
      if (done !== undefined) return done.value;
    }
  }

  function endTools(): void {
    for (const frame of endable) frame.control.abort(endedTool());
  }

  function leaveTool(): void {
    if (--tools > 0) return;
    for (const resolve of toolsEnded.splice(0)) resolve();
  }

  function enter(what: "model" | "tool"): () => void {
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
  }

  return {
    exclusive,
    isBusy: () => ahead > 0,
    betweenTools,
    requireOutside,
    enter,
    inTool: () => tools > 0,
    enterTool(entry = {}) {
      const leave = enter("tool");
      const control = new AbortController();
      const frame: Frame = { ended: false, outer: frames.getStore(), thread: entry.thread, control };
      if (entry.endable === true) endable.add(frame);
      const end = (): void => {
        frame.ended = true;
        endable.delete(frame);
        leave();
      };
      const run = <T>(work: () => Promise<T>): Promise<T> => frames.run(frame, work);
      return Object.assign(end, { run, signal: control.signal });
    },
    endTools,
    insideOf() {
      const inner = frames.getStore();
      for (let frame = inner; frame !== undefined; frame = frame.outer) {
        if (frame.control.signal.aborted) throw endedTool();
      }
      return inner?.thread;
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

const endedTool = (): RewindError =>
  new RewindError("STALE_EPOCH", "This was begun before the conversation was rewound, and is not done any more.", {
    hint: "Drop it and go on from the restored context.",
  });
