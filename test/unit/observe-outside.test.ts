// How a program is told from outside: when it pauses, what it leaves running, what its commands are called.
import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { countingObjects } from "../../src/observe/counting.ts";
import { type ObserveLine, openLines, readLines } from "../../src/observe/lines.ts";
import { Observer } from "../../src/observe/observer.ts";
import { nameOfWords } from "../../src/observe/outside/names.ts";
import { Standing } from "../../src/observe/outside/standing.ts";
import { Stretches } from "../../src/observe/outside/stretches.ts";
import { classifier } from "../../src/observe/turns.ts";

const idle = (at: number) => ({ at, changes: false, computedMs: 0 });

test("a stretch ends a pause after its last activity, once", () => {
  const stretches = new Stretches(1_000, 0);
  expect(stretches.look(idle(5_000))).toBe(false);
  expect(stretches.look({ at: 5_010, changes: true, computedMs: 0 })).toBe(false);
  expect(stretches.open).toBe(true);
  expect(stretches.look(idle(6_000))).toBe(false);
  // What reads a stream computes, and waits all the same.
  expect(stretches.look({ at: 6_005, changes: false, computedMs: 1 })).toBe(false);
  expect(stretches.look(idle(6_010))).toBe(true);
  expect(stretches.open).toBe(false);
  expect(stretches.look(idle(9_000))).toBe(false);
  expect(stretches.look({ at: 9_010, changes: false, computedMs: 10 })).toBe(false);
  expect(stretches.look(idle(9_900))).toBe(false);
  expect(stretches.look(idle(10_010))).toBe(true);
});

test("what waits at a pause is nothing that was left; what outlives it, or its parent, is", () => {
  const child = (key: string) => ({ key, orphan: false });
  const orphan = (key: string) => ({ key, orphan: true });
  const standing = new Standing();
  expect(standing.stretch([child("curl")])).toEqual({ now: false, before: false });
  expect(standing.stretch([child("curl 2"), child("server")])).toEqual({ now: false, before: false });
  // The server outlived the stretch that began it.
  expect(standing.stretch([child("server")])).toEqual({ now: false, before: true });
  expect(standing.stretch([child("server"), orphan("daemon")])).toEqual({ now: true, before: false });
  expect(standing.stretch([child("server"), orphan("daemon")])).toEqual({ now: false, before: false });
  expect(standing.stretch([orphan("daemon")])).toEqual({ now: true, before: false });
  expect(standing.stretch([orphan("daemon"), child("late")], true)).toEqual({ now: true, before: false });
});

test.each([
  [["/usr/bin/git", "checkout", "main"], "git checkout"],
  [["bash", "-c", "cd src && npm test"], "npm test"],
  [["sh", "-ec", "sudo rm -rf dist"], "rm"],
  [["bash", "/opt/python3", "-c", "import time; x()"], "bash"],
  [["python3", "-c", "import time; x()"], "python3"],
  [["node", "a b;c.js"], "node"],
  [["-bash"], "bash"],
  [["env"], "env"],
])("%j is told as %s", (words, name) => {
  expect(nameOfWords(words)).toBe(name);
});

test("objects that keep nothing count each name once, when its batch is committed", async () => {
  const objects = countingObjects();
  const names = Buffer.concat([Buffer.alloc(32, 1), Buffer.alloc(32, 2), Buffer.alloc(32, 1)]);
  const given = objects.batch();
  const { fd, offsets } = given.reserve(names, Uint32Array.of(10, 20, 10));
  expect([fd, [...offsets]]).toEqual([-1, [-1, -1, -1]]);
  const hash = given.put(Buffer.from("12345"));
  expect(objects.holds(hash)).toBe(false);
  given.discard();
  expect(objects.take()).toBe(0);
  const kept = objects.batch();
  kept.reserve(names, Uint32Array.of(10, 20, 10));
  expect(kept.put(Buffer.from("12345"))).toEqual(hash);
  expect(await kept.commit()).toBe(35);
  const again = objects.batch();
  again.reserve(names, Uint32Array.of(10, 20, 10));
  expect(await again.commit()).toBe(0);
  expect(objects.holds(hash)).toBe(true);
  expect([objects.take(), objects.take()]).toEqual([35, 0]);
  expect(() => objects.get(hash)).toThrow(/observed/);
});

test("what was asked for is known in full where what ran is told in a short form", () => {
  const lines: ObserveLine[] = [];
  const observer = new Observer({ classesOf: classifier(), takeBytes: () => 0, write: (line) => lines.push(line) });
  const turn = { thread: "t", manifest: { files: "a", processes: null }, workMs: 1 };
  const timings = { exposedMs: 1, overlappedMs: 1 };
  observer.began({ ...turn, id: "c0", turn: 1, calls: [] });
  const command = `rm -r dist # ${"x".repeat(500)}`;
  observer.replied({ thread: "t", id: "c0", tools: true, calls: [{ tool: "bash", input: { command } }], timings });
  const short = `{"command":"rm -r dist # xxx…`;
  observer.began({ ...turn, id: "c1", turn: 2, calls: [{ tool: "bash", input: short }] });
  observer.replied({ thread: "t", id: "c1", tools: true, calls: undefined, timings });
  observer.waited({ thread: "t", id: "c1" }, 5);
  observer.began({ ...turn, id: "c2", turn: 3, calls: [{ tool: "bash", input: short }] });
  const [, second, third] = observer.turns();
  expect(second).toMatchObject({ calls: [{ name: "bash: rm", classes: ["delete"] }], reply: null, exposedMs: 6 });
  expect(third).toMatchObject({ calls: [{ name: "bash: rm", classes: ["unknown"] }], changed: "none" });
  expect(lines).toHaveLength(6);
});

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

test("lines of several processes are read together; the last of a turn counts, and what was cut off or is no line does not", () => {
  const folder = mkdtempSync(join(tmpdir(), "agentrewind-lines-"));
  folders.push(folder);
  const facts = { thread: "t", turn: 1, calls: [], changed: "files", bytes: 1, exposedMs: 1, overlappedMs: 1 } as const;
  const [one, two] = [openLines(folder, "1"), openLines(folder, "2")];
  one({ kind: "opened", workspace: "/w", writeRate: 10, notes: ["n"] });
  one({ kind: "turn", key: "t/c0", facts: { ...facts, at: 2, reply: null } });
  one({ kind: "turn", key: "t/c0", facts: { ...facts, at: 2, reply: [{ name: "bash: ls", classes: ["read"] }] } });
  two({ kind: "opened", workspace: "/w", writeRate: 5, notes: ["n"] });
  two({ kind: "turn", key: "t/c0", facts: { ...facts, at: 1, reply: [] } });
  appendFileSync(join(folder, "2.jsonl"), '{"kind":"turn","key":"t/c1","facts":{"thr');
  appendFileSync(join(folder, "3.jsonl"), 'null\n{"kind":"turn"}\n\n');
  const found = readLines(folder);
  expect(found).toMatchObject({ workspaces: ["/w"], writeRate: 5, notes: ["n"] });
  expect(found.turns.map(({ at, reply }) => [at, reply?.length])).toEqual([
    [1, 0],
    [2, 1],
  ]);
  expect(new Set(found.turns.map(({ thread }) => thread)).size).toBe(2);
});
