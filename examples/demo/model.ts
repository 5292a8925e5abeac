// The model of the demo: a real one when the environment has a key, otherwise the scripted one behind an HTTP server.
import { ChatOpenAI } from "@langchain/openai";
import { type ModelServer, startModelServer } from "agentrewind/conformance";
import { decide } from "./script.ts";

export interface DemoModel extends AsyncDisposable {
  readonly name: string;
  readonly chat: ChatOpenAI;
  /** The server of the scripted model. */
  readonly server?: ModelServer;
}

export async function createModel(options: { latencyMs: number; scripted: boolean }): Promise<DemoModel> {
  const { OPENAI_API_KEY: apiKey, OPENAI_BASE_URL: baseURL, OPENAI_MODEL } = process.env;
  if (apiKey && !options.scripted) {
    const name = OPENAI_MODEL || "gpt-5-mini";
    const configuration = baseURL ? { baseURL } : {};
    return {
      name,
      chat: new ChatOpenAI({ model: name, apiKey, configuration, maxRetries: 2 }),
      async [Symbol.asyncDispose]() {},
    };
  }
  const server = await startModelServer({ decide, latencyMs: options.latencyMs });
  const chat = new ChatOpenAI({
    model: "scripted",
    apiKey: "none",
    configuration: { baseURL: server.baseUrl },
    maxRetries: 0,
  });
  return { name: "scripted", chat, server, [Symbol.asyncDispose]: server.close };
}
