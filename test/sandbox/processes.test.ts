// What the kernel keeps of processes comes back as it was: a process for each kind of thing, all in one sandbox, captured, changed and brought back together.
import type { Checkpoint } from "agentrewind";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { lacking } from "../capabilities.ts";
import { Held, needed } from "./held.ts";

const kinds = [
  ["threads", "five threads with memory of their own"],
  ["pipes", "a pipe, a named pipe and a chain of programs, with bytes on their way"],
  ["files", "files that are open: unlinked, without a name, for appending, renamed, sharing an offset, sparse"],
  ["locks", "locks by flock and fcntl"],
  ["mappings", "files and memory that are mapped, a memfd with its seals, /dev/shm"],
  ["events", "eventfd, timerfd, signalfd, and an epoll set over them"],
  ["watches", "a watch on a folder of an overlay"],
  ["signals", "pending signals, handlers and timers, a zombie, a stopped child, a session"],
  ["terminal", "a shell in a terminal of its own, with a job"],
  [
    "sockets",
    "connections between two processes, with bytes that nobody has read: TCP over both families, Unix sockets of all kinds",
  ],
  ["lost", "a working directory and a program that are deleted"],
  ["identity", "groups, capabilities, priority, limits, umask, name, environment"],
  ["busy", "a process that never waits"],
  ["memory", "memory, no page like another"],
  ["sysv", "System V shared memory, semaphores and message queues"],
] as const;
const names = kinds.map(([name]) => name);

describe.skipIf(lacking(...needed))("processes", () => {
  let held: Held;
  const seen: Record<"before" | "changed" | "back" | "again" | "twice", Record<string, unknown>> = {
    before: {},
    changed: {},
    back: {},
    again: {},
    twice: {},
  };
  let empty: Checkpoint;
  beforeAll(async () => {
    held = await Held.open({ network: "own" }, ["held.py"]);
    if (process.env.AGENTREWIND_LONG === "1") await held.sh("export MEMORY=1024");
    empty = await held.checkpoint();
    await held.hold(names);
    seen.before = await held.ask(names, "show");
    const checkpoint = await held.checkpoint();
    expect(checkpoint.problems).toEqual([]);
    seen.changed = await held.ask(names, "step");
    expect((await held.back(checkpoint)).notRestored).toEqual([]);
    seen.back = await held.ask(names, "show");
    seen.again = await held.ask(names, "step");
    // What came back is captured as well as what was started.
    await held.back(checkpoint);
    seen.twice = await held.ask(names, "show");
  });
  afterAll(() => held.end());

  test.each(kinds)("%s: %s", (name) => {
    expect(seen.before[name]).not.toEqual(expect.stringContaining("Error"));
    expect(seen.changed[name]).not.toEqual(seen.before[name]);
    expect(seen.back[name]).toEqual(seen.before[name]);
    expect(seen.again[name]).toEqual(seen.changed[name]);
    expect(seen.twice[name]).toEqual(seen.before[name]);
  });

  test("200 processes come back where there were none", async () => {
    await held.back(empty);
    await held.hold(["many"]);
    const before = await held.ask(["many"], "show");
    const checkpoint = await held.checkpoint();
    await held.sh("pkill sleep");
    await held.back(checkpoint);
    expect(await held.ask(["many"], "show")).toEqual(before);
    expect((await held.ask(["many"], "step")).many).toHaveLength(100);
  });
});
