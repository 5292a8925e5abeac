// The texts that a model reads, as texts.
import { expect, test } from "vitest";
import { RewindError } from "../../src/errors.ts";
import { cleanLesson, lessonLimit } from "../../src/session/lessons.ts";
import { maskSecrets } from "../../src/session/mask.ts";
import {
  listText,
  type Programs,
  programsOf,
  type RewindMessageParts,
  refusalText,
  rewindMessage,
} from "../../src/session/texts.ts";
import { checkpointTool, listCheckpointsTool, rewindTool } from "../../src/session/tools.ts";
import type { Checkpoint } from "../../src/session/types.ts";

const none = { added: [], removed: [], changed: [], mode: [], type: [], renamed: [] };

const checkpoint = (over: Partial<Checkpoint>): Checkpoint => ({
  id: "c0",
  thread: "t",
  branch: null,
  partial: null,
  parent: null,
  pruned: 0,
  turn: 1,
  kind: "turn",
  state: "durable",
  reason: null,
  label: null,
  createdAt: "",
  anchor: null,
  messages: 1,
  environment: { files: "x", processes: null },
  changes: none,
  activity: { said: "", actions: [] },
  problems: [],
  timings: { exposedMs: 0, overlappedMs: 0, bytes: 0 },
  effects: [],
  head: false,
  active: true,
  ...over,
});

const parts = (over: Partial<RewindMessageParts> = {}): RewindMessageParts => ({
  target: "c3",
  before: 'bash {"command":"npm run normalize"}',
  scope: "both",
  restored: { ...none, changed: ["data/ledger.csv"], added: ["a", "b"] },
  notRestored: [],
  kept: [],
  conflicts: [],
  effects: [],
  delivered: [],
  carried: 0,
  programs: "not restored",
  lessons: [{ text: "do not normalize" }],
  ...over,
});

test("the message after a rewind says where, what came back, what not to repeat, and the lessons", () => {
  expect(
    rewindMessage(
      parts({
        notRestored: [{ path: "s.sock", reason: "is a socket" }],
        kept: ["notes.md"],
        conflicts: ["shared.txt"],
        delivered: ["The migration is done."],
        carried: 1,
        lessons: [{ text: "newest" }, { text: "oldest" }],
      }),
    ),
  ).toBe(`You are back at c3, before: bash {"command":"npm run normalize"}.
What was done after that point has been taken back, in this conversation and in the files.
Files restored: data/ledger.csv, a, b.
Not restored: s.sock (is a socket).
Kept, because somebody else changed them: notes.md.
Changed by you and by somebody else, taken back to c3: shared.txt.
Running programs were not restored: start again what you need.
One message that the person sent after that point was kept; it stands right above.

Already done or delivered, do not repeat:
- you told the person: "The migration is done."

Lessons so far, newest first:
1. newest
2. oldest

Go on with the task from here.`);
});

test("the message does not invite to rewind again", () => {
  for (const scope of ["both", "environment", "context"] as const) {
    expect(rewindMessage(parts({ scope }))).not.toMatch(/rewind|list_checkpoints|again to a checkpoint/i);
  }
});

test("when only a part moved the message says which", () => {
  expect(rewindMessage(parts({ scope: "environment" }))).toContain("Only the files were taken back");
  const context = rewindMessage(parts({ scope: "context" }));
  expect(context).toContain("Only the conversation was taken back");
  expect(context).not.toContain("Files restored");
});

test("lessons are bounded: the newest stay, the rest is counted", () => {
  const lessons = Array.from({ length: 20 }, (_, i) => ({ text: `${i} ${"x".repeat(1_900)}` }));
  const message = rewindMessage(parts({ lessons }));
  expect(message.length).toBeLessThan(12_000);
  expect(message).toContain("1. 0 xx");
  expect(message).toMatch(/\(1\d older ones are not shown\)/);
  expect(cleanLesson("y".repeat(50_000)).text).toHaveLength(lessonLimit);
  expect(() => cleanLesson("  \n ")).toThrow(expect.objectContaining({ code: "LESSON_EMPTY" }));
});

