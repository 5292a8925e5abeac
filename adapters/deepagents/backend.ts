// The environment as a deepagents backend: its files, and commands in it. All agents that share the backend share the environment.
import { type Environment, isRewindError, type Rewind } from "agentrewind";
import type { FileDownloadResponse, FileInfo, FileOperationError, SandboxBackendProtocolV2 } from "deepagents";
import { mediaType, readWindow, textOf } from "./content.ts";
import { join, parentOf, toBackend, toWorkspace } from "./paths.ts";
import { globFiles, grepFolder, grepText } from "./search.ts";

export interface RewindBackendOptions {
  /** Seconds until a command of `execute` is ended with all that it started. Default 600. */
  readonly timeoutSeconds?: number;
  /** Besides the environment's own variables. */
  readonly env?: Readonly<Record<string, string>>;
}

/** The protocol, with what it leaves open to a backend decided. */
export type RewindBackend = SandboxBackendProtocolV2 &
  Required<Pick<SandboxBackendProtocolV2, "delete" | "uploadFiles" | "downloadFiles">>;

/**
 * Give it to `createDeepAgent` with the middleware of `agentrewind/langchain`:
 * `rw.attach(createDeepAgent({ backend: rewindBackend(rewind), middleware: [rw] }))`.
 *
 * "/" is the workspace's root for the file tools; commands start there. What a rewind ended (a subagent) gets errors from here on, and changes nothing.
 */
export function rewindBackend(rewind: Rewind, options: RewindBackendOptions = {}): RewindBackend {
  const { timeoutSeconds = 600, env = {} } = options;

  /** The environment, for a caller that a rewind has not ended. @throws STALE_EPOCH */
  const live = (): Environment => {
    rewind.running();
    return rewind.environment;
  };

  const at = (path: string): string => toWorkspace(rewind.environment, path);

  async function write(path: string, data: string | Uint8Array): Promise<void> {
    await live().writeFile(at(path), data);
  }

  return {
    id: `agentrewind:${rewind.workspace}`,

    async ls(path) {
      try {
        const folder = at(path);
        const entries = await live().list(folder);
        return { files: await Promise.all(entries.map(({ name, type }) => infoOf(live(), join(folder, name), type))) };
      } catch (error) {
        return { error: `Cannot list '${path}': ${told(error)}` };
      }
    },

    async read(path, offset = 0, limit = 500) {
      try {
        return readWindow(path, await live().readFile(at(path)), offset, limit);
      } catch (error) {
        return { error: isMissing(error) ? `File '${path}' not found` : `Cannot read '${path}': ${told(error)}` };
      }
    },

    async readRaw(path) {
      try {
        const bytes = await live().readFile(at(path));
        const text = textOf(bytes);
        const now = new Date().toISOString();
        const mimeType = text === undefined ? (mediaType(path) ?? "application/octet-stream") : "text/plain";
        return { data: { content: text ?? bytes, mimeType, created_at: now, modified_at: now } };
      } catch (error) {
        return { error: isMissing(error) ? `File '${path}' not found` : `Cannot read '${path}': ${told(error)}` };
      }
    },

    async write(path, content) {
      try {
        await write(path, content);
        return { path, filesUpdate: null };
      } catch (error) {
        return { error: `Cannot write '${path}': ${told(error)}` };
      }
    },

    async edit(path, oldString, newString, replaceAll = false) {
      try {
        const text = textOf(await live().readFile(at(path)));
        if (text === undefined) return { error: `Cannot edit '${path}': it is a binary file.` };
        if (oldString === "" && text !== "") return { error: "old_string must not be empty: the file is not." };
        const occurrences = oldString === "" ? 1 : text.split(oldString).length - 1;
        if (occurrences === 0)
          return { error: `The text to replace does not occur in '${path}'. Read it again and take the text exactly.` };
        if (occurrences > 1 && !replaceAll) {
          return {
            error: `The text to replace occurs ${occurrences} times in '${path}'. Take more of the lines around it, or set replace_all.`,
          };
        }
        await write(path, oldString === "" ? newString : text.split(oldString).join(newString));
        return { path, filesUpdate: null, occurrences };
      } catch (error) {
        return { error: isMissing(error) ? `File '${path}' not found` : `Cannot edit '${path}': ${told(error)}` };
      }
    },

    async delete(path) {
      try {
        const target = at(path);
        if (target === "") return { error: "The workspace itself cannot be deleted; name what is in it." };
        // Also refuses a folder that a link leads out of the workspace.
        await live().list(parentOf(target));
        const script = '[ -e "$1" ] || [ -L "$1" ] || exit 66; exec rm -rf -- "$1"';
        const { exitCode, stderr } = await live().exec(["sh", "-c", script, "sh", `./${target}`]);
        if (exitCode === 0) return { path, filesUpdate: null };
        return { error: exitCode === 66 ? `'${path}' not found` : `Cannot delete '${path}': ${stderr.trim()}` };
      } catch (error) {
        return { error: isMissing(error) ? `'${path}' not found` : `Cannot delete '${path}': ${told(error)}` };
      }
    },

    async glob(pattern, path = "/") {
      try {
        const folder = at(path);
        await live().list(folder);
        return await globFiles(live(), pattern, folder);
      } catch (error) {
        return { error: `Cannot search '${path}': ${told(error)}` };
      }
    },

    async grep(pattern, path = null, glob = null, maxCount = null) {
      try {
        const start = at(path ?? "/");
        if ((await typeAt(live(), start)) === "folder") return await grepFolder(live(), pattern, start, glob, maxCount);
        const text = textOf(await live().readFile(start));
        return text === undefined ? { matches: [] } : grepText(toBackend(start), text, pattern, maxCount);
      } catch (error) {
        return isMissing(error) ? { matches: [] } : { error: `Cannot search '${path ?? "/"}': ${told(error)}` };
      }
    },

    async execute(command) {
      const environment = live();
      const goesOn = environment.capabilities.shell === true && Object.keys(env).length === 0;
      const place = goesOn ? { shell: rewind.running()?.name ?? "main" } : { env };
      const result = await environment.exec(`exec 2>&1\n${command}`, { timeoutMs: timeoutSeconds * 1000, ...place });
      rewind.running();
      const ended = result.timedOut ? `\n[ended after ${timeoutSeconds} s: it was not done]` : "";
      const killed = result.signal !== null && !result.timedOut ? `\n[ended by ${result.signal}]` : "";
      return {
        output: result.stdout + result.stderr + ended + killed,
        exitCode: result.exitCode,
        truncated: result.truncated,
      };
    },

    async uploadFiles(files) {
      const responses: { path: string; error: FileOperationError | null }[] = [];
      for (const [path, data] of files) {
        responses.push({ path, error: await write(path, data).then(() => null, operationError) });
      }
      return responses;
    },

    async downloadFiles(paths) {
      const responses: FileDownloadResponse[] = [];
      for (const path of paths) {
        try {
          responses.push({ path, content: await live().readFile(at(path)), error: null });
        } catch (error) {
          responses.push({ path, content: null, error: operationError(error) });
        }
      }
      return responses;
    },
  };
}

