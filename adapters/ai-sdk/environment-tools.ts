// The tools bound to the environment, as a tool set of the AI SDK.
import { bindTools, type EnvironmentToolOptions, type Rewind } from "agentrewind";
import { type ToolSet, tool } from "ai";

/**
 * `bash`, `read`, `write`, `edit` and `list` over `rewind.environment`, by name. What was not done is an answer that says why.
 * @param options.thread name it as `withRewind` does, so that a file must have been read in that conversation before it is changed
 */
export function environmentTools(rewind: Rewind, options: EnvironmentToolOptions = {}): ToolSet {
  return Object.fromEntries(
    bindTools(rewind, options).map(({ name, description, schema, run }) => [
      name,
      tool({
        description,
        inputSchema: schema,
        execute: async (args, { abortSignal }) => (await run(args, { signal: abortSignal })).text,
      }),
    ]),
  );
}
