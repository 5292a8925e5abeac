// The error family: one class, a stable code per kind of failure, and a hint that says what to do.

/** Stable codes. Each has a heading in docs/errors.md. */
export const errorCodes = [
  "AMBIGUOUS_MATCH",
  "BAD_ARGUMENT",
  "BAD_CHECKPOINT",
  "BRANCH_ENDED",
  "BRANCH_INSIDE_WORKSPACE",
  "BUDGET_SPENT",
  "BUNDLE_DAMAGED",
  "CAPTURE_FAILED",
  "CLOSED",
  "COMMAND_FAILED",
  "CONTROL_FAILED",
  "DISK_FULL",
  "DURABILITY_EXIT",
  "EFFECT_CROSSED",
  "ENVIRONMENT_BUSY",
  "FILE_CHANGED",
  "FILE_NOT_READ",
  "FILE_TOO_LARGE",
  "FOLDER_NOT_EMPTY",
  "FOLDER_NOT_REMOVED",
  "GATE_MISSING",
  "GC_RUNNING",
  "HISTORY_UNKNOWN",
  "HOLDER_CHANGED",
  "INSIDE_TOOL",
  "LESSON_EMPTY",
  "NOTHING_TO_REWIND",
  "NOTHING_TO_UNDO",
  "NOT_ATTACHED",
  "NOT_AVAILABLE",
  "NOT_RESTORABLE",
  "NOT_TEXT",
  "NO_FILE",
  "NO_MATCH",
  "NO_THREAD",
  "OBSERVING",
  "PAIR_DIVERGED",
  "PATH_OUTSIDE",
  "PROCESSES_NOT_CAPTURED",
  "PROCESSES_NOT_RESTORED",
  "REPLAY_DIVERGED",
  "RESTORE_FAILED",
  "SANDBOX_FAILED",
  "SERIALIZER_MISMATCH",
  "SHARED_ENVIRONMENT",
  "STALE_EPOCH",
  "STORE_CORRUPT",
  "STORE_INSIDE_WORKSPACE",
  "STORE_TOO_NEW",
  "UNKNOWN_BRANCH",
  "UNKNOWN_CHECKPOINT",
  "UNLIKE_MACHINE",
  "VERIFY_FAILED",
  "WORKSPACE_GONE",
  "WORKSPACE_TOO_BROAD",
  "WRITE_FAILED",
  "WRONG_KIND",
] as const;

export type ErrorCode = (typeof errorCodes)[number];

const marker = Symbol.for("agentrewind.error");

export interface RewindErrorOptions {
  /** What the reader can do about it, one sentence. */
  hint?: string;
  /** For a model, where it cannot do what `hint` says. */
  readonly modelHint?: string;
  /** The ids and values involved, for programs. */
  details?: Record<string, unknown>;
  cause?: unknown;
}

/** Every failure that AgentRewind reports. `message` says what happened, `hint` what to do. */
export class RewindError extends Error {
  readonly code: ErrorCode;
  readonly hint: string | undefined;
  /** In the place of `hint` for a model, whose rewind tool takes a checkpoint and a lesson alone. */
  readonly modelHint: string | undefined;
  readonly details: Record<string, unknown>;
  readonly [marker] = true;

  constructor(code: ErrorCode, message: string, options: RewindErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = "RewindError";
    this.code = code;
    this.hint = options.hint;
    this.modelHint = options.modelHint;
    this.details = options.details ?? {};
  }

  toJSON(): { code: ErrorCode; message: string; hint?: string; details?: Record<string, unknown> } {
    return {
      code: this.code,
      message: this.message,
      ...(this.hint === undefined ? {} : { hint: this.hint }),
      ...(Object.keys(this.details).length === 0 ? {} : { details: this.details }),
    };
  }
}

/** True for a RewindError, also one made by another copy of this package. Narrow by `code`. */
export function isRewindError(value: unknown, code?: ErrorCode): value is RewindError {
  if (typeof value !== "object" || value === null || (value as Record<symbol, unknown>)[marker] !== true) return false;
  return code === undefined || (value as RewindError).code === code;
}

const diskFull = new Set(["ENOSPC", "EDQUOT"]);

/** The `code` of a system error ("ENOENT"), or undefined. */
export function systemCode(error: unknown): string | undefined {
  const code = (error as { code?: unknown } | null)?.code;
  return typeof code === "string" && /^E[A-Z0-9]+$/.test(code) ? code : undefined;
}

/** What a disk that fails or may not be written says of a change; of SQLite's codes the beginning. */
const refused = ["EIO", "EROFS", "SQLITE_IOERR", "SQLITE_READONLY"];
const reading = /^(?:read|scan|get|l?stat)/;

/**
 * Turns what a full disk says (ENOSPC, EDQUOT, SQLite's form of them) into DISK_FULL, and what a broken or read-only one says of a write into WRITE_FAILED;
 * other errors come back as they are.
 */
export function asWriteFailure(error: unknown, where: string): unknown {
  const { code, syscall } = (error ?? {}) as { code?: unknown; syscall?: unknown };
  if (typeof code !== "string") return error;
  // SQLITE_IOERR_SHMSIZE: the index of SQLite's log could not be made longer.
  if (diskFull.has(code) || code === "SQLITE_FULL" || code === "SQLITE_IOERR_SHMSIZE") {
    return new RewindError("DISK_FULL", `No space left on the device while writing ${where}.`, {
      hint: "Free some space and try again; what was stored before is intact.",
      cause: error,
    });
  }
  if (!refused.some((one) => code.startsWith(one)) || reading.test(String(syscall))) return error;
  return new RewindError("WRITE_FAILED", `The disk refused a write to ${where} (${code}).`, {
    hint: "Look at the disk and how it is mounted, then try again; what was stored before is as it was.",
    cause: error,
  });
}
