// Calls that a model makes inside of a tool: the tools of a subagent are those of the conversation whose tool runs it.
import { AsyncLocalStorage } from "node:async_hooks";
import type { BaseMessage } from "@langchain/core/messages";
import type { ToolCall } from "@langchain/core/messages/tool";
import { RunnableToolLike } from "@langchain/core/runnables";
import { StructuredTool } from "@langchain/core/tools";
import { callsOf } from "./messages.ts";

/** A call that a tool is asked for by a model. */
export type InnerCall = Pick<ToolCall, "id" | "name" | "args">;

export interface OuterCall {
  readonly call: { readonly id?: string | undefined; readonly name: string };
  /**
   * Answers a call inside of it.
   * @param reply id of the message that holds the call, where it is known
   * @param invoke runs the tool
   */
  answer(call: InnerCall, reply: string | undefined, invoke: (args: InnerCall["args"]) => Promise<unknown>): unknown;
}

const outer = new AsyncLocalStorage<OuterCall>();

type Invoke = (this: { readonly name: string }, input: unknown, config?: unknown) => Promise<unknown>;

let installed = false;

/**
 * Agents that run inside of a tool take no middleware from outside, and their tools cannot be reached from there: LangChain's tools themselves look who asks.
 * Outside of `insideOf` they do what they did.
 */
function install(): void {
  if (installed) return;
  installed = true;
  for (const { prototype } of [StructuredTool, RunnableToolLike] as unknown as { prototype: { invoke: Invoke } }[]) {
    const { invoke } = prototype;
    prototype.invoke = async function answered(input, config) {
      const around = outer.getStore();
      if (around === undefined || !isCall(input) || isSame(input, around.call)) return invoke.call(this, input, config);
      return around.answer(input, replyWith(input, config), (args) => invoke.call(this, { ...input, args }, config));
    };
  }
}

/** Runs a tool: what models call inside of it is answered by `call`. */
export function insideOf<T>(call: OuterCall, work: () => T): T {
  install();
  return outer.run(call, work);
}

const isCall = (input: unknown): input is InnerCall => (input as { type?: unknown } | null)?.type === "tool_call";

const isSame = (one: InnerCall, other: OuterCall["call"]): boolean => one.id === other.id && one.name === other.name;

/** Frameworks give a tool the state that it was called in. */
function replyWith({ id }: InnerCall, config: unknown): string | undefined {
  const { messages } = ((config as { state?: unknown } | undefined)?.state ?? {}) as { messages?: unknown };
  if (!Array.isArray(messages)) return undefined;
  return (messages as BaseMessage[]).findLast((message) => callsOf(message).some((call) => call.id === id))?.id;
}
