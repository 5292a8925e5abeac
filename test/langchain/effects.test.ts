// Effects, checks and lessons of an agent over a real model server.
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { tool } from "@langchain/core/tools";
import { Command, interrupt, MemorySaver } from "@langchain/langgraph";
import type { OpenOptions } from "agentrewind";
import { createMiddleware, summarizationMiddleware, toolRetryMiddleware } from "langchain";
import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";
import {
  allText,
  call,
  calls,
  chatModel,
  fileTool,
  lastText,
  makeAgent,
  occurrences,
  onThread,
  openScene,
  run,
  type Scene,
  start,
  texts,
  user,
  write,
} from "./harness.ts";

let scene: Scene;
afterEach(() => scene.close());

const effects: NonNullable<OpenOptions["effects"]> = {
  send_mail: { class: "irreversible", describe: ({ to }) => `mail to ${to}`, key: ["to"] },
};

/** Sends by appending to a log outside of the workspace. */
const mailTool = (answer = (to: string): string => `sent to ${to}`) =>
  tool(
    ({ to }: { to: string }) => {
      appendFileSync(join(scene.store, "..", "mails"), `${to}\n`);
      return answer(to);
    },
    { name: "send_mail", description: "Send a mail.", schema: z.strictObject({ to: z.string(), text: z.string() }) },
  );
const mails = (): string[] => {
  const log = join(scene.store, "..", "mails");
  return existsSync(log) ? readFileSync(log, "utf8").trim().split("\n") : [];
};
const mail = (to: string, text: string, more: object = {}) => call("send_mail", { to, text, ...more });
const back = (to: string, lesson: unknown = "write better words") => call("rewind", { checkpoint: to, lesson });

