// The tools bound to the environment, as OpenAI function tools: for Chat Completions (also `runTools`) and for Responses.
import { bindTools, type EnvironmentTool, type EnvironmentToolOptions, type Rewind } from "agentrewind";
import { runRecorded } from "agentrewind/relay";
import { z } from "zod";

type Parameters = Record<string, unknown>;

/** As OpenAI's client takes it, for `create` and for `runTools`. */
export interface ChatEnvironmentTool {
  readonly type: "function";
  readonly function: {
    readonly name: string;
    readonly description: string;
    readonly parameters: Parameters;
    parse(input: string): Record<string, unknown>;
    function(
      args: Record<string, unknown>,
      runner?: { readonly controller?: { readonly signal: AbortSignal } },
    ): Promise<string>;
  };
}

export interface ResponsesEnvironmentTool {
  readonly type: "function";
  readonly name: string;
  readonly description: string;
  readonly parameters: Parameters;
  readonly strict: false;
}

export interface OpenAIEnvironmentTools {
  /** For `chat.completions`: `create` and `stream` read the definitions, `runTools` calls them as well. */
  readonly chat: ChatEnvironmentTool[];
  /** For `responses`. */
  readonly responses: ResponsesEnvironmentTool[];
  /** True for a name of these tools. */
  has(name: string): boolean;
  /**
   * Runs a call in a loop of your own.
   * @param args as the model sent them, JSON
   * @returns the text for the tool message, or for the `function_call_output`
   */
  run(name: string, args: string, options?: { readonly signal?: AbortSignal }): Promise<string>;
}

/**
 * `bash`, `read`, `write`, `edit` and `list` over `rewind.environment`.
 * @param options.thread name it as `withRewind` does: a file must have been read in that conversation before it is changed, and a loop that starts over gets the
 * recorded results
 */
export function environmentTools(rewind: Rewind, options: EnvironmentToolOptions = {}): OpenAIEnvironmentTools {
  const tools = bindTools(rewind, options);
  const named = new Map(tools.map((tool) => [tool.name, tool]));
  const run = (tool: EnvironmentTool, args: Record<string, unknown>, signal: AbortSignal | undefined) =>
    runRecorded(
      rewind,
      options.thread,
      { name: tool.name, args },
      async (given) => (await tool.run(given, { signal })).text,
    );
  return {
    chat: tools.map((tool) => chatTool(tool, run)),
    responses: tools.map((tool) => ({
      type: "function",
      name: tool.name,
      description: tool.description,
      parameters: parametersOf(tool),
      strict: false,
    })),
    has: (name) => named.has(name),
    async run(name, args, { signal } = {}) {
      const tool = named.get(name);
      if (tool === undefined) return `Not done: there is no tool ${name}. There are ${[...named.keys()].join(", ")}.`;
      return run(tool, parsed(args), signal);
    },
  };
}

type Run = (tool: EnvironmentTool, args: Record<string, unknown>, signal: AbortSignal | undefined) => Promise<string>;

const chatTool = (tool: EnvironmentTool, run: Run): ChatEnvironmentTool => ({
  type: "function",
  function: {
    name: tool.name,
    description: tool.description,
    parameters: parametersOf(tool),
    parse: parsed,
    function: (args, runner) => run(tool, args, runner?.controller?.signal),
  },
});

/** What is no JSON fails where the tool checks its arguments, so that the model is told in the same words. */
function parsed(args: string): Record<string, unknown> {
  try {
    return JSON.parse(args === "" ? "{}" : args);
  } catch {
    return args as never;
  }
}

function parametersOf({ schema }: EnvironmentTool): Parameters {
  const { $schema: _, ...parameters } = z.toJSONSchema(schema, { io: "input" });
  return parameters;
}
