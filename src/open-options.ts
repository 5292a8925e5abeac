// The options of openRewind.
import { z } from "zod";
import { type CaptureOption, captureOption } from "./coordinator/policy/option.ts";
import { type DirectorySettings, directorySettings } from "./environment/directory/programs/policy.ts";
import type { Environment } from "./environment/environment.ts";
import { type SandboxOptions, sandboxOptions } from "./environment/sandbox/options.ts";
import { RewindError } from "./errors.ts";
import type { ObserveReport } from "./observe/report.ts";
import { type EffectOptions, effectOptions } from "./session/effect-rules.ts";
import type { Budget, Lesson } from "./session/types.ts";

export interface OpenOptions extends EffectOptions {
  /** The directory that the agent works in. */
  readonly workspace: string;
  /** Folder of the store. Default: the user's, `$XDG_STATE_HOME/agentrewind`. */
  readonly store?: string;
  /**
   * What is captured. "directory" (the default): the workspace's files, in place. "sandbox" (Linux, root): all files and the live processes of a machine of the agent's own.
   * "auto" is the strongest directory support here.
   */
  readonly environment?: "directory" | "auto" | "sandbox" | Environment;
  /** Of environment "directory". */
  readonly directory?: DirectorySettings;
  /** Of environment "sandbox". */
  readonly sandbox?: SandboxOptions;
  /**
   * How changes are found. "scan" looks at every file each time, and in a sandbox at all of the processes' memory. "auto" (the default) only at what a watcher names, where one sees everything; in a
   * sandbox a shell that knows what it knew before its command is taken for unchanged. "ebpf" (of environment "sandbox"): as "auto", and programs in the kernel count what the sandbox's
   * processes do, so that a turn in which none of them did anything needs no look at all; calls of the processes cost a little more (bpf/README.md).
   * `{ observe: true }`: turns are only classified, nothing is captured, and nothing can be taken back.
   */
  readonly inspector?: "auto" | "scan" | "ebpf" | ObserveOption;
  /** What a reply's tools wait for. Default "captured". */
  readonly gate?: "captured" | "durable";
  /**
   * When a pair is captured. "every" (the default): at each turn. "effects": unless it is certain that nothing changed. `{ before, after }`: around calls that may do
   * something of a kind ("delete", "git", …; see the README). "explicit": when somebody asks for it. Or a function of the turn. Whatever it says, what a rewind leaves is captured, and
   * nothing irreversible runs behind a turn that is not. A turn that was not captured is listed and cannot be returned to.
   */
  readonly capture?: CaptureOption;
  /** Glob patterns, relative to the workspace, of what is neither captured nor touched. Nothing is excluded by default. */
  readonly exclude?: readonly string[];
  /** What a turn does when its environment cannot be captured. Default "continue": the checkpoint is listed as not restorable. */
  readonly onCaptureFailure?: "continue" | "stop";
  /** Limits of the agent's own rewinds. Default `{ rewinds: 10, perCheckpoint: 3 }`. */
  readonly budget?: Partial<Budget>;
  /** How lessons are summed up that have become longer than one message takes (8,000 characters). Default: the newest are told, the others counted. */
  readonly lessons?: { readonly summarize: (lessons: readonly Lesson[]) => string | Promise<string> };
  /**
   * Takes the workspace from a process that holds it and has not answered for three seconds (stopped, hung). What that one still records is refused then; what
   * its tools do in the workspace and in the world is not: end it. Refused while it is in the middle of a rewind.
   */
  readonly takeOver?: boolean;
  /**
   * On SIGTERM everything that was recorded, a pair that is being captured included, is brought to the disk; then the process ends as the signal ends it, `deadlineMs` later at the latest, done or not. A
   * second SIGTERM ends it at once. Where the program listens to SIGTERM itself, it says when the process ends: `rewind.durable()` tells when it may. Default: SIGTERM is left alone.
   */
  readonly onTerminate?: { readonly deadlineMs: number };
  /** Bytes of the whole store above which this process warns once. 0: never. Default: `AGENTREWIND_SOFT_LIMIT`, else 20 GiB. */
  readonly softLimit?: number;
  /**
   * How many captures and rewinds (`capture`), and how many flushes to the disk (`persist`), run at once, on one device and in all, of all processes that share the store: the limits of
   * the process that opened it first are in force. Default: as many captures as there are processors and at least 2, 2 flushes a device. `waiting`: how many checkpoints of this workspace may
   * wait for the disk before the next turn waits for them; default 1.
   */
  readonly engine?: EngineOptions;
  /** Allows `/`, the home folder and its ancestors as workspace. */
  readonly allowBroadWorkspace?: boolean;
}