describe("an irreversible tool", () => {
  test("behind the agent's rewind the model is told, the same mail in other words is held, and it is sent once", async () => {
    scene = await openScene(
      (_request, all) => {
        if (all.includes("This answer is final")) return { content: "it was sent already" };
        if (all.includes("You are back")) return calls(mail("ann", "better words"));
        if (all.includes("sent to ann")) return calls(back("c1"));
        return calls(all.includes("wrote a.txt") ? mail("ann", "hello") : write("a.txt", "x"));
      },
      { effects },
    );
    const agent = makeAgent(scene, { tools: [fileTool(scene), mailTool()] });
    const state = await run(agent, start, onThread("t"));
    expect(lastText(state)).toBe("it was sent already");
    expect(mails()).toEqual(["ann"]);
    const all = texts(state).join("\n");
    expect(all).toContain('Already done or delivered, do not repeat:\n- mail to ann at c1 -> "sent to ann"');
    expect(all).toContain("already done at c1: mail to ann -> sent to ann. This answer is final");
    expect(scene.rewind.thread("t").effects()).toMatchObject([{ state: "completed", checkpoint: "c1" }]);
  });

  test("with a consent the model does it once more, and the tool never sees the token", async () => {
    scene = await openScene(
      (_request, all) => {
        if (occurrences(all, "sent to ann") === 3) return { content: "end" };
        if (all.includes("to do it again call with")) return calls(mail("ann", "better", { confirm: "granted" }));
        if (all.includes("You are back")) return calls(mail("ann", "better"));
        return calls(all.includes("sent to ann") ? back("c0") : mail("ann", "hello"));
      },
      { effects, onConsent: () => "granted" },
    );
    const agent = makeAgent(scene, { tools: [mailTool()] });
    expect(lastText(await run(agent, start, onThread("t")))).toBe("end");
    expect(mails()).toEqual(["ann", "ann"]);
  });

  test("replay: the model gets the recorded result as the answer to its new call", async () => {
    scene = await openScene(
      (_request, all) => {
        if (all.includes("better")) return { content: "end" };
        if (all.includes("You are back")) return calls(mail("ann", "better"));
        return calls(all.includes("sent to ann") ? back("c0", "other words") : mail("ann", "hello"));
      },
      { effects, onRepeat: "replay" },
    );
    const agent = makeAgent(scene, { tools: [mailTool()] });
    const state = await run(agent, start, onThread("t"));
    expect(lastText(state)).toBe("end");
    expect(state.messages.at(-2)).toMatchObject({ content: "sent to ann", status: "success" });
    expect(mails()).toEqual(["ann"]);
  });

  /** Asks a person first, or fails a first time. */
  const mailAfter = (before: () => string | undefined) =>
    tool(({ to, text }: { to: string; text: string }) => before() ?? mailTool().invoke({ to, text }), {
      name: "send_mail",
      description: "Send a mail.",
      schema: z.object({ to: z.string(), text: z.string() }),
    });
  const once = () =>
    openScene((_request, all) => (all.includes("sent to ann") ? { content: "end" } : calls(mail("ann", "x"))), {
      effects,
    });

  test("what an interrupt pauses was not done", async () => {
    scene = await once();
    const ask = mailAfter(() => (interrupt("really?") === "yes" ? undefined : "not sent"));
    const agent = makeAgent(scene, { tools: [ask], checkpointer: new MemorySaver() });
    expect(await run(agent, start, onThread("t"))).toHaveProperty("__interrupt__");
    expect(scene.rewind.thread("t").effects()).toEqual([]);
    expect(lastText(await run(agent, new Command({ resume: "yes" }), onThread("t")))).toBe("end");
    expect(mails()).toEqual(["ann"]);
    expect(scene.rewind.thread("t").effects()).toMatchObject([{ state: "completed" }]);
  });

  test("a retry behind an error sends it once more", async () => {
    let tries = 0;
    scene = await once();
    const shaky = mailAfter(() => {
      if (++tries === 1) throw new Error("no connection");
      return undefined;
    });
    const retry = toolRetryMiddleware({ maxRetries: 2, initialDelayMs: 1, jitter: false } as never);
    const agent = makeAgent(scene, { tools: [shaky], before: [retry] });
    expect(lastText(await run(agent, start, onThread("t")))).toBe("end");
    expect([tries, mails()]).toEqual([2, ["ann"]]);
    expect(scene.rewind.thread("t").effects()).toMatchObject([{ state: "completed" }]);
  });

  test("LangGraph's time travel to before it, case 88: the replayed steps do not send it again", async () => {
    scene = await openScene(
      (_request, all) => (/sent to|already done/.test(all) ? { content: "end" } : calls(mail("ann", "x"))),
      {
        effects,
      },
    );
    const agent = makeAgent(scene, { tools: [mailTool()], checkpointer: new MemorySaver() });
    await run(agent, start, onThread("t"));
    const { graph } = agent as unknown as {
      graph: { getStateHistory(config: unknown): AsyncIterable<{ next: string[]; config: object }> };
    };
    let before: object | undefined;
    for await (const state of graph.getStateHistory(onThread("t")))
      if (state.next.includes("model_request")) before = state.config;
    const state = await run(agent, null, before);
    expect(texts(state).join("\n")).toContain("already done at c0");
    expect(mails()).toEqual(["ann"]);
  });

  test("a rewind that would leave it behind is refused with the checkpoint to use", async () => {
    scene = await openScene(
      (_request, all) => {
        if (all.includes("You are back at c1")) return { content: "end" };
        if (all.includes("that you can return to is c1")) return calls(back("c1"));
        if (all.includes("wrote b.txt")) return calls(back("c0"));
        return calls(all.includes("sent to ann") ? write("b.txt", "x") : mail("ann", "x"));
      },
      { effects, cross: ["reversible"] },
    );
    const agent = makeAgent(scene, { tools: [fileTool(scene), mailTool()] });
    expect(lastText(await run(agent, start, onThread("t")))).toBe("end");
    expect(scene.files()).toEqual([]);
    expect(mails()).toEqual(["ann"]);
  });
});

test.each([
  ["a text", "booked 7", "booked 7"],
  ["an object", { room: 7, code: "x" }, { room: 7, code: "x" }],
  ["digits that are no number", "007", "007"],
])("compensate gets what the tool returned: %s", async (_, given, expected) => {
  const undone: unknown[] = [];
  const room = { class: "compensable" as const, compensate: (_args: unknown, result: unknown) => undone.push(result) };
  scene = await openScene(
    (_request, all) => {
      if (all.includes("You are back")) return { content: "end" };
      return calls(all.includes('"name":"book_room"') ? back("c0") : call("book_room", {}));
    },
    { effects: { book_room: room }, compensate: "always" },
  );
  const book = tool(() => given, { name: "book_room", description: "Book.", schema: z.object({}) });
  expect(lastText(await run(makeAgent(scene, { tools: [book] }), start, onThread("t")))).toBe("end");
  expect(undone).toEqual([expected]);
  const shown = typeof given === "string" ? given : JSON.stringify(given);
  expect(scene.rewind.thread("t").effects()).toMatchObject([{ state: "compensated", result: shown }]);
});

