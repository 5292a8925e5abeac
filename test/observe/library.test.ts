// `inspector: { observe: true }`: what a program sees that opened a workspace to be observed.
import { randomBytes } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { type Environment, type ObserveReport, type OpenOptions, openRewind, type Rewind } from "agentrewind";
import { afterEach, beforeEach, expect, test } from "vitest";
import { digestTree } from "../helpers/digest.ts";
import { codeOf, makePlace, type Place } from "../helpers/workspace.ts";

let place: Place;
let told: { report: ObserveReport; table: string }[];
let temporary: string;
const before = process.env.TMPDIR;
const observations = (): string[] => readdirSync(temporary);
const setTemporary = (folder: string | undefined): void => {
  if (folder === undefined) delete process.env.TMPDIR;
  else process.env.TMPDIR = folder;
};

beforeEach(() => {
  place = makePlace();
  temporary = join(place.base, "tmp");
  mkdirSync(temporary);
  setTemporary(temporary);
  told = [];
});
afterEach(() => setTemporary(before));

const observe = (options: Partial<OpenOptions> = {}): Promise<Rewind> =>
  openRewind({
    ...{ workspace: place.workspace, store: place.store, ...options },
    inspector: { observe: true, report: (report, table) => told.push({ report, table }) },
  });

interface Step {
  /** What the reply before called, and what it did. */
  readonly line?: string;
  readonly act?: () => void;
}

/** Each step is what one turn's reply does. */
async function turns(rewind: Rewind, ...steps: readonly Step[]): Promise<void> {
  const thread = rewind.thread("t1");
  let before: string | undefined;
  for (const { line, act } of [...steps, {}]) {
    const actions = before === undefined ? [] : [{ tool: "bash", input: before, output: "", failed: false }];
    const turn = await thread.beginTurn({ messages: ["go"] }, { activity: { said: "", actions } });
    await turn.gate(line === undefined ? { tools: false, calls: [] } : { calls: [{ tool: "bash", input: line }] });
    act?.();
    before = line;
  }
}

const file = (name: string): string => join(place.workspace, name);

test("net effects: what is made and removed within a turn, the same content again, and times alone", async () => {
  writeFileSync(file("kept"), "same");
  const content = randomBytes(3_000_000);
  const rewind = await observe();
  await turns(
    rewind,
    { line: "ls" },
    { line: "echo", act: () => writeFileSync(file("kept"), "same") },
    { line: "touch kept", act: () => utimesSync(file("kept"), 1, 1) },
    { line: "big", act: () => writeFileSync(file("big"), content) },
    { line: "copy", act: () => writeFileSync(file("copy"), content) },
    { line: "ls" },
  );
  await rewind.close();
  const [{ report }] = told as [(typeof told)[number]];
  expect(told).toHaveLength(1);
  expect(rewind.observed()).toEqual(report);
  expect(report).toMatchObject({
    source: "turns",
    turns: 7,
    uncompared: 1,
    workspaces: [realpathSync(place.workspace)],
  });
  // The same content again has another time, which a restore brings back.
  expect(report.classes).toMatchObject({ none: { turns: 2 }, files: { turns: 4 }, processes: { turns: 0 } });
  const stored = (call: string): number => report.causes.find((one) => one.call === `bash: ${call}`)?.bytes ?? -1;
  expect(stored("big")).toBeGreaterThan(2_900_000);
  // What is there already is stored once.
  expect(stored("copy")).toBeLessThan(100_000);
  expect(stored("ls")).toBe(0);
});

test("nothing is stored anywhere, and the workspace stays as it is to the nanosecond", async () => {
  writeFileSync(file("a"), "a".repeat(100_000));
  const before = digestTree(place.workspace);
  const rewind = await observe();
  await turns(rewind, { line: "ls" }, { line: "cat a" });
  expect(existsSync(place.store)).toBe(false);
  const [own = ""] = observations();
  const packs = join(temporary, own, "packs");
  // The conversation alone.
  const stored = readdirSync(packs).map((pack) => readFileSync(join(packs, pack), "latin1"));
  expect(stored.join("")).toContain('"go"');
  expect(stored.join("")).not.toContain("aaaaaaaaaaaa");
  await rewind.close();
  expect(digestTree(place.workspace)).toEqual(before);
  expect(observations()).toEqual([]);
});

test("what would take something back is refused, and the rest does nothing", async () => {
  const rewind = await observe();
  await turns(rewind, { line: "ls", act: () => writeFileSync(file("a"), "a") });
  const thread = rewind.thread("t1");
  expect(rewind.observes).toBe(true);
  for (const refused of [
    thread.rewind({ to: "c0" }),
    thread.rewind({ to: "c0", scope: "context" }),
    thread.rewind({ to: "c0", dryRun: true }),
    thread.undo(),
    thread.diff("c0", "c1"),
    rewind.fork("c0"),
    rewind.export({ to: join(place.base, "bundle") }),
  ]) {
    expect(await codeOf(refused)).toBe("OBSERVING");
  }
  const why = thread.admissible("c0", "it was wrong");
  expect(why).toMatchObject({ code: "OBSERVING", hint: expect.stringContaining("observe: true") });
  expect(readFileSync(file("a"), "utf8")).toBe("a");
  const [, first] = thread.checkpoints();
  expect(first).toMatchObject({
    state: "not-restorable",
    environment: { files: null, processes: null },
    changes: null,
  });
  expect(first?.reason).toMatch(/^not captured: /);
  expect((await thread.checkpoint()).state).toBe("not-restorable");
  expect(await rewind.verify()).toEqual([]);
  expect(await rewind.prune({ keepLast: 1 })).toMatchObject({ pruned: [] });
  expect(await rewind.gc()).toMatchObject({ objects: 0 });
  expect(thread.checkpoints()).toHaveLength(3);
  await rewind.durable();
  await rewind.close();
});

