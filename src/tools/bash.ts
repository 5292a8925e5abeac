// The bash tool: a command in the environment, its output bounded and its end always told.
import { stripVTControlCharacters } from "node:util";
import { z } from "zod";
import type { ExecResult } from "../environment/environment.ts";
import { bounded } from "./bounded.ts";
import type { ToolKind } from "./tool.ts";

export interface BashOptions {
  /** Seconds that a command has when the model names none. Default 120. */
  readonly timeoutSeconds?: number;
  /** Seconds that the model may ask for. Default 600. */
  readonly longestSeconds?: number;
  /** Besides the environment's own variables. */
  readonly env?: Readonly<Record<string, string>>;
}

const rest =
  "To see them, narrow the command (grep, head, tail), or send its output to a file and read that with offset and limit";

/** @param keepsShell the environment's shell goes on from call to call */
export function bashTool({ timeoutSeconds = 120, longestSeconds = 600, env = {} }: BashOptions, keepsShell: boolean) {
  const schema = z.object({
    command: z
      .string()
      .min(1)
      .describe(
        keepsShell
          ? "A line for bash. The shell goes on from the call before: folder, variables, functions and jobs are there."
          : "A line for bash. It starts in the workspace's root each time.",
      ),
    timeout: z
      .int()
      .min(1)
      .max(longestSeconds)
      .optional()
      .describe(
        `Seconds until it is ended with all that it started. Default ${timeoutSeconds}, at most ${longestSeconds}.`,
      ),
  });
  const kind: ToolKind<typeof schema> = {
    name: "bash",
    description:
      "Run a shell command in the workspace and get its output, stdout and stderr together, and its exit code when that is not 0. " +
      "No input can be given. Start what keeps running in the background with its output in a file: `npm start > server.log 2>&1 &`.",
    schema,
    async act({ command, timeout = timeoutSeconds }, { environment, conversation, signal, limit, settled }) {
      const variables = { NO_COLOR: "1", ...env };
      const line = `exec 2>&1\n${keepsShell ? exported(variables) : ""}${command}`;
      const result = await environment.exec(line, {
        timeoutMs: timeout * 1000,
        ...(keepsShell ? { shell: conversation } : { env: variables }),
        ...(signal === undefined ? {} : { signal }),
      });
      if (result.signal !== null && !result.timedOut) await settled();
      const end = endOf(result, timeout);
      const output = stripVTControlCharacters(bounded(result.stdout + result.stderr, limit, rest)).replace(/\n+$/, "");
      if (output === "") return end ?? "(no output)";
      return end === null ? output : `${output}\n${end}`;
    },
  };
  return kind;
}

/** A line of its own, so that a shell that goes on has them too. */
const exported = (variables: Readonly<Record<string, string>>): string =>
  `export ${Object.entries(variables)
    .map(([name, value]) => `${name}='${value.replaceAll("'", "'\\''")}'`)
    .join(" ")}\n`;

/** Null for a command that succeeded. */
function endOf({ exitCode, signal, timedOut, truncated }: ExecResult, timeout: number): string | null {
  if (timedOut)
    return `[ended after ${timeout} s: it was not done. Give it a longer timeout, or run it in the background.]`;
  if (truncated) return "[ended: it wrote more than can be kept. Send its output to a file.]";
  if (exitCode === 0) return null;
  return exitCode === null ? `[ended by ${signal}]` : `[exit code ${exitCode}]`;
}