test("what looks like a credential is masked before it is stored", () => {
  const secrets = [
    "sk-proj-abcdefghijklmnopqrstuvwx",
    "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
    "AKIAIOSFODNN7EXAMPLE",
    "Authorization: Bearer abcdefghijklmnop.qrstuvwx",
    "postgres://app:correcthorse@db/prod",
    'API_KEY="zzzzzzzzzz"',
    "password: hunter2hunter2",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
  ];
  for (const secret of secrets) {
    const masked = maskSecrets(`see ${secret} here`);
    expect(masked).toContain("[masked]");
    expect(masked).toContain("here");
    expect(masked).not.toMatch(/abcdefghij|IOSFODNN|correcthorse|zzzz|hunter2|MIIE/);
  }
  expect(maskSecrets("the token bucket and the password field were wrong")).toBe(
    "the token bucket and the password field were wrong",
  );
});

test("the list shows for each checkpoint what rewinding to it takes back", () => {
  const c2 = checkpoint({
    id: "c2",
    turn: 3,
    parent: "c1",
    head: true,
    changes: { ...none, changed: ["data/ledger.csv"] },
    activity: {
      said: "",
      actions: [{ tool: "bash", input: '{"command":"npm run normalize"}', output: "rewrote\n120 rows", failed: false }],
    },
  });
  const c1 = checkpoint({
    id: "c1",
    turn: 2,
    parent: "c0",
    label: "tests red",
    activity: { said: "I look first.", actions: [] },
  });
  const c0 = checkpoint({ state: "not-restorable", reason: "no space left" });
  const lost = checkpoint({ id: "c9", active: false, turn: 4 });
  expect(
    listText(
      [
        { checkpoint: c2, next: null },
        { checkpoint: c1, next: c2 },
        { checkpoint: c0, next: c1 },
      ],
      [{ checkpoint: lost, next: null }],
    ),
  ).toBe(`Checkpoints, newest first. "cN before: X" is the moment before X was done; rewinding to cN takes back X and everything after it.
c2 [turn 3] now
c1 [turn 2, "tests red"] before: bash {"command":"npm run normalize"} -> "rewrote 120 rows"; files changed: data/ledger.csv
c0 [turn 1] before: said "I look first." (cannot be restored: no space left)
Abandoned earlier:
c9 [turn 4] the end of this branch`);
  expect(listText([], [])).toBe("There are no checkpoints yet.");
});

test("a long list keeps the newest and the labelled ones", () => {
  const many = Array.from({ length: 200 }, (_, i) => ({
    checkpoint: checkpoint({ id: `c${200 - i}`, label: i === 150 ? "green" : null }),
    next: null,
  }));
  const text = listText(many, []);
  expect(text.split("\n").length).toBeLessThan(50);
  expect(text).toContain('"green"');
  expect(text).toContain("older ones are not shown");
});

test("a refusal says what was wrong and what to do", () => {
  const text = refusalText(
    new RewindError("UNKNOWN_CHECKPOINT", "There is no checkpoint c9.", { hint: "Use one of c1, c2." }),
  );
  expect(text).toBe("Not done: There is no checkpoint c9. Use one of c1, c2.");
});

test("the tools say what they do, when, and that a rewind goes alone", () => {
  expect(rewindTool.description).toMatch(/conversation and the files both return/);
  expect(rewindTool.description).toMatch(/alone/);
  expect(listCheckpointsTool.description.length).toBeLessThan(200);
  expect(checkpointTool.description).toMatch(/without this/);
});

test("the message says what became of running programs", () => {
  const lineOf = (programs: Programs): string | undefined =>
    rewindMessage(parts({ programs }))
      .split("\n")
      .find((line) => /programs/i.test(line) && !line.startsWith("What was done"));
  expect(lineOf("back")).toBe(
    "Running programs, shells and background jobs are back as they were then, with their memory.",
  );
  expect(lineOf("ended")).toBe("No programs run in the background now: none did then.");
  expect(lineOf("kept")).toBe("Running programs were left as they are.");
  expect(rewindMessage(parts({ programs: "back" }))).toContain(
    "in this conversation, in the files and in running programs.",
  );
  const state = { processes: "p" };
  expect([
    programsOf({ processes: false }, state, false),
    programsOf({ processes: true }, state, true),
    programsOf({ processes: true }, state, false),
    programsOf({ processes: true }, { processes: null }, false),
    programsOf({ processes: true }, state, false, [{ path: "process 12 (node)" }]),
  ]).toEqual(["not restored", "kept", "back", "ended", "named"]);
  expect([
    programsOf({ processes: false, programs: true }, state, false, [{ path: "process 12 (node)" }]),
    programsOf({ processes: false, programs: true }, state, true),
    programsOf({ processes: false, programs: true }, { processes: null }, false),
  ]).toEqual(["told", "kept", "as then"]);
});