test("whatever else is chosen, each turn is looked at", async () => {
  const rewind = await observe({ capture: "explicit", gate: "durable", onCaptureFailure: "stop", takeOver: true });
  await turns(rewind, { line: "ls" }, { line: "echo", act: () => writeFileSync(file("a"), "a") });
  await rewind.close();
  expect(told[0]?.report).toMatchObject({ turns: 3, classes: { none: { turns: 1 }, files: { turns: 1 } } });
});

test("what a framework does by itself moves the conversation and is not refused", async () => {
  const rewind = await observe();
  const thread = rewind.thread("t1");
  const at = (anchor: string) => ({ anchor, tool: false });
  for (const anchor of ["m1", "m2"]) {
    const turn = await thread.beginTurn({ messages: [anchor] }, { anchor });
    await turn.gate({ calls: [{ tool: "bash", input: "echo" }] });
    writeFileSync(file(anchor), anchor);
  }
  // The model is asked again behind its tools: recorded, their files would go back.
  expect((await thread.align([at("m2")])).status).toBe("current");
  // Recorded, tools from another place than the files' would be PAIR_DIVERGED.
  expect((await thread.align([{ anchor: "its tool", tool: true }, at("m1")])).status).toBe("moved");
  // And a run from a state of which no files are kept NOT_RESTORABLE.
  expect((await thread.align([at("nobody's")], { travel: true })).status).toBe("new");
  expect(readdirSync(place.workspace)).toEqual(["m1", "m2"]);
  await rewind.close();
});

test("what could not be opened tells nothing", async () => {
  expect(await codeOf(observe({ workspace: join(place.base, "nowhere") }))).toBe("WORKSPACE_GONE");
  expect(told).toEqual([]);
  expect(observations()).toEqual([]);
});

test("a workspace that is recorded says that it does not observe", async () => {
  for (const inspector of [undefined, "scan", { observe: false }] as const) {
    const rewind = await openRewind({
      ...{ workspace: place.workspace, store: place.store },
      ...(inspector === undefined ? {} : { inspector }),
    });
    expect([rewind.observes, rewind.observed()]).toEqual([false, undefined]);
    await rewind.close();
  }
  expect(await codeOf(openRewind({ workspace: place.workspace, inspector: { observe: "yes" } as never }))).toBe(
    "BAD_ARGUMENT",
  );
});

test("effects run, again where they are asked for again, and are neither held nor recorded", async () => {
  const sent: string[] = [];
  const rewind = await observe({
    effects: { mail: { class: "irreversible", onRepeat: "hold" } },
    destructive: ["wipe"],
  });
  await turns(rewind, { line: "ls" });
  const thread = rewind.thread("t1");
  for (const callId of ["r1/c1", "r1/c1", "r2/c1"]) {
    const outcome = await thread.runTool({ tool: "mail", args: { to: "ann" }, callId }, ({ to }) => sent.push(to));
    expect(outcome.status).toBe("ran");
  }
  expect(sent).toEqual(["ann", "ann", "ann"]);
  expect((await thread.runTool({ tool: "wipe", args: {} }, () => "wiped")).status).toBe("ran");
  expect(thread.effects()).toEqual([]);
  await rewind.close();
});

test("of an environment of the caller's own nothing is captured, and what cannot be told counts as changed", async () => {
  let captures = 0;
  const own = {
    kind: "mine",
    capabilities: {
      files: true,
      processes: false,
      fork: false,
      inPlace: true,
      freeze: false,
      memory: false,
      lacks: [],
    },
    capture() {
      captures++;
      throw new Error("not asked for");
    },
    exec: async () => ({ exitCode: 0, signal: null, stdout: "ran", stderr: "", timedOut: false, truncated: false }),
    async close() {},
  } as unknown as Environment;
  const rewind = await observe({ environment: own });
  await turns(rewind, { line: "ls" }, { line: "ls" });
  expect((await rewind.environment.exec("ls")).stdout).toBe("ran");
  await rewind.close();
  const [{ report, table }] = told as [(typeof told)[number]];
  expect(captures).toBe(0);
  expect(report.classes.both.turns).toBe(2);
  expect(report.notes[0]).toContain('"mine"');
  expect(table).toContain(report.notes[0] as string);
});

test("two processes' worth of observers, and one that records, share a workspace", async () => {
  const recording = await openRewind({ workspace: place.workspace, store: place.store });
  const [one, two] = [await observe(), await observe()];
  await recording.thread("t1").checkpoint();
  writeFileSync(file("a"), "a");
  await turns(one, { line: "ls" });
  await turns(two, { line: "ls" });
  const kept = await recording.thread("t1").checkpoint();
  expect(kept.changes?.added).toEqual(["a"]);
  for (const rewind of [one, two, recording]) await rewind.close();
  expect(told).toHaveLength(2);
});

test("a folder for temporary files inside of the workspace is refused before anything is done", async () => {
  const inside = mkdtempSync(join(place.workspace, "tmp-"));
  setTemporary(inside);
  expect(await codeOf(observe())).toBe("STORE_INSIDE_WORKSPACE");
  expect(readdirSync(inside)).toEqual([]);
});
