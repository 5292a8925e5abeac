// The options that every command takes, and where they lead.
import { isAbsolute } from "node:path";
import { RewindError } from "../errors.ts";
import { defaultStorePath } from "../store/layout.ts";

export interface Global {
  readonly workspace: string;
  readonly store: string;
  /** Undefined: the thread most recently active in the workspace. */
  readonly thread: string | undefined;
  readonly json: boolean;
  readonly allowBroad: boolean;
  /** The options as given, for commands that are named to the reader. */
  readonly given: string;
}

export interface GivenOptions {
  readonly workspace?: string;
  readonly store?: string;
  readonly thread?: string;
  readonly json?: boolean;
  readonly allowBroad?: boolean;
}

/** @throws BAD_ARGUMENT */
export function toGlobal(options: GivenOptions): Global {
  const named = ["workspace", "store", "thread"] as const;
  for (const name of named) {
    if (options[name] === "") {
      throw new RewindError("BAD_ARGUMENT", `--${name} is empty.`, { hint: "Give a value or leave the option out." });
    }
  }
  const given = named.flatMap((name) => (options[name] === undefined ? [] : [`--${name} ${quoted(options[name])}`]));
  if (options.allowBroad) given.push("--allow-broad");
  return {
    workspace: options.workspace ?? currentFolder(),
    store: options.store ?? defaultStorePath(),
    thread: options.thread,
    json: options.json === true,
    allowBroad: options.allowBroad === true,
    given: given.join(" "),
  };
}

/** A command of ours to type, with the options of this one. */
export const commandLine = (global: Global, command: string): string =>
  ["agentrewind", global.given, command].filter((part) => part !== "").join(" ");

export const quoted = (text: string): string =>
  /^[\w./:=@%+-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** Also when it was deleted: then the shell still knows its name. */
function currentFolder(): string {
  try {
    return process.cwd();
  } catch {
    const { PWD } = process.env;
    if (PWD !== undefined && isAbsolute(PWD)) return PWD;
    throw new RewindError("WORKSPACE_GONE", "The current directory is gone.", {
      hint: "Name the workspace with --workspace.",
    });
  }
}
