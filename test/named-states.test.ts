// States that a framework names itself, without a framework: which files belong to them, and where the files are brought (F-46, F-47).
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { NamedState, Rewind, Thread } from "agentrewind";
import { beforeEach, expect, test } from "vitest";
import { makePlace, useRewind } from "./helpers/workspace.ts";

let rewind: Rewind;
let thread: Thread;
beforeEach(async () => {
  rewind = await useRewind(makePlace());
  thread = rewind.thread("t");
});

const files = (): string[] => readdirSync(rewind.workspace).sort();
const name = (state: Partial<NamedState> & { name: string }): void =>
  thread.pairState({ namespace: "", from: undefined, kind: "step", around: {}, ...state })();
async function work(position: Record<string, string>, file: string): Promise<void> {
  const leave = await thread.enterTool([], { position });
  writeFileSync(join(rewind.workspace, file), "x");
  leave?.();
}

test("a state that follows waits for the next look, a copy has the files of what it copies", async () => {
  name({ name: "a", kind: "input" });
  expect([thread.knowsState("a"), thread.stateNamed("a")]).toEqual([true, undefined]);
  await work({ "": "a" }, "1");
  expect(thread.stateNamed("a")?.kind).toBe("step");
  name({ name: "copy", from: "a", kind: "copy" });
  expect(thread.stateNamed("copy")?.id).toBe(thread.stateNamed("a")?.id);
  name({ name: "b", from: "a" });
  expect(thread.stateNamed("b")).toBeUndefined();
  await work({ "": "b" }, "2");
  expect(thread.stateNamed("b")?.changes?.added).toEqual(["1"]);
  await thread.align([], { position: { "": "copy" } });
  expect(files()).toEqual([]);
  await thread.align([], { position: { "": "b" } });
  expect(files()).toEqual(["1"]);
});

test("parts inside of a state have states of their own, and end with it", async () => {
  name({ name: "a", kind: "input" });
  name({ name: "p0", namespace: "part:1", kind: "input", around: { "": "a" } });
  await work({ "": "a", "part:1": "p0" }, "1");
  name({ name: "p1", namespace: "part:1", from: "p0", around: { "": "a" } });
  await work({ "": "a", "part:1": "p1" }, "2");
  name({ name: "b", from: "a" });
  await thread.align([], { position: { "": "b" } });
  expect(files()).toEqual(["1", "2"]);
  await thread.align([], { position: { "": "a", "part:1": "p1" } });
  expect(files()).toEqual(["1"]);
  // Elsewhere a new part begins with the files of the state around it.
  name({ name: "again", from: "a", kind: "copy" });
  name({ name: "q0", namespace: "part:2", kind: "input", around: { "": "again" } });
  expect(thread.stateNamed("q0")?.id).toBe(thread.stateNamed("a")?.id);
});

test("a position of which nothing is known leaves the decision to the messages", async () => {
  name({ name: "a", kind: "input" });
  await work({ "": "a" }, "1");
  expect(await thread.align([], { position: { "": "unknown" } })).toMatchObject({ status: "new" });
  expect(files()).toEqual(["1"]);
  thread.forgetStates();
  expect(thread.knowsState("a")).toBe(false);
});

test("a run that goes back begins without the traces of the one before it", async () => {
  name({ name: "a", kind: "input" });
  await work({ "": "a" }, "1");
  const again = {};
  await thread.align([], { position: { "": "a" } });
  expect(files()).toEqual(["1"]);
  await thread.align([], { position: { "": "a" }, replay: again });
  expect(files()).toEqual([]);
  await work({ "": "a" }, "2");
  await thread.align([], { position: { "": "a" }, replay: again });
  expect(files()).toEqual(["2"]);
});

test("a step that is pruned leaves its states to a checkpoint with the same files, where there is one", async () => {
  name({ name: "a", kind: "input" });
  await work({ "": "a" }, "1");
  name({ name: "b", from: "a" });
  // A tool that changes nothing.
  (await thread.enterTool([], { position: { "": "b" } }))?.();
  const turn = await thread.beginTurn({ messages: [] }, { anchor: "m" });
  const decision = await turn.gate();
  expect(thread.stateNamed("b")?.kind).toBe("step");
  await rewind.prune({ keepLast: 1 });
  expect(thread.checkpoints({ all: true }).map((one) => one.id)).toEqual([decision.id]);
  expect(thread.stateNamed("b")?.id).toBe(decision.id);
  expect(thread.knowsState("a")).toBe(false);
});
