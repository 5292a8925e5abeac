// F-52: an environment that can tell whether anything changed: turns behind which nothing did are not captured, and have the halves of the newest that was.
import type { Environment, OpenOptions } from "agentrewind";
import { expect, it } from "vitest";
import { replay } from "../../bench-mettle/policies/replay.ts";
import { prepare, trace } from "../../bench-mettle/policies/trace.ts";
import { connectRemote } from "../../examples/remote-environment/environment.ts";
import { digestTree } from "../helpers/digest.ts";
import { remoteServer } from "../helpers/remote.ts";
import { makePlace, useRewind } from "../helpers/workspace.ts";

const url = remoteServer();

/** The example's environment with an answer of its own: all of the tree is read and compared. */
async function telling() {
  const remote = await connectRemote(url());
  const seen = new Map<string | null, string[]>();
  const counts = { captures: 0, asked: 0 };
  const knows = { anything: true };
  const folder = async (): Promise<string> => (await remote.exec("pwd")).stdout.trim();
  const environment: Environment = Object.assign(Object.create(remote) as Environment, {
    capture(options?: { signal?: AbortSignal }) {
      counts.captures++;
      const { captured, durable } = remote.capture(options);
      const known = captured.then(async (found) => {
        seen.set(found.manifest.files, digestTree(await folder()));
        return found;
      });
      return { captured: known, durable };
    },
    async changed({ files }: { files: string | null }) {
      counts.asked++;
      if (!knows.anything) throw new Error("it cannot be told");
      const then = seen.get(files);
      if (then === undefined) return "unknown" as const;
      return JSON.stringify(digestTree(await folder())) === JSON.stringify(then)
        ? ("none" as const)
        : ("files" as const);
    },
  });
  return { environment, counts, folder, knows };
}

const policies: readonly [string, NonNullable<OpenOptions["capture"]>][] = [
  ["effects", "effects"],
  ["explicit", "explicit"],
  ["before", { before: ["delete"] }],
];

it.each(policies)("%s", async (name, capture) => {
  const place = makePlace();
  const { environment, counts, folder } = await telling();
  prepare(await folder());
  const rewind = await useRewind(place, { environment, capture });
  const digests = new Map<string, string[]>();
  let before: string[] = [];
  const changed: number[] = [];
  await replay(rewind, {
    async onDecision(turn, id) {
      const now = digestTree(await folder());
      if (JSON.stringify(now) !== JSON.stringify(before)) changed.push(turn);
      before = now;
      digests.set(id, now);
    },
  });
  const thread = rewind.thread("trace");
  const made = thread.checkpoints();
  const own = made.filter(
    ({ environment: { files }, parent }) =>
      files !== null && files !== made.find(({ id }) => id === parent)?.environment.files,
  );
  const tools = trace.filter((lines) => lines.length > 0).length;
  if (name === "effects") {
    expect(made.every(({ state }) => state !== "not-restorable")).toBe(true);
    expect(own.map(({ turn }) => turn)).toEqual(changed);
    expect(changed.length).toBeLessThan(trace.length / 2);
    // One for each turn that found a change, and none for the look before its tools.
    expect(counts.captures).toBe(changed.length);
    expect(counts.asked).toBeGreaterThan(tools);
    expect(
      made
        .filter(({ turn }) => !changed.includes(turn))
        .every(({ changes }) => Object.values(changes ?? {}).flat().length === 0),
    ).toBe(true);
  } else {
    // What nobody captured can be pointed at by none.
    expect(own.length).toBeLessThan(changed.length);
    const restorable = made.filter(({ state }) => state !== "not-restorable").length;
    expect(restorable).toBeGreaterThan(own.length - 1);
  }
  for (const { id, state } of [...made].reverse()) {
    if (state === "not-restorable") continue;
    await thread.rewind({ to: id });
    expect(digestTree(await folder()), id).toEqual(digests.get(id));
  }
});

it("a change that somebody else makes is seen, and an answer that fails counts as a change", async () => {
  const place = makePlace();
  const { environment, counts, knows } = await telling();
  const rewind = await useRewind(place, { environment, capture: "effects" });
  const thread = rewind.thread("t");
  const turn = async (n: number): Promise<string> => {
    const { id } = await (await thread.beginTurn({ messages: [n] })).gate({ tools: false });
    return id;
  };
  await turn(0);
  await environment.writeFile("person.txt", "by hand");
  const second = await turn(1);
  expect(thread.get(second).changes?.added).toEqual(["person.txt"]);
  await turn(2);
  expect(counts.captures).toBe(2);
  knows.anything = false;
  await turn(3);
  expect(counts.captures).toBe(3);
});
