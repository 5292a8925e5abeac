// What a subagent does outside of the workspace is an effect of the conversation that delegated to it.
import { setTimeout as sleep } from "node:timers/promises";
import { type StructuredTool, tool } from "@langchain/core/tools";
import { MemorySaver } from "@langchain/langgraph";
import type { OpenOptions } from "agentrewind";
import { createAgent } from "langchain";
import { afterEach, describe, expect, test } from "vitest";
import { z } from "zod";
import {
  allText,
  call,
  calls,
  chatModel,
  lastText,
  makeAgent,
  occurrences,
  onThread,
  openScene,
  run,
  type Scene,
  start,
  textOfMessage,
  texts,
} from "../langchain/harness.ts";
import { makeDeepAgent, task } from "./harness.ts";

let scene: Scene;
afterEach(() => scene.close());

let world: string[] = [];
let undone: unknown[] = [];
const options = (): Partial<OpenOptions> => {
  world = [];
  undone = [];
  return {
    compensate: "always",
    effects: {
      send_mail: { class: "irreversible", describe: ({ to }) => `mail to ${to}`, key: ["to"] },
      book_room: { class: "compensable", compensate: ({ room }) => undone.push(room) },
    },
  };
};

/** New ones for each agent that gets them. */
const worldTools = (): StructuredTool[] => [
  tool(
    ({ to }: { to: string }) => {
      world.push(`mail ${to}`);
      return `sent to ${to}`;
    },
    { name: "send_mail", description: "Send a mail.", schema: z.strictObject({ to: z.string() }) },
  ),
  tool(
    ({ room }: { room: number }) => {
      world.push(`room ${room}`);
      return `booked ${room}`;
    },
    { name: "book_room", description: "Book a room.", schema: z.strictObject({ room: z.number() }) },
  ),
];
const mail = (more: object = {}) => call("send_mail", { to: "ann", ...more });
const room = call("book_room", { room: 7 });
const back = call("rewind", { checkpoint: "c0", lesson: "other words" });

type Request = Parameters<typeof allText>[0];
const withoutSystem = (request: Request): Request => ({
  ...request,
  messages: request.messages.filter(({ role }) => role !== "system"),
});
/** What a subagent has seen since it was given its task; undefined for the main agent. */
function subtaskOf(request: Request): string | undefined {
  const all = allText(withoutSystem(request));
  const users = request.messages.filter(({ role }) => role === "user").map(textOfMessage);
  return users.some((text) => /SUBTASK$/.test(text)) ? all.slice(all.lastIndexOf("SUBTASK")) : undefined;
}

const worker = () => ({ name: "worker", description: "Works.", systemPrompt: "WORKER", tools: worldTools() });
const fork = { name: "fork", description: "Works on.", mode: "fork" as const };
const makeMain = () =>
  makeDeepAgent(scene, {
    tools: worldTools() as never,
    subagents: [worker(), fork] as never,
    checkpointer: new MemorySaver(),
  });

