// Every form of loop over the OpenAI SDK passes the exported adapter suite.
import { type AdapterInitializer, adapterSuite } from "agentrewind/conformance";
import { withRewind } from "agentrewind/openai";
import OpenAI from "openai";
import { describe, test } from "vitest";
import { type Client, type Loop, loops } from "./harness.ts";

const overLoop = (name: string, loop: Loop): AdapterInitializer => ({
  name,
  start({ baseUrl, rewind, thread, tool }) {
    const openai = withRewind(new OpenAI({ apiKey: "none", baseURL: baseUrl, maxRetries: 0 }), rewind, { thread });
    const list: unknown[] = [];
    const run = openai.rewind.tool(tool.name, (args: { path: string; text: string }) => tool.run(args));
    return { say: (text) => loop(openai as Client, (_name, args) => run(args as never), text, list) };
  },
});

describe.each(Object.entries(loops).filter(([name]) => !name.includes("previous_response_id")))("%s", (name, loop) => {
  for (const { name: what, run } of adapterSuite(overLoop(name, loop))) test(what, run);
});
