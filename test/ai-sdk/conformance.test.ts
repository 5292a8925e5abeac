// generateText, streamText and ToolLoopAgent pass the exported adapter suite, over both of OpenAI's APIs.
import { createOpenAI } from "@ai-sdk/openai";
import { withRewind } from "agentrewind/ai-sdk";
import { type AdapterInitializer, adapterSuite } from "agentrewind/conformance";
import {
  generateText,
  jsonSchema,
  type ModelMessage,
  stepCountIs,
  streamText,
  ToolLoopAgent,
  type ToolSet,
  tool,
} from "ai";
import { describe, test } from "vitest";

type Model = ReturnType<typeof withRewind>;
type Drive = (
  model: Model,
  tools: ToolSet,
  messages: ModelMessage[],
) => Promise<{ text: string; messages: ModelMessage[] }>;

const stopWhen = stepCountIs(40);

const drives: Readonly<Record<string, Drive>> = {
  async generateText(model, tools, messages) {
    const { text, response } = await generateText({ model, tools, messages, stopWhen, maxRetries: 0 });
    return { text, messages: response.messages };
  },
  async streamText(model, tools, messages) {
    const result = streamText({ model, tools, messages, stopWhen, maxRetries: 0, onError: () => {} });
    for await (const part of result.fullStream) if (part.type === "error") throw part.error;
    return { text: await result.text, messages: (await result.response).messages };
  },
  async ToolLoopAgent(model, tools, messages) {
    const agent = new ToolLoopAgent({ model, tools, stopWhen, instructions: "Be brief.", maxRetries: 0 });
    const { text, response } = await agent.generate({ messages });
    return { text, messages: response.messages };
  },
};

const overDrive = (name: string, drive: Drive, api: "chat" | "responses"): AdapterInitializer => ({
  name,
  start({ baseUrl, rewind, thread, tool: { name: toolName, description, parameters, run } }) {
    const provider = createOpenAI({ apiKey: "none", baseURL: baseUrl });
    const model = withRewind(api === "chat" ? provider.chat("scripted") : provider.responses("scripted"), rewind, {
      thread,
    });
    const execute = model.rewind.execute(toolName, (args: { path: string; text: string }) => run(args));
    const tools = {
      [toolName]: tool({ description, inputSchema: jsonSchema(parameters), execute: (args) => execute(args as never) }),
    };
    const messages: ModelMessage[] = [];
    return {
      async say(content) {
        messages.push({ role: "user", content });
        const said = await drive(model, tools as never, messages);
        messages.push(...said.messages);
        return said.text;
      },
    };
  },
});

describe.each([
  ["generateText", "chat"],
  ["streamText", "responses"],
  ["streamText", "chat"],
  ["ToolLoopAgent", "responses"],
] as const)("%s, %s", (name, api) => {
  for (const { name: what, run } of adapterSuite(overDrive(name, drives[name] as Drive, api))) test(what, run);
});
