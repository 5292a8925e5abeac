// A sandbox ends with its process: where the newest turns were not captured it begins again before them, and nobody goes on with a conversation that knows more.

import { once } from "node:events";
import { createInterface } from "node:readline";
import type { OpenOptions, Rewind } from "agentrewind";
import { describe, expect, test } from "vitest";
import { lacking } from "../capabilities.ts";
import { type Step, startSteps } from "../helpers/steps.ts";
import { codeOf, makePlace, type Place, useRewind } from "../helpers/workspace.ts";
import { needed } from "../sandbox/machine.ts";

const options = { environment: "sandbox", sandbox: { network: "own" }, capture: "explicit" } as const;

const killedBehindTurns = (place: Place): Promise<Rewind> =>
  killedBehind(place, options, [
    { op: "exec", command: "echo 1 > f; v=kept" },
    { op: "checkpoint", context: { messages: ["m0"] } },
    { op: "turn", context: { messages: ["m0", "m1"] }, anchor: "m1" },
    { op: "exec", command: "echo 2 > f; v=lost" },
    { op: "turn", context: { messages: ["m0", "m1", "m2"] }, anchor: "m2" },
  ]);

async function killedBehind(place: Place, options: Partial<OpenOptions>, steps: readonly Step[]): Promise<Rewind> {
  const owner = startSteps({ ...place, options }, [{ op: "open" }, ...steps, { op: "hold" }]);
  for await (const line of createInterface({ input: owner.stdout as NodeJS.ReadableStream })) {
    if (line.includes('"holding"')) break;
    if (line.includes('"error"')) throw new Error(line);
  }
  owner.kill("SIGKILL");
  await once(owner, "exit");
  return useRewind(place, options);
}

describe.skipIf(lacking(...needed))("killed behind turns that were not captured", () => {
  test("a turn, an alignment and a tool are refused until one of both is chosen: the older pair", async () => {
    const rewind = await killedBehindTurns(makePlace());
    const thread = rewind.thread("t");
    const boundary = [{ anchor: "m2", tool: false }];
    expect(thread.checkpoints().map(({ id, state }) => `${id} ${state === "not-restorable"}`)).toEqual([
      "c0 false",
      "c1 true",
      "c2 true",
    ]);
    expect((await rewind.environment.exec("cat f; echo $v")).stdout).toBe("1\nkept\n");
    expect(await codeOf(thread.beginTurn({ messages: ["m3"] }))).toBe("PAIR_DIVERGED");
    expect(await codeOf(thread.align(boundary))).toBe("PAIR_DIVERGED");
    expect(await codeOf(thread.enterTool(boundary))).toBe("PAIR_DIVERGED");
    const { context } = await thread.rewind({ to: "c0", delivery: "returned" });
    expect(context.messages).toEqual(["m0"]);
    await (await thread.beginTurn({ messages: ["m0", "m1 again"] })).gate({ tools: false });
    // What the killed one had made is kept as well.
    const left = thread.checkpoints({ all: true }).find(({ label }) => label?.startsWith("found after"));
    await thread.rewind({ to: left?.id as string });
    expect((await rewind.environment.exec("cat f")).stdout).toBe("2\n");
  });

  test("or the conversation, with what is there now", async () => {
    const rewind = await killedBehindTurns(makePlace());
    const thread = rewind.thread("t");
    const made = await thread.checkpoint();
    expect(made.parent).toBe("c2");
    expect((await thread.align([{ anchor: "m2", tool: false }])).status).toBe("current");
    for (const message of ["m3", "m4"]) {
      await (await thread.beginTurn({ messages: [message] })).gate({ tools: false });
    }
    expect(thread.checkpoints().at(-1)?.state).toBe("not-restorable");
  });
});

describe.skipIf(lacking(...needed))("killed while the tools of a captured turn had run", () => {
  const every = { environment: "sandbox", sandbox: { network: "own" } } as const;
  const behindTool = [
    { anchor: "result", tool: true },
    { anchor: "m0", tool: false },
  ];
  const killed = (place: Place): Promise<Rewind> =>
    killedBehind(place, every, [
      { op: "exec", command: "echo 1 > f" },
      { op: "turn", context: { messages: ["m0"] }, anchor: "m0" },
      { op: "exec", command: "echo 2 > f" },
    ]);

  test("a conversation that has their results is not gone on with unasked", async () => {
    const rewind = await killed(makePlace());
    const thread = rewind.thread("t");
    expect((await rewind.environment.exec("cat f")).stdout).toBe("1\n");
    expect(await codeOf(thread.align(behindTool))).toBe("PAIR_DIVERGED");
    expect(await codeOf(thread.enterTool(behindTool))).toBe("PAIR_DIVERGED");
    // Before its tools it is where the environment is.
    expect((await thread.align([{ anchor: "m0", tool: false }])).status).toBe("current");
  });

  test("but on what is there now where somebody has said so", async () => {
    const rewind = await killed(makePlace());
    const thread = rewind.thread("t");
    await thread.checkpoint();
    expect((await thread.align(behindTool)).status).toBe("current");
  });
});
