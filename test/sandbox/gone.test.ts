// A sandbox ends with its killed owner and begins again at the newest pair, whichever thread's: what any thread did behind that is gone, and no conversation that knows of it
// is gone on with unasked.
import { once } from "node:events";
import { createInterface } from "node:readline";
import type { OpenOptions, Rewind } from "agentrewind";
import { describe, expect, test } from "vitest";
import { lacking } from "../capabilities.ts";
import { type Step, startSteps } from "../helpers/steps.ts";
import { codeOf, endSession, makePlace, type Place, useRewind } from "../helpers/workspace.ts";
import { needed } from "./machine.ts";

const sandbox = { environment: "sandbox", sandbox: { network: "own" } } as const;

async function killBehind(place: Place, steps: readonly Step[], options: Partial<OpenOptions>): Promise<void> {
  const owner = startSteps({ ...place, options }, [{ op: "open" }, ...steps, { op: "hold" }]);
  for await (const line of createInterface({ input: owner.stdout as NodeJS.ReadableStream })) {
    if (line.includes('"holding"')) break;
    if (line.includes('"error"')) throw new Error(line);
  }
  owner.kill("SIGKILL");
  await once(owner, "exit");
}

async function killedBehind(
  steps: readonly Step[],
  more: Partial<OpenOptions> = {},
  place: Place = makePlace(),
): Promise<Rewind> {
  const options = { ...sandbox, ...more };
  await killBehind(place, steps, options);
  return useRewind(place, options);
}

const m = (anchor: string) => ({ anchor, tool: false });
const result = (call: string) => ({ anchor: `result ${call}`, tool: true, call });
const exec = (command: string): Step => ({ op: "exec", command });
/** Its tools are entered. */
const turn = (thread: string, anchor: string): Step => ({
  ...{ op: "turn", thread, anchor, context: { messages: [anchor] } },
  gate: { look: "tool" },
});
const tool = (thread: string, anchor: string, command: string): Step => ({
  ...{ op: "tool", thread, boundaries: [m(anchor)], command },
});
const put = (thread: string, key: string): Step => ({ op: "put", thread, key });
const log = async (rewind: Rewind): Promise<string> => (await rewind.environment.exec("cat log")).stdout;

describe.skipIf(lacking(...needed))("killed behind the newest pair of two threads", () => {
  test("F-75: recorded results: those of both behind it are gone, those before it are not", async () => {
    const rewind = await killedBehind([
      ...[turn("a", "a0"), turn("b", "b0"), put("b", "before"), turn("a", "a1")],
      ...[put("a", "behind"), put("b", "behind")],
    ]);
    const [a, b] = [rewind.thread("a").journal, rewind.thread("b").journal];
    expect([b.get("before"), a.get("behind"), b.get("behind")]).toEqual(["returned", undefined, undefined]);
    await b.put({ behind: "again" }, { ofTools: true });
    expect(b.get("behind")).toBe("again");
  });

  test("a conversation that knows of tools behind it is refused: its context alone goes back, the other's work stays", async () => {
    const rewind = await killedBehind([
      ...[turn("a", "a0"), turn("b", "b0"), turn("a", "a1")],
      tool("b", "b0", "echo b >> log"),
    ]);
    const b = rewind.thread("b");
    const known = [result("k"), m("b0")];
    const refused = b.align(known);
    await expect(refused).rejects.toMatchObject({
      code: "PAIR_DIVERGED",
      message: expect.stringContaining('c1 of thread "a"'),
      hint: expect.stringMatching(/^Rewind the thread to c0, with scope "context": /),
    });
    expect(await codeOf(b.enterTool(known))).toBe("PAIR_DIVERGED");
    expect((await rewind.thread("a").align([m("a1")])).status).toBe("current");
    await rewind.thread("a").checkpoint();
    expect(await codeOf(b.align(known))).toBe("PAIR_DIVERGED");
    await b.rewind({ to: "c0", scope: "context", delivery: "returned" });
    expect((await b.align([{ anchor: "told", tool: false, returnedTo: "c0" }, m("b0")])).status).toBe("current");
  });

  test("one whose tools had all ended before it goes on", async () => {
    const rewind = await killedBehind([
      ...[turn("a", "a0"), turn("b", "b0"), tool("b", "b0", "echo b >> log")],
      ...[turn("a", "a1"), tool("a", "a1", "echo a >> log")],
    ]);
    expect(await log(rewind)).toBe("b\n");
    expect((await rewind.thread("b").align([result("k"), m("b0")])).status).toBe("current");
    expect(await codeOf(rewind.thread("a").align([result("k"), m("a1")]))).toBe("PAIR_DIVERGED");
  });

  test("the newest pair is that of the timeline, whoever's turns were left out behind it", async () => {
    const left = (thread: string, anchor: string): Step => ({ ...turn(thread, anchor), gate: {} });
    const rewind = await killedBehind(
      [
        ...[{ op: "checkpoint", thread: "b", context: { messages: ["b"] } }, exec("echo 1 >> log; v=kept")],
        ...[{ op: "checkpoint", thread: "a", context: { messages: ["a"] } }, exec("echo 2 >> log; v=lost")],
        left("b", "b0"),
      ],
      { capture: "explicit" },
    );
    expect((await rewind.environment.exec("cat log; echo $v")).stdout).toBe("1\nkept\n");
    expect((await rewind.thread("a").align([m("a")])).status).toBe("new");
    const b = rewind.thread("b");
    await expect(b.align([m("b0")])).rejects.toMatchObject({
      code: "PAIR_DIVERGED",
      hint: expect.stringMatching(/^Rewind the thread to c0, with scope "context": /),
    });
    await b.rewind({ to: "c0", scope: "context", delivery: "returned" });
    await (await b.beginTurn({ messages: ["b", "told"] })).gate({ tools: false });
  });
});

