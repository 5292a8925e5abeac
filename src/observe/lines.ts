// Observations of one process, line by line, in a file that another one may read: each is whole when it is written, so a killed process loses none.
import { appendFileSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { declaredClasses } from "../coordinator/policy/actions.ts";
import { actionClasses } from "../coordinator/policy/commands/action-classes.ts";
import { turnClasses } from "../session/turn-stats.ts";
import type { TurnFacts } from "./turns.ts";

const call = z.object({
  name: z.string(),
  classes: z.array(z.enum([...actionClasses, ...declaredClasses])).readonly(),
});

const facts = z.object({
  thread: z.string(),
  turn: z.number(),
  at: z.number(),
  calls: z.array(call).readonly(),
  reply: z.array(call).readonly().nullable(),
  changed: z.enum(turnClasses).nullable(),
  bytes: z.number(),
  exposedMs: z.number(),
  overlappedMs: z.number(),
});

const line = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("opened"), workspace: z.string(), writeRate: z.number(), notes: z.array(z.string()) }),
  z.object({ kind: z.literal("turn"), key: z.string(), facts }),
]);

export type ObserveLine = z.infer<typeof line>;

const ending = ".jsonl";

/** @returns writes a line; a failure is told once, as a warning, and disturbs nobody */
export function openLines(folder: string, name: string): (line: ObserveLine) => void {
  const file = join(folder, `${name}${ending}`);
  let failed = false;
  return (one) => {
    if (failed) return;
    try {
      appendFileSync(file, `${JSON.stringify(one)}\n`, { mode: 0o600 });
    } catch (error) {
      failed = true;
      process.emitWarning(`what is observed cannot be reported: ${(error as Error).message}`, "AgentRewindWarning");
    }
  };
}

export interface Reported {
  readonly workspaces: readonly string[];
  readonly turns: readonly TurnFacts[];
  /** The slowest that was measured; null where nothing was opened. */
  readonly writeRate: number | null;
  readonly notes: readonly string[];
}

/** What all processes wrote into the folder. The last line of a turn counts; a line that was cut off is left out. */
export function readLines(folder: string): Reported {
  const workspaces = new Set<string>();
  const notes = new Set<string>();
  const turns: TurnFacts[] = [];
  const rates: number[] = [];
  for (const file of readdirSync(folder)
    .filter((name) => name.endsWith(ending))
    .sort()) {
    const own = new Map<string, TurnFacts>();
    for (const one of parsed(readFileSync(join(folder, file), "utf8"))) {
      if (one.kind === "turn") own.set(one.key, one.facts);
      else {
        workspaces.add(one.workspace);
        rates.push(one.writeRate);
        for (const note of one.notes) notes.add(note);
      }
    }
    // Threads of two processes are two, whatever they are called.
    turns.push(...[...own.values()].map((facts) => ({ ...facts, thread: `${file}/${facts.thread}` })));
  }
  return {
    workspaces: [...workspaces],
    turns: turns.sort((a, b) => a.at - b.at),
    writeRate: rates.length === 0 ? null : Math.min(...rates),
    notes: [...notes],
  };
}

function parsed(text: string): ObserveLine[] {
  return text.split("\n").flatMap((one) => {
    try {
      const found = line.safeParse(JSON.parse(one));
      return found.success ? [found.data] : [];
    } catch {
      return [];
    }
  });
}
