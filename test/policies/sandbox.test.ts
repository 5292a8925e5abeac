// A sandbox ends with its process: where the newest turns were not captured it begins again before them, and nobody goes on with a conversation that knows more.

import { once } from "node:events";
import { createInterface } from "node:readline";
import type { Rewind } from "agentrewind";
import { describe, expect, test } from "vitest";
import { lacking } from "../capabilities.ts";
import { startSteps } from "../helpers/steps.ts";
import { codeOf, makePlace, type Place, useRewind } from "../helpers/workspace.ts";
import { needed } from "../sandbox/machine.ts";

const options = { environment: "sandbox", sandbox: { network: "own" }, capture: "explicit" } as const;

async function killedBehindTurns(place: Place): Promise<Rewind> {
  const owner = startSteps({ ...place, options }, [
    { op: "open" },
    { op: "exec", command: "echo 1 > f; v=kept" },
    { op: "checkpoint", context: { messages: ["m0"] } },
    { op: "turn", context: { messages: ["m0", "m1"] }, anchor: "m1" },
    { op: "exec", command: "echo 2 > f; v=lost" },
    { op: "turn", context: { messages: ["m0", "m1", "m2"] }, anchor: "m2" },
    { op: "hold" },
  ]);
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
      await rewind.environment.exec("true");
      await (await thread.beginTurn({ messages: [message] })).gate({ tools: false });
    }
    expect(thread.checkpoints().at(-1)?.state).toBe("not-restorable");
  });
});
