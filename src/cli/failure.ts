// Errors as one line (or one JSON object) on stderr, and as an exit status.
import { CommanderError } from "commander";
import { isRewindError, systemCode } from "../errors.ts";
import { oneLine, safeJson } from "../text/safe.ts";

export const exit = { done: 0, failed: 1, usage: 2 } as const;

export interface Failure {
  readonly code: string;
  readonly message: string;
  readonly hint: string;
  readonly status: number;
}

export function toFailure(error: unknown): Failure {
  if (isRewindError(error)) {
    const { code, message, hint = "" } = error;
    return { code, message, hint, status: code === "BAD_ARGUMENT" ? exit.usage : exit.failed };
  }
  if (error instanceof CommanderError) return usageFailure(error);
  const message = error instanceof Error ? error.message : String(error);
  return { status: exit.failed, ...(knownFailure(error, message) ?? unexpected(error, message)) };
}

function usageFailure(error: CommanderError): Failure {
  const message =
    error.code === "commander.help" ? "No command was given." : sentence(error.message.replace(/^error: /, ""));
  return { code: "BAD_ARGUMENT", message, hint: "See `agentrewind --help`.", status: exit.usage };
}

type Told = Omit<Failure, "status">;

const sqliteCorrupt = /^SQLITE_(CORRUPT|NOTADB)/;

function knownFailure(error: unknown, message: string): Told | undefined {
  const code = String((error as { code?: unknown } | null)?.code ?? "");
  if (isMissingSqlite(code, message)) {
    return {
      code: "NOT_AVAILABLE",
      message: "The native part of better-sqlite3, which keeps the store, is not built for this Node.",
      hint: sqliteHint,
    };
  }
  if (sqliteCorrupt.test(code)) {
    return {
      code: "STORE_CORRUPT",
      message: `The store's catalog cannot be read (${message}).`,
      hint: "Point --store at a store made by AgentRewind, or bring this one back from a backup.",
    };
  }
  if (code.startsWith("SQLITE_")) {
    return {
      code,
      message: `The store cannot be used (${message}).`,
      hint: "Check that its folder is yours and on a disk that can be written; `agentrewind doctor` shows where it lies.",
    };
  }
  return undefined;
}

export const sqliteHint =
  'Run `npm rebuild better-sqlite3`; npm 11 runs the build only where the project\'s package.json has "allowScripts": {"agentrewind": true, "better-sqlite3": true}.';

/** What `bindings` and the loader of shared libraries say. */
function isMissingSqlite(code: string, message: string): boolean {
  if (code === "ERR_DLOPEN_FAILED") return message.includes("better_sqlite3");
  return /Could not locate the bindings file|Cannot find (package|module) '(better-sqlite3|bindings)'/.test(message);
}

function unexpected(error: unknown, message: string): Told {
  const code = systemCode(error);
  if (code === undefined) {
    return {
      code: "UNEXPECTED",
      message: sentence(message),
      hint: "Set AGENTREWIND_DEBUG=1 to see where it happened.",
    };
  }
  const hint =
    code === "EACCES" || code === "EPERM" ? "Check who may use what is named." : "Mend what is named and run it again.";
  return { code, message: sentence(message), hint };
}

const sentence = (text: string): string => {
  const one = text.trim().replace(/\s+/g, " ");
  return /[.!?)]$/.test(one) ? one : `${one}.`;
};

export function printFailure({ code, message, hint }: Failure, json: boolean): void {
  process.stderr.write(
    json ? `${safeJson({ error: { code, message, hint } }, 0)}\n` : `agentrewind: ${oneLine(`${message} ${hint}`)}\n`,
  );
}