describe("a check", () => {
  const scripted = (to: string) => (_request: unknown, all: string) => {
    if (/You are back|was taken back/.test(all)) return { content: "end" };
    if (all.includes("wrote b.txt")) return calls(back(to));
    return calls(write(all.includes("wrote a.txt") ? "b.txt" : "a.txt", "x"));
  };

  test("that fails: the agent stays where it was and reads why", async () => {
    scene = await openScene(scripted("c0"));
    const agent = makeAgent(scene, { options: { verify: "echo a.txt is missing; test -e a.txt" } });
    const state = await run(agent, start, onThread("t"));
    expect(lastText(state)).toBe("end");
    expect(scene.files()).toEqual(["a.txt", "b.txt"]);
    expect(texts(state).join("\n")).toMatch(/Not done: The check .* failed at c0 \(exit code 1\).*a\.txt is missing/s);
    expect(scene.rewind.thread("t").lessons()).toEqual([]);
  });

  test("that succeeds: the rewind counts", async () => {
    scene = await openScene(scripted("c1"));
    const agent = makeAgent(scene, { options: { verify: "test -e a.txt" } });
    expect(lastText(await run(agent, start, onThread("t")))).toBe("end");
    expect(scene.files()).toEqual(["a.txt"]);
  });
});

describe("lessons", () => {
  const structured = { attempted: "wrote b.txt", disproved: "that b.txt is wanted", instead: "leave b.txt alone" };
  const told = "Tried: wrote b.txt. Proved false: that b.txt is wanted. Instead: leave b.txt alone.";

  test("in parts, by the agent", async () => {
    scene = await openScene((_request, all) => {
      if (all.includes("You are back")) return { content: "end" };
      return calls(all.includes("wrote b.txt") ? back("c0", structured) : write("b.txt", "x"));
    });
    const state = await run(makeAgent(scene), start, onThread("t"));
    expect(texts(state).join("\n")).toContain(`1. ${told}`);
    expect(scene.rewind.thread("t").lessons()).toMatchObject([{ parts: structured }]);
  });

  test("case 64: after the framework has summarized the conversation they are still there, once, at every turn", async () => {
    const seen: string[] = [];
    scene = await openScene((request, all) => {
      if (request.tools === undefined || request.tools.length === 0) return { content: "SUMMARY" };
      if (all.includes("SUMMARY")) seen.push(all);
      const next = [1, 2, 3, 4, 5].find((n) => !scene.files().includes(`${n}.txt`));
      if (scene.rewind.thread("t").lessons().length === 0)
        return calls(scene.files().includes("b.txt") ? back("c0", structured) : write("b.txt", "x"));
      return next === undefined ? { content: "end" } : calls(write(`${next}.txt`, "x"));
    });
    const summarize = summarizationMiddleware({
      model: chatModel(scene.server),
      trigger: { messages: 6 },
      keep: { messages: 2 },
    } as never);
    const agent = makeAgent(scene, { before: [summarize], checkpointer: new MemorySaver() });
    const config = { ...onThread("t"), recursionLimit: 100 };
    expect(lastText(await run(agent, start, config))).toBe("end");
    await run(agent, user("and again"), config);
    expect(seen.length).toBeGreaterThan(3);
    for (const all of seen) expect(occurrences(all, told)).toBe(1);
    const first = scene.server.requests.map(allText).filter((all) => all.includes("They still hold"));
    expect(new Set(first.map((all) => all.indexOf("Lessons from attempts"))).size, "always at the same place").toBe(1);
  });
});

test("a tool that is not declared runs as it did, and another middleware sees the call as the model made it", async () => {
  const seen: unknown[] = [];
  const watching = createMiddleware({
    name: "Watching",
    wrapToolCall(request, handler) {
      seen.push(request.toolCall.args);
      return handler(request);
    },
  });
  scene = await openScene(
    (_request, all) => (all.includes("wrote a.txt") ? { content: "end" } : calls(write("a.txt", "x"))),
    {
      effects,
    },
  );
  await run(makeAgent(scene, { after: [watching] }), start, onThread("t"));
  expect(seen).toEqual([{ path: "a.txt", text: "x" }]);
  expect(scene.rewind.thread("t").effects()).toEqual([]);
});