export interface ObserveOption {
  readonly observe: boolean;
  /** Called once, when the workspace is closed or the process ends, with what was observed and the same as text. Default: the text goes to stderr. */
  readonly report?: (report: ObserveReport, table: string) => void;
}

export interface EngineOptions {
  readonly capture?: { readonly perDevice?: number; readonly all?: number };
  readonly persist?: { readonly perDevice?: number; readonly all?: number };
  readonly waiting?: number;
}

const atLeastOne = z.int().min(1);
const kindLimits = z
  .strictObject({ perDevice: atLeastOne.exactOptional(), all: atLeastOne.exactOptional() })
  .optional();

const optionsSchema = z.strictObject({
  workspace: z.string().min(1),
  store: z.string().min(1).optional(),
  environment: z
    .union([
      z.enum(["directory", "auto", "sandbox"]),
      z.custom<Environment>((value) => typeof (value as Environment)?.capture === "function"),
    ])
    .default("directory"),
  directory: directorySettings.default({}),
  sandbox: sandboxOptions.default({}),
  inspector: z
    .union([
      z.enum(["auto", "scan", "ebpf"]),
      z.strictObject({
        observe: z.boolean(),
        report: z
          .custom<NonNullable<ObserveOption["report"]>>((value) => typeof value === "function", "must be a function")
          .optional(),
      }),
    ])
    .default("auto"),
  gate: z.enum(["captured", "durable"]).default("captured"),
  capture: captureOption,
  exclude: z.array(z.string()).readonly().default([]),
  onCaptureFailure: z.enum(["continue", "stop"]).default("continue"),
  budget: z.strictObject({ rewinds: z.int().min(0).optional(), perCheckpoint: z.int().min(1).optional() }).default({}),
  lessons: z
    .strictObject({
      summarize: z.custom<NonNullable<OpenOptions["lessons"]>["summarize"]>(
        (value) => typeof value === "function",
        "must be a function",
      ),
    })
    .optional(),
  ...effectOptions,
  takeOver: z.boolean().default(false),
  // Longer ones no timer takes.
  onTerminate: z
    .strictObject({
      deadlineMs: z
        .int()
        .min(0)
        .max(2 ** 31 - 1),
    })
    .optional(),
  softLimit: z.int().min(0).optional(),
  engine: z.strictObject({ capture: kindLimits, persist: kindLimits, waiting: atLeastOne.default(1) }).prefault({}),
  allowBroadWorkspace: z.boolean().default(false),
});

/** With all defaults. */
export interface Chosen extends Omit<z.infer<typeof optionsSchema>, "inspector"> {
  readonly inspector: "auto" | "scan" | "ebpf";
  /** Set where turns are only classified. */
  readonly observe: ObserveOption | undefined;
}

/** @throws BAD_ARGUMENT */
export function chosenOptions(options: OpenOptions): Chosen {
  const parsed = optionsSchema.safeParse(options);
  if (parsed.success) {
    const { inspector, ...rest } = parsed.data;
    if (typeof inspector === "string") return { ...rest, inspector, observe: undefined };
    return { ...rest, inspector: "auto", observe: inspector.observe ? (inspector as ObserveOption) : undefined };
  }
  const issue = parsed.error.issues[0];
  throw new RewindError("BAD_ARGUMENT", `openRewind: ${issue?.path.join(".") || "options"}: ${issue?.message}.`, {
    hint: "See the options of openRewind in the README.",
  });
}
