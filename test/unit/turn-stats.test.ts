// What is counted of the turns of a thread.
import { expect, test } from "vitest";
import { callName, turnStats } from "../../src/session/turn-stats.ts";
import type { Checkpoint } from "../../src/session/types.ts";

const checkpoint = (id: string, parent: string | null, over: Partial<Checkpoint> = {}): Checkpoint => ({
  ...{ id, parent, thread: "t", branch: null, partial: null, pruned: 0, turn: 1, kind: "turn", state: "durable" },
  ...{ reason: null, label: null, createdAt: "", anchor: null, messages: 1, changes: null },
  ...{ environment: { files: "f", processes: "p" }, activity: { said: "", actions: [] }, problems: [], effects: [] },
  ...{ timings: { exposedMs: 0, overlappedMs: 0, bytes: 0 }, head: false, active: true },
  ...over,
});
const ran = (...inputs: string[]): Checkpoint["activity"] => ({
  said: "",
  actions: inputs.map((input) => ({ tool: "bash", input, output: "", failed: false })),
});
const cost = (exposedMs: number, bytes: number) => ({ exposedMs, overlappedMs: 2 * exposedMs, bytes });

test("each checkpoint is compared with the one before it, on its own branch", () => {
  const found = turnStats([
    checkpoint("c0", null),
    checkpoint("c1", "c0", { activity: ran("ls", "ls -l"), timings: cost(1, 10) }),
    checkpoint("c2", "c1", {
      environment: { files: "g", processes: "p" },
      activity: ran("npm test"),
      timings: cost(3, 5),
    }),
    checkpoint("c3", "c1", {
      environment: { files: "h", processes: "q" },
      activity: ran("npm test"),
      kind: "explicit",
    }),
    checkpoint("c4", "c2", {
      environment: { files: "g", processes: null },
      activity: ran("pkill x"),
      timings: cost(2, 7),
    }),
    checkpoint("c5", "c4", { state: "not-restorable" }),
    checkpoint("c6", "c5"),
    checkpoint("c7", "gone"),
    checkpoint("c8", "c4", { kind: "safety" }),
    ...Array.from({ length: 19 }, (_, n) =>
      checkpoint(`c${n + 9}`, n === 0 ? "c1" : `c${n + 8}`, { timings: cost(n + 2, 1) }),
    ),
  ]);
  expect(found).toMatchObject({ checkpoints: 27, uncompared: 3, notRestorable: 1 });
  expect(found.classes.none).toEqual({
    ...{ turns: 20, share: 20 / 23, bytes: 29 },
    ...{ exposedMs: { p50: 10, p95: 19 }, overlappedMs: { p50: 20, p95: 38 } },
  });
  expect(found.classes.files).toMatchObject({ turns: 1, bytes: 5, exposedMs: { p50: 3, p95: 3 } });
  expect([found.classes.processes.turns, found.classes.both.turns]).toEqual([1, 1]);
  expect(found.causes).toEqual([
    { call: "bash: npm test", turns: 2, files: 2, processes: 1, bytes: 5 },
    { call: "bash: pkill", turns: 1, files: 0, processes: 1, bytes: 7 },
    { call: "bash: ls", turns: 1, files: 0, processes: 0, bytes: 10 },
  ]);
});

test("a thread without turns", () => {
  const { checkpoints, classes, causes } = turnStats([]);
  expect([checkpoints, classes.none, causes]).toEqual([
    0,
    { turns: 0, share: 0, bytes: 0, exposedMs: null, overlappedMs: null },
    [],
  ]);
});

test.each([
  ["bash", '{"command":"cd /x && npm install left-pad"}', "bash: npm install"],
  ["run_shell", '{"cmd":"sudo -n apt-get -y update"}', "run_shell: apt-get"],
  ["shell", '{"command":["git","reset","--hard"]}', "shell: git reset"],
  ["execute", '{"command":"FOO=1 timeout 5 /usr/bin/make all"}', "execute: make all"],
  ["bash", "rm -rf build", "bash: rm"],
  ["bash", '{"command":"git status\\ngit diff', "bash: git status"],
  ["write_file", '{"path":"a.txt","content":"command: rm"}', "write_file"],
  ["bash", "", "bash"],
  ["search", "rm -rf", "search"],
])("a call of %s with %s is named %s", (tool, input, name) => {
  expect(callName({ tool, input })).toBe(name);
});
