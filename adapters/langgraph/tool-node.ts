// LangGraph's ToolNode, with a gate before each of its tools.
import type { BaseMessage, ToolMessage } from "@langchain/core/messages";
import type { Command, LangGraphRunnableConfig } from "@langchain/langgraph";
import { ToolNode, type ToolNodeOptions } from "@langchain/langgraph/prebuilt";

type Tools = ConstructorParameters<typeof ToolNode>[0];
type Call = Parameters<ToolNode["runTool"]>[0];
type Result = ToolMessage | Command;

export interface ToolGate {
  /** Name of the messages' channel. */
  readonly messagesKey: string;
  /** Runs the tool (`run`, perhaps with other arguments), or says why it is not run. */
  pass(
    call: Call,
    config: LangGraphRunnableConfig,
    state: unknown,
    run: (call: Call) => Promise<Result>,
  ): Promise<Result>;
}

export class GatedToolNode extends ToolNode {
  readonly #gate: ToolGate;

  constructor(tools: Tools, gate: ToolGate, options?: ToolNodeOptions) {
    super(tools, options);
    this.#gate = gate;
  }

  protected override runTool(call: Call, config: LangGraphRunnableConfig, state: unknown): Promise<Result> {
    return this.#gate.pass(call, config, state, (given) => super.runTool(given, config, state));
  }

  /** LangGraph's own reads and writes the channel `messages` only. */
  protected override async run(input: unknown, config: LangGraphRunnableConfig): Promise<unknown> {
    const { messagesKey: key } = this.#gate;
    const state = input as Record<string, unknown>;
    if (key === "messages" || "lg_tool_call" in state) return super.run(input, config);
    const result: unknown = await super.run({ ...state, messages: state[key] as BaseMessage[] }, config);
    return Array.isArray(result) ? result.map((part) => renamed(part, key)) : renamed(result, key);
  }
}

function renamed(part: unknown, key: string): unknown {
  const { messages, ...rest } = part as Record<string, unknown>;
  return Object.keys(rest).length === 0 && messages !== undefined ? { [key]: messages } : part;
}
