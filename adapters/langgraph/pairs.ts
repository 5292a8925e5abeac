// What a checkpointer and the nodes of its graphs know of each other: writes under way, and tools that run.
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Position, Rewind, Thread } from "agentrewind";
import { langchainSerializer } from "../graph-state/serializer.ts";

interface Flight {
  /** Writes under way; those of a checkpoint have its id. */
  readonly running: Map<Promise<unknown>, string | undefined>;
  failed: unknown;
}

export class Pairs {
  /** How many graphs were prepared with `rewindGraph`. */
  graphs = 0;
  readonly #rewind: Rewind;
  readonly #flights = new Map<string, Flight>();
  readonly #tools = new Map<string, (() => void)[]>();

  constructor(rewind: Rewind) {
    this.#rewind = rewind;
  }

  thread(threadId: string): Thread {
    return this.#rewind.thread(threadId, { serializer: langchainSerializer });
  }

  /** A run begins: what failed in an earlier one is over. */
  begin(threadId: string): void {
    const flight = this.#flights.get(threadId);
    if (flight?.running.size === 0) this.#flights.delete(threadId);
  }

  /** Keeps account of a write until it has ended. */
  async store<T>(threadId: string, name: string | undefined, work: () => Promise<T>): Promise<T> {
    const flight = this.#flight(threadId);
    const running = work();
    flight.running.set(running, name);
    try {
      return await running;
    } catch (error) {
      flight.failed = error;
      throw error;
    } finally {
      flight.running.delete(running);
    }
  }

  /**
   * Resolves when the states from which a node started are stored. With durability "async" LangGraph stores them beside the node: one after the other, each put called
   * when the one before has ended; so a name that is unknown while nothing is under way never comes.
   */
  async settled(threadId: string, position: Position): Promise<void> {
    const names = Object.values(position);
    const thread = this.thread(threadId);
    for (;;) {
      await nextTurn();
      const { running, failed } = this.#flight(threadId);
      const awaited = [...running].filter(([, name]) => name !== undefined && names.includes(name));
      if (awaited.length > 0) {
        await Promise.allSettled(awaited.map(([write]) => write));
        continue;
      }
      if (names.every((name) => thread.knowsState(name))) return;
      if (running.size === 0) {
        if (failed !== undefined) throw failed;
        return;
      }
      await Promise.race([...running.keys()].map((write) => write.catch(() => {})));
    }
  }

  /** A tool runs in this task, until LangGraph stores what came of the task. */
  runsTool(taskId: string, leave: () => void): void {
    this.#tools.set(taskId, [...(this.#tools.get(taskId) ?? []), leave]);
  }

  ended(taskId: string): void {
    for (const leave of this.#tools.get(taskId) ?? []) leave();
    this.#tools.delete(taskId);
  }

  #flight(threadId: string): Flight {
    let flight = this.#flights.get(threadId);
    if (flight === undefined) {
      flight = { running: new Map(), failed: undefined };
      this.#flights.set(threadId, flight);
    }
    return flight;
  }
}

const all = new WeakMap<Rewind, Pairs>();

export function pairsOf(rewind: Rewind): Pairs {
  let pairs = all.get(rewind);
  if (pairs === undefined) {
    pairs = new Pairs(rewind);
    all.set(rewind, pairs);
  }
  return pairs;
}