describe.each(["worker", "general-purpose", "fork"])("a subagent (%s)", (name) => {
  test("its effects are recorded, told, compensated with the main agent's rewind, and held when they come again", async () => {
    scene = await openScene((request) => {
      const sub = subtaskOf(request);
      if (sub !== undefined) {
        if (/booked 7/.test(sub)) return { content: "sub done" };
        return calls(/sent to ann|already done/.test(sub) ? room : mail());
      }
      const all = allText(request);
      if (all.includes("You are back"))
        return all.includes("sub done") ? { content: "end" } : calls(task("SUBTASK", name));
      return calls(all.includes("sub done") ? back : task("SUBTASK", name));
    }, options());
    const state = await run(makeMain(), start, onThread("t"));
    expect(lastText(state)).toBe("end");
    expect(world).toEqual(["mail ann", "room 7", "room 7"]);
    expect(undone).toEqual([7]);
    expect(texts(state).join("\n")).toContain('do not repeat:\n- mail to ann at c0 -> "sent to ann"');
    expect(scene.rewind.threads()).toEqual(["t"]);
    expect(scene.rewind.thread("t").effects()).toMatchObject([
      { tool: "send_mail", state: "completed", checkpoint: "c0" },
      { tool: "book_room", state: "compensated" },
      { tool: "book_room", state: "completed" },
    ]);
  });

  test("a consent lets it do it once more, and the tool never sees the token", async () => {
    scene = await openScene(
      (request) => {
        const sub = subtaskOf(request);
        if (sub !== undefined) {
          const held = sub.includes("to do it again call with");
          if (occurrences(sub, "sent to ann") > (held ? 1 : 0)) return { content: "sub done" };
          return calls(mail(held ? { confirm: "granted" } : {}));
        }
        const all = allText(request);
        if (all.includes("You are back"))
          return all.includes("sub done") ? { content: "end" } : calls(task("SUBTASK", name));
        return calls(all.includes("sub done") ? back : task("SUBTASK", name));
      },
      { ...options(), onConsent: () => "granted" },
    );
    expect(lastText(await run(makeMain(), start, onThread("t")))).toBe("end");
    expect(world).toEqual(["mail ann", "mail ann"]);
  });

  test("a rewind that would leave its effect behind is refused", async () => {
    scene = await openScene(
      (request) => {
        const sub = subtaskOf(request);
        if (sub !== undefined) return sub.includes("sent to ann") ? { content: "sub done" } : calls(mail());
        const all = allText(request);
        if (all.includes("Not done: Returning to c0")) return { content: "end" };
        return calls(all.includes("sub done") ? back : task("SUBTASK", name));
      },
      { ...options(), cross: ["compensable"] },
    );
    expect(lastText(await run(makeMain(), start, onThread("t")))).toBe("end");
    expect(world).toEqual(["mail ann"]);
  });

  test("what it asks for behind a rewind that ended it is not run, declared or not", async () => {
    let begun = (): void => {};
    const running = new Promise<void>((resolve) => {
      begun = resolve;
    });
    let late: Promise<unknown> | undefined;
    const stubborn = tool(
      () => {
        begun();
        const [send] = worldTools();
        const asked = { type: "tool_call" as const, id: "k1", name: "send_mail", args: { to: "bob" } };
        late = sleep(100).then(() => Promise.allSettled([send?.invoke(asked)]));
        return late.then(() => "late");
      },
      { name: "stubborn", description: "Takes no notice of signals.", schema: z.object({}) },
    );
    scene = await openScene((request) => {
      if (subtaskOf(request) !== undefined) return calls(call("stubborn", {}));
      return allText(request).includes("You are back") ? { content: "end" } : calls(task("SUBTASK", name));
    }, options());
    const agent = makeDeepAgent(scene, {
      tools: [stubborn] as never,
      subagents: [{ ...worker(), tools: [stubborn] }, fork] as never,
    });
    const ended = run(agent, start, onThread("t"));
    await running;
    await scene.rewind.thread("t").rewind({ to: "c0" });
    expect(lastText(await ended)).toBe("end");
    expect(await late).toMatchObject([{ status: "rejected", reason: { code: "STALE_EPOCH" } }]);
    expect(world).toEqual([]);
    expect(scene.rewind.thread("t").effects()).toEqual([]);
  });
});

/** A tool that runs an agent of LangChain's which keeps no state. */
function delegateTool() {
  const inner = createAgent({ model: chatModel(scene.server), tools: worldTools(), checkpointer: false });
  return tool(
    async (_args, { signal }: { signal?: AbortSignal }) => {
      const input = { messages: [{ role: "user", content: "SUBTASK" }] };
      return (await inner.invoke(input, { signal } as never)).messages.at(-1)?.text;
    },
    { name: "delegate", description: "Delegates.", schema: z.object({}) },
  );
}

test("a call that is run again, whose agent begins anew, does not do it again", async () => {
  const stop = new AbortController();
  scene = await openScene((request) => {
    const sub = subtaskOf(request);
    if (sub === undefined)
      return allText(request).includes("sub done") ? { content: "end" } : calls(call("delegate", {}));
    if (sub.includes("already done")) return { content: "sub done" };
    if (!sub.includes("sent to ann")) return calls(mail());
    stop.abort();
    return sleep(100).then(() => ({ content: "sub done" }));
  }, options());
  const agent = makeAgent(scene, { tools: [delegateTool()], checkpointer: new MemorySaver() });
  await expect(run(agent, start, { ...onThread("t"), durability: "sync", signal: stop.signal })).rejects.toThrow();
  expect(lastText(await run(agent, null, onThread("t")))).toBe("end");
  expect(world).toEqual(["mail ann"]);
});

test("an agent of LangChain's that a tool runs: its effects are those of the agent whose tool it is", async () => {
  scene = await openScene((request) => {
    const sub = subtaskOf(request);
    const all = allText(request);
    if (sub !== undefined) {
      return /sent to ann|already done/.test(sub) ? { content: "sub done" } : calls(mail());
    }
    const delegate = calls(call("delegate", {}));
    if (all.includes("You are back")) return all.includes("sub done") ? { content: "end" } : delegate;
    return all.includes("sub done") ? calls(back) : delegate;
  }, options());
  const state = await run(makeAgent(scene, { tools: [delegateTool()] }), start, onThread("t"));
  expect(lastText(state)).toBe("end");
  expect(world).toEqual(["mail ann"]);
  expect(scene.rewind.thread("t").effects()).toMatchObject([{ state: "completed", checkpoint: "c0" }]);
});
