// agentrewind/openai: rewind for loops over the OpenAI SDK that were written without it.
import type { Rewind, Thread } from "agentrewind";
import {
  type ConversationOptions,
  type Item,
  openRelay,
  type Relay,
  type RunTool,
  recordTools,
  storedFormat,
} from "agentrewind/relay";
import type { Api } from "./api.ts";
import { chatApi } from "./chat-api.ts";
import { type Failure, type Fetch, rewindFetch } from "./fetch.ts";
import { responsesApi } from "./responses-api.ts";

export {
  type ChatEnvironmentTool,
  environmentTools,
  type OpenAIEnvironmentTools,
  type ResponsesEnvironmentTool,
} from "./environment-tools.ts";

export interface WithRewindOptions extends ConversationOptions {
  /**
   * "live" (the default): words pass as they arrive; what a reply that is then taken back has shown stays shown and is not in the conversation.
   * "buffer": nothing passes before it counts.
   */
  readonly streaming?: "live" | "buffer";
}

/** What a client knows of its conversation. */
export interface ClientRewind {
  readonly thread: Thread;
  /** What the model sees of the conversation: without abandoned turns, with the lessons. */
  messages<Message = Item>(): Promise<Message[]>;
  /** After a crash: the conversation to go on from, in the form in which requests take it, instructions included. */
  resume<Message = Item>(): Promise<Message[]>;
  /**
   * A tool of the loop that runs once for each call: its result is recorded, and a loop that starts over gets it without running the tool. A call that a rewind
   * has overtaken does not run. The result must be JSON.
   */
  tool<Args, Result>(
    name: string,
    run: (args: Args) => Promise<Result> | Result,
  ): (args: Args) => Promise<Result | string>;
}

/** As much of OpenAI's client as is needed here; versions 6 and 7 have it. */
export interface ClientLike {
  withOptions(options: { fetch: Fetch }): unknown;
}

/**
 * The same client, whose conversation can be taken back: `const client = withRewind(new OpenAI(), rewind, { thread: "t1" })`. The loop around it stays as it is;
 * one conversation a client.
 */
export function withRewind<Client extends ClientLike>(
  client: Client,
  rewind: Rewind,
  options: WithRewindOptions,
): Client & { readonly rewind: ClientRewind } {
  const thread = rewind.thread(options.thread);
  const relays = new Map<Api, Relay>();
  let latest: Api | undefined;
  const relay = (api: Api): Relay => {
    latest = api;
    let found = relays.get(api);
    if (found === undefined) {
      found = openRelay(rewind, api.format, options);
      relays.set(api, found);
    }
    return found;
  };
  const inner = (client as { fetch?: Fetch }).fetch ?? globalThis.fetch;
  const { makeStatusError } = client as { makeStatusError?: Failure };
  const failure = makeStatusError?.bind(client);
  const fetch = rewindFetch({ fetch: inner, relay, streaming: options.streaming ?? "live", failure });
  const wrapped = client.withOptions({ fetch }) as Client;
  /** The one that this conversation uses, also before its first request here. */
  const used = async (): Promise<Relay> =>
    relay(latest ?? ((await storedFormat(thread)) === responsesApi.format.name ? responsesApi : chatApi));
  const runTool: RunTool = async (...call) => (await used()).runTool(...call);
  recordTools(rewind, options.thread, runTool);
  return handing(wrapped, {
    thread,
    messages: async <Message>() => (await used()).effective() as Promise<Message[]>,
    resume: async <Message>() => (await used()).resume() as Promise<Message[]>,
    tool: (name, run) => (args) => runTool(name, args, run),
  });
}

/** The client, also with other options, hands out what is known of its conversation. */
function handing<Client extends ClientLike>(
  client: Client,
  known: ClientRewind,
): Client & { readonly rewind: ClientRewind } {
  const withOptions = client.withOptions.bind(client);
  return Object.assign(client, {
    rewind: known,
    withOptions: (options: { fetch: Fetch }) => handing(withOptions(options) as Client, known),
  });
}
