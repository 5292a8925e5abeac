// The tools bound to the environment, as a tool set of the AI SDK.
import { bindTools, type EnvironmentToolOptions, type Rewind } from "agentrewind";
import { runRecorded } from "agentrewind/relay";
import { type ToolSet, tool } from "ai";

/**
 * `bash`, `read`, `write`, `edit` and `list` over `rewind.environment`, by name. What was not done is an answer that says why.
 * @param options.thread name it as `withRewind` does: a file must have been read in that conversation before it is changed, and a loop that starts over gets the
 * recorded results
 */
export function environmentTools(rewind: Rewind, options: EnvironmentToolOptions = {}): ToolSet {
  return Object.fromEntries(
    bindTools(rewind, options).map(({ name, description, schema, run }) => [
      name,
      tool({
        description,
        inputSchema: schema,
        execute: (args, { abortSignal, toolCallId: id }) =>
          runRecorded(
            rewind,
            options.thread,
            { name, args, id },
            async (given) => (await run(given, { signal: abortSignal })).text,
          ),
      }),
    ]),
  );
}
