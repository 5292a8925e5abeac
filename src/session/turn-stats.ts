// What the turns of a thread changed, what their checkpoints cost, and which calls were behind it: counted from what is recorded.
import type { Manifest } from "../environment/environment.ts";
import { type CaptureStats, captureStats } from "./capture-stats.ts";
import type { Checkpoint, ToolAction } from "./types.ts";

/** Which halves of the environment differ from the checkpoint before. */
export type TurnClass = "none" | "files" | "processes" | "both";

export const turnClasses = ["none", "files", "processes", "both"] as const satisfies readonly TurnClass[];

export interface Spread {
  readonly p50: number;
  readonly p95: number;
}

export interface ClassStats {
  readonly turns: number;
  /** Of all checkpoints that were compared; 0 where there are none. */
  readonly share: number;
  /** Written to the store. */
  readonly bytes: number;
  /** Milliseconds in which the agent waited; null where there are no turns. */
  readonly exposedMs: Spread | null;
  /** Milliseconds of work beside the model call. */
  readonly overlappedMs: Spread | null;
}

export interface Cause {
  /** The tool; of a shell's also the program, and its subcommand. */
  readonly call: string;
  /** Compared checkpoints before which it ran. */
  readonly turns: number;
  /** Of these: with other files, and with other processes, than the checkpoint before. */
  readonly files: number;
  readonly processes: number;
  readonly bytes: number;
}

export interface TurnStats {
  /** Checkpoints at decisions and those that were asked for. */
  readonly checkpoints: number;
  /** Of these: with nothing before them that could be compared with. */
  readonly uncompared: number;
  /** Of these: not restorable. */
  readonly notRestorable: number;
  readonly classes: Readonly<Record<TurnClass, ClassStats>>;
  /** What was captured, and what that came to. */
  readonly captures: CaptureStats;
  /** Those that changed most often come first. */
  readonly causes: readonly Cause[];
}

/** What is counted of a turn: which halves it found changed, what that cost, and what had run before it. */
export interface CountedTurn {
  readonly changed: TurnClass;
  readonly bytes: number;
  readonly exposedMs: number;
  readonly overlappedMs: number;
  /** As `callName` tells them. */
  readonly calls: readonly string[];
}

/** @param all every checkpoint of the thread, in any order */
export function turnStats(all: readonly Checkpoint[]): TurnStats {
  const byId = new Map(all.map((one) => [one.id, one]));
  const counted = all.filter(({ kind }) => kind === "turn" || kind === "explicit");
  const compared: CountedTurn[] = [];
  let uncompared = 0;
  let notRestorable = 0;
  for (const one of counted) {
    if (one.state === "not-restorable") {
      notRestorable++;
      continue;
    }
    const before = one.parent === null ? undefined : byId.get(one.parent);
    if (before === undefined || before.state === "not-restorable") {
      uncompared++;
      continue;
    }
    compared.push({
      changed: changedHalves(before.environment, one.environment),
      ...one.timings,
      calls: one.activity.actions.map(callName),
    });
  }
  return {
    checkpoints: counted.length,
    uncompared,
    notRestorable,
    ...tally(compared),
    captures: captureStats(all),
  };
}

export function changedHalves(before: Manifest, after: Manifest): TurnClass {
  const processes = before.processes !== after.processes;
  if (before.files !== after.files) return processes ? "both" : "files";
  return processes ? "processes" : "none";
}

/** By class, and by the calls that ran before. */
export function tally(turns: readonly CountedTurn[]): Pick<TurnStats, "classes" | "causes"> {
  const causes = new Map<string, { turns: number; files: number; processes: number; bytes: number }>();
  for (const { changed, calls, bytes } of turns) {
    for (const call of new Set(calls)) {
      const cause = causes.get(call) ?? { turns: 0, files: 0, processes: 0, bytes: 0 };
      cause.turns++;
      if (changed === "files" || changed === "both") cause.files++;
      if (changed === "processes" || changed === "both") cause.processes++;
      cause.bytes += bytes;
      causes.set(call, cause);
    }
  }
  const classes = Object.fromEntries(
    turnClasses.map((name) => [
      name,
      classStats(
        turns.filter(({ changed }) => changed === name),
        turns.length,
      ),
    ]),
  ) as unknown as TurnStats["classes"];
  const changes = ({ files, processes }: Cause): number => files + processes;
  return {
    classes,
    causes: [...causes]
      .map(([call, cause]) => ({ call, ...cause }))
      .sort((a, b) => changes(b) - changes(a) || b.turns - a.turns || (a.call < b.call ? -1 : 1)),
  };
}

function classStats(turns: readonly CountedTurn[], compared: number): ClassStats {
  return {
    turns: turns.length,
    share: compared === 0 ? 0 : turns.length / compared,
    bytes: turns.reduce((sum, { bytes }) => sum + bytes, 0),
    exposedMs: spread(turns.map(({ exposedMs }) => exposedMs)),
    overlappedMs: spread(turns.map(({ overlappedMs }) => overlappedMs)),
  };
}

/** Nearest rank. */
export function spread(values: readonly number[]): Spread | null {
  if (values.length === 0) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const at = (part: number): number => sorted[Math.ceil(part * sorted.length) - 1] as number;
  return { p50: at(0.5), p95: at(0.95) };
}

const shells = /^(?:bash|sh|shell|exec|execute|terminal|command|run)(?:$|[_-])|(?:_|-)(?:bash|shell|command|exec)$/i;
/** A string, or a list of words. */
const commandArgument = /"(?:command|cmd|script|code|line)"\s*:\s*(?:"((?:[^"\\]|\\.)*)|\[([^\]]*))/;
/** What stands before the program that matters. */
const wrapper = /^(?:sudo|env|time|nice|nohup|exec|command|timeout|xargs|-\S*|\d+[smh]?|[A-Za-z_]\w*=\S*)$/;
const withSubcommands = new Set(
  "git npm npx yarn pnpm pip pip3 apt apt-get docker kubectl cargo go make systemctl".split(" "),
);

/** The tool, and of a command line the program, and its subcommand where it has any. */
export function callName({ tool, input }: Pick<ToolAction, "tool" | "input">): string {
  const [, line, list] = commandArgument.exec(input) ?? [];
  const text = line ?? list?.replace(/["',]+/g, " ") ?? (shells.test(tool) && !input.startsWith("{") ? input : "");
  for (const command of text.replace(/\\[nt]/g, "\n").split(/[;&|()\n]+/)) {
    const words = command.split(/\s+/).filter(Boolean);
    const [first, next = ""] = words.slice(words.findIndex((word) => !wrapper.test(word)));
    const program = first?.split("/").at(-1);
    if (program === undefined || wrapper.test(program) || program === "cd") continue;
    const isSubcommand = withSubcommands.has(program) && /^[a-z][\w:-]*$/.test(next);
    return `${tool}: ${program}${isSubcommand ? ` ${next}` : ""}`;
  }
  return tool;
}
