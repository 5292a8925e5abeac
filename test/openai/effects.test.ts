// What a tool does outside of the files is done once, however often the conversation goes back or starts over.

import { withRewind } from "agentrewind/openai";
import OpenAI from "openai";
import type { ChatCompletionMessageParam, ChatCompletionTool } from "openai/resources/chat/completions";
import { afterEach, expect, it } from "vitest";
import { allText, call, calls, openScene, type Scene, type Script } from "../langchain/harness.ts";

let scene: Scene;
afterEach(async () => scene?.close());

const mailTool: ChatCompletionTool = {
  type: "function",
  function: { name: "send_mail", parameters: { type: "object", properties: { to: { type: "string" } } } },
};
const effects = {
  send_mail: { class: "irreversible" as const, describe: ({ to }: { to?: unknown }) => `a mail to ${to}` },
};

/** Sends a mail, rewinds to before it, sends it again, ends. */
const script: Script = (_request, all) => {
  if (all.includes("already done")) return { content: "it was sent before" };
  if (all.includes("You are back at")) return calls(call("send_mail", { to: "ann" }));
  if (all.includes("sent to ann")) return calls(call("rewind", { checkpoint: "c0", lesson: "wrong" }));
  return calls(call("send_mail", { to: "ann" }));
};

async function loop(sent: string[]): Promise<string> {
  const openai = withRewind(
    new OpenAI({ apiKey: "none", baseURL: scene.server.baseUrl, maxRetries: 0 }),
    scene.rewind,
    {
      thread: "t1",
    },
  );
  const send = openai.rewind.tool("send_mail", ({ to }: { to: string }) => {
    sent.push(to);
    return `sent to ${to}`;
  });
  const messages: ChatCompletionMessageParam[] = [{ role: "user", content: "go" }];
  for (;;) {
    const completion = await openai.chat.completions.create({ model: "scripted", messages, tools: [mailTool] });
    const message = completion.choices[0]?.message;
    if (message === undefined) throw new Error("no message");
    messages.push(message);
    if (message.tool_calls === undefined) return message.content ?? "";
    for (const one of message.tool_calls) {
      if (one.type !== "function") continue;
      messages.push({ role: "tool", tool_call_id: one.id, content: await send(JSON.parse(one.function.arguments)) });
    }
  }
}

it("an equivalent call behind a rewind is held, and the model is told of the first", async () => {
  scene = await openScene(script, { effects });
  const sent: string[] = [];
  expect(await loop(sent)).toBe("it was sent before");
  expect(sent).toEqual(["ann"]);
  const told = scene.server.requests.map(allText).find((all) => all.includes("You are back at")) ?? "";
  expect(told).toMatch(/do not repeat:[\s\S]*a mail to ann/);
});

it("a check that fails after a rewind: the state that was left comes back, and the model is told", async () => {
  scene = await openScene((_request, all) => {
    if (all.includes("Not done")) return { content: "stays" };
    if (all.includes("sent to ann")) return calls(call("rewind", { checkpoint: "c0", lesson: "wrong" }));
    return calls(call("send_mail", { to: "ann" }));
  });
  const openai = withRewind(
    new OpenAI({ apiKey: "none", baseURL: scene.server.baseUrl, maxRetries: 0 }),
    scene.rewind,
    {
      thread: "t1",
      verify: "echo the tests are red; exit 3",
    },
  );
  const messages: ChatCompletionMessageParam[] = [{ role: "user", content: "go" }];
  const ask = async () => {
    const completion = await openai.chat.completions.create({ model: "scripted", messages, tools: [mailTool] });
    const message = completion.choices[0]?.message;
    messages.push(message as ChatCompletionMessageParam);
    return message;
  };
  const called = (await ask())?.tool_calls?.[0];
  messages.push({ role: "tool", tool_call_id: called?.id ?? "", content: "sent to ann" });
  expect((await ask())?.content).toBe("stays");
  expect(allText(scene.server.requests.at(-1) as never)).toContain("the tests are red");
  expect(scene.rewind.thread("t1").epoch).toBe(0);
});
