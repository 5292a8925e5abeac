// The tools bound to the environment, as LangChain tools: for createAgent and for LangGraph's ToolNode.
import { type DynamicStructuredTool, tool } from "@langchain/core/tools";
import { bindTools, type EnvironmentTool, type EnvironmentToolOptions, type Rewind } from "agentrewind";
import { failure } from "../graph-state/tools.ts";

/** What LangChain passes as second argument, as far as it is used here. */
interface Runtime {
  readonly signal?: AbortSignal;
  readonly toolCallId?: string;
  readonly toolCall?: { readonly id?: string };
}

/** `bash`, `read`, `write`, `edit` and `list` over `rewind.environment`. What was not done is a result with status "error". */
export function environmentTools(rewind: Rewind, options: EnvironmentToolOptions = {}): DynamicStructuredTool[] {
  return bindTools(rewind, options).map(langchainTool);
}

function langchainTool({ name, description, schema, run }: EnvironmentTool): DynamicStructuredTool {
  const call = async (args: unknown, runtime: unknown): Promise<unknown> => {
    const { signal, toolCallId, toolCall } = (runtime ?? {}) as Runtime;
    const { text, error } = await run(args, { signal });
    const callId = toolCall?.id ?? toolCallId;
    return error === undefined || callId === undefined ? text : failure(name, callId, text);
  };
  return tool(call as never, { name, description, schema }) as unknown as DynamicStructuredTool;
}