describe.skipIf(lacking(...needed))("killed behind the newest pair of one thread", () => {
  test("F-75: results of calls that run again are accepted, those of others are not, also behind a close", async () => {
    const place = makePlace();
    const rewind = await killedBehind([turn("t", "m0"), tool("t", "m0", "echo 1 >> log")], {}, place);
    const thread = rewind.thread("t");
    thread.runsAgain(["one"]);
    (await thread.enterTool([m("m0")]))?.();
    expect((await thread.align([result("one"), m("m0")])).status).toBe("current");
    expect(await codeOf(thread.align([result("two"), result("one"), m("m0")]))).toBe("PAIR_DIVERGED");
    await endSession(rewind);
    const again = (await useRewind(place, sandbox)).thread("t");
    expect((await again.align([result("one"), m("m0")])).status).toBe("current");
    expect(await codeOf(again.align([result("two"), result("one"), m("m0")]))).toBe("PAIR_DIVERGED");
  });

  test("the files that were left are offered also when an owner that did nothing is killed behind that", async () => {
    const place = makePlace();
    await killBehind(place, [turn("t", "m0"), tool("t", "m0", "echo 1 >> log")], sandbox);
    await killBehind(place, [], sandbox);
    const rewind = await useRewind(place, sandbox);
    const thread = rewind.thread("t");
    await expect(thread.align([result("k"), m("m0")])).rejects.toMatchObject({
      details: { conversation: "c0", environment: "c0", files: "c1" },
    });
    await thread.rewind({ to: "c1", scope: "environment", delivery: "returned" });
    expect(await log(rewind)).toBe("1\n");
    expect((await thread.align([result("k"), m("m0")])).status).toBe("current");
  });

  test("what was recorded before a rewind is not gone: what it told of had been left", async () => {
    const rewind = await killedBehind([
      ...[turn("t", "m0"), put("t", "left"), { op: "rewind", thread: "t", to: "c0" }, put("t", "behind")],
    ]);
    const { journal } = rewind.thread("t");
    expect([journal.get("left"), journal.get("behind")]).toEqual(["returned", undefined]);
  });

  test("a turn without an alignment: with the head's context it is taken, with another it is refused", async () => {
    const rewind = await killedBehind([{ op: "turn", context: { messages: ["m0"] } }, exec("echo 1 >> log")]);
    const thread = rewind.thread("t");
    expect(await codeOf(thread.beginTurn({ messages: ["m0", "m1"] }))).toBe("PAIR_DIVERGED");
    await (await thread.beginTurn({ messages: ["m0"] })).gate();
    await (await thread.beginTurn({ messages: ["m0", "m1"] })).gate();
    expect(thread.head).toBe("c3");
  });

  test("a turn behind a reply without tools is taken: nothing can have been done", async () => {
    const rewind = await killedBehind([{ op: "turn", context: { messages: ["m0"] }, gate: { tools: false } }]);
    await (await rewind.thread("t").beginTurn({ messages: ["m0", "m1"] })).gate();
    expect(rewind.thread("t").head).toBe("c1");
  });
});