async function infoOf(environment: Environment, path: string, type: string): Promise<FileInfo> {
  const isFolder = type === "directory" || (type === "symlink" && (await typeAt(environment, path)) === "folder");
  return { path: toBackend(path) + (isFolder ? "/" : ""), is_dir: isFolder };
}

/** Through links, as long as they stay inside. */
const typeAt = (environment: Environment, path: string): Promise<"folder" | "other"> =>
  environment.list(path).then(
    () => "folder" as const,
    () => "other" as const,
  );

const systemCode = (error: unknown): string => {
  const { code, message } = (error ?? {}) as { code?: unknown; message?: unknown };
  // An environment in another process may tell the code in words only.
  return /\bE[A-Z]{3,}\b/.exec(`${code} ${message}`)?.[0] ?? "";
};

const isMissing = (error: unknown): boolean => ["ENOENT", "ENOTDIR"].includes(systemCode(error));

/** deepagents shows these to the model. */
function told(error: unknown): string {
  if (isRewindError(error)) return error.hint === undefined ? error.message : `${error.message} ${error.hint}`;
  return error instanceof Error ? error.message : String(error);
}

function operationError(error: unknown): FileOperationError {
  const code = systemCode(error);
  if (code === "EISDIR") return "is_directory";
  if (code === "EACCES" || code === "EPERM" || code === "EROFS") return "permission_denied";
  return code === "ENOENT" ? "file_not_found" : "invalid_path";
}
