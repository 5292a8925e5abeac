// The counters of a watch, in the order of bpf/effects.h.

/** Effects count when they succeeded. A call that may change a file or a name is also told when it begins and ends. */
export const counterNames = [
  /** Processes and threads made. */
  "fork",
  "exec",
  /** Threads ended. */
  "exit",
  /** Processes moved into the cgroup: what they did before is not known. */
  "attached",
  /** A thread was given a processor. */
  "scheduled",
  /** A system call came back to a thread, which went on from there. */
  "returned",
  /** Signals put into the queue of a thread or process. */
  "signal",
  "write",
  /** For writing, or one that made or emptied the file. */
  "open",
  /** Shared writable mappings made; what is stored through them later is not told. */
  "map",
  "name",
  "meta",
  "mount",
  /** Message queues, semaphores, shared memory of System V and POSIX. */
  "ipc",
  /** Reaches into another process. */
  "peer",
  "uring",
  /** Linux AIO handed in: it may be carried out any time later. */
  "aio",
  /** Calls of which is not known what they change. */
  "unknown",
  /** Outbound TCP connections that stand. */
  "connect",
  "begun",
  "ended",
  /** Calls that a tracer of the watch ended, and of these the ones whose thread has gone on to its next call. The same call again is none that returned. */
  "broken",
  "takenUp",
  /** Something could not be kept: anything may have happened. */
  "lost",
  /** Not a counter: of `Inode.classes` only, an inode that its file system marked as changed. */
  "inode",
] as const;

export type CounterName = Exclude<(typeof counterNames)[number], "inode"> | "host";

/** Of the kernel's counters; behind them stand `host` and the processors that run now. */
export const places = 32;
export const hostBit = 1n << 31n;

export function toCounters(read: BigUint64Array): Readonly<Record<CounterName, bigint>> {
  const made: Record<string, bigint> = {};
  for (const [at, name] of counterNames.entries()) if (name !== "inode") made[name] = read[at] ?? 0n;
  made.host = read[places] ?? 0n;
  return made as Record<CounterName, bigint>;
}

export const classesOf = (bits: bigint): readonly string[] => [
  ...counterNames.filter((_, at) => bits & (1n << BigInt(at))),
  ...(bits & hostBit ? ["host"] : []),
];
