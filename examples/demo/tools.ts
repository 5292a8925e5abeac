// The agent's tools: bash, read_file and edit_file, all acting in one environment.
import { stripVTControlCharacters } from "node:util";
import { ToolMessage, type ToolRuntime, tool } from "langchain";
import { z } from "zod";

/** What the tools need of an environment; `rewind.environment` has it. */
export interface Workspace {
  exec(
    command: string,
    options: { timeoutMs: number; env: Record<string, string> },
  ): Promise<{ exitCode: number | null; signal: string | null; stdout: string; stderr: string; timedOut: boolean }>;
  readFile(path: string): Promise<Uint8Array>;
  writeFile(path: string, data: string): Promise<void>;
}

const timeoutMs = 60_000;
const longest = 12_000;
const env = { NO_COLOR: "1", npm_config_update_notifier: "false" };

export function createTools(workspace: Workspace) {
  const bash = tool(
    ({ command }, { toolCallId }: ToolRuntime) =>
      reported("bash", toolCallId, async () => {
        const { exitCode, signal, stdout, stderr, timedOut } = await workspace.exec(command, { timeoutMs, env });
        const end = timedOut ? `stopped after ${timeoutMs / 1000} s` : `exit code ${exitCode ?? `none (${signal})`}`;
        return bounded([end, stdout.trim(), stderr.trim()].filter((text) => text !== "").join("\n"));
      }),
    {
      name: "bash",
      description: "Runs a shell command in the repository. The answer starts with its exit code.",
      schema: z.object({ command: z.string().min(1) }),
    },
  );

  const readFile = tool(
    ({ path }, { toolCallId }: ToolRuntime) =>
      reported("read_file", toolCallId, async () => bounded(await text(path)) || "(the file is empty)"),
    {
      name: "read_file",
      description: "Returns the text of a file.",
      schema: z.object({ path: z.string().min(1).describe("relative to the repository") }),
    },
  );

  const editFile = tool(
    ({ path, old, new: replacement }, { toolCallId }: ToolRuntime) =>
      reported("edit_file", toolCallId, async () => {
        const before = await text(path);
        const found = before.split(old).length - 1;
        if (found !== 1) throw new Error(`"old" occurs ${found} times in ${path}; it has to occur exactly once.`);
        await workspace.writeFile(
          path,
          before.replace(old, () => replacement),
        );
        return `edited ${path}`;
      }),
    {
      name: "edit_file",
      description: "Replaces one exact piece of a file's text by another.",
      schema: z.object({
        path: z.string().min(1).describe("relative to the repository"),
        old: z.string().min(1).describe("the exact text to replace; has to occur exactly once"),
        new: z.string(),
      }),
    },
  );

  async function text(path: string): Promise<string> {
    return new TextDecoder().decode(await workspace.readFile(path));
  }

  return [bash, readFile, editFile];
}

/** A failure is an answer that the model can act on, not the end of the run. */
async function reported(name: string, toolCallId: string, act: () => Promise<string>): Promise<string | ToolMessage> {
  try {
    return await act();
  } catch (error) {
    const content = error instanceof Error ? error.message : String(error);
    return new ToolMessage({ name, tool_call_id: toolCallId, status: "error", content });
  }
}

function bounded(output: string): string {
  const plain = stripVTControlCharacters(output);
  if (plain.length <= longest) return plain;
  const half = longest / 2;
  return `${plain.slice(0, half)}\n… ${plain.length - longest} characters left out …\n${plain.slice(-half)}`;
}
