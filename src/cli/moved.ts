// What a rewind or an undo did, for a person.
import type { RewindResult, Scope } from "../session/types.ts";
import type { Paint } from "../text/paint.ts";
import { oneLine, safe } from "../text/safe.ts";
import { milliseconds, plural } from "../text/words.ts";
import { changeLines, countChanges } from "./changes.ts";
import { commandLine, type Global } from "./global.ts";
import type { Output } from "./output.ts";

/** A result without its context, which is of no use outside of its framework. */
export type Moved = Omit<RewindResult, "context">;

export interface MovedAs {
  readonly kind: "rewind" | "undo";
  readonly scope: Scope;
  readonly dryRun: boolean;
}

export function withoutContext({ context: _, ...rest }: RewindResult): Moved {
  return rest;
}

export const movedOutput = (global: Global, moved: Moved, as: MovedAs): Output => ({
  json: { ...moved, dryRun: as.dryRun },
  text: (paint) => [
    headline(moved, as, paint),
    ...(as.scope === "context" ? ["Files: left as they are."] : fileLines(moved, as, paint)),
    ...section("Done in the world and not undone:", moved.effects.map(indented), paint),
    ...section("Made up for in the world:", moved.compensated.map(indented), paint),
    ...section("To be made up for, and that failed:", moved.uncompensated.map(indented), paint),
    "",
    ...wayBack(global, moved, as),
  ],
});

const halves: Record<Scope, string> = {
  both: "files and conversation",
  environment: "files only",
  context: "conversation only",
};

function headline(
  { checkpoint, timings, notRestored, paths }: Moved,
  { kind, scope, dryRun }: MovedAs,
  paint: Paint,
): string {
  const label = checkpoint.label === null ? "" : `, "${oneLine(checkpoint.label)}"`;
  const target = `${paint("bold", checkpoint.id)} (turn ${checkpoint.turn}${label}) of thread ${oneLine(checkpoint.thread)}`;
  if (paths !== null) {
    const partly = notRestored.length > 0 ? " Not all of it could be restored." : "";
    if (dryRun) return `Would take ${plural(paths.length, "path")} back to ${target}.`;
    return `Took ${plural(paths.length, "path")} back to ${checkpoint.partial?.from ?? "a checkpoint"}, in ${milliseconds(timings.exposedMs)}; the rest stays.${partly} The workspace is ${target} now.`;
  }
  if (dryRun) return `Would go back to ${target}: ${halves[scope]}.`;
  const did = kind === "undo" ? "Undone: at" : "Back at";
  const partly = notRestored.length > 0 ? ", but not all files could be restored" : "";
  return `${did} ${target}: ${halves[scope]}${partly}, in ${milliseconds(timings.exposedMs)}.`;
}

function fileLines(moved: Moved, { dryRun }: MovedAs, paint: Paint): string[] {
  const newer = moved.left === null ? "the state that is left" : moved.left.id;
  const paths = (list: readonly string[]): string[] => list.map((path) => `  ${safe(path)}`);
  const count = countChanges(moved.restored);
  return [
    ...(count === 0
      ? [moved.notRestored.length > 0 ? "Restored: nothing." : dryRun ? "Files: none differ." : "Files: none differed."]
      : [
          paint("bold", `${dryRun ? "Would restore" : "Restored"} ${plural(count, "path")}:`),
          ...changeLines(moved.restored, paint),
        ]),
    ...section(
      "Not restored:",
      moved.notRestored.map(({ path, reason }) => `  ${safe(path || ".")}: ${oneLine(reason)}`),
      paint,
    ),
    ...section(
      dryRun ? "Would stop, because started after that point:" : "Stopped, because started after that point:",
      moved.stopped.map(indented),
      paint,
    ),
    ...section(`Changed by somebody else; the newer version is in ${newer}:`, paths(moved.external), paint),
    ...section(
      `Conflicts, changed by the agent and by somebody else; the newer version is in ${newer}:`,
      paths(moved.conflicts),
      paint,
    ),
  ];
}

const indented = (text: string): string => `  ${oneLine(text)}`;

const section = (title: string, rest: readonly string[], paint: Paint): string[] =>
  rest.length === 0 ? [] : [paint("bold", title), ...rest];

function wayBack(global: Global, { left }: Moved, { kind, dryRun }: MovedAs): string[] {
  if (dryRun) return ["Nothing was changed: this was a dry run."];
  if (left === null) return [];
  if (kind === "undo") return [`To go there again: ${commandLine(global, `rewind ${left.id}`)}`];
  return [`The state that was left is ${left.id}. To undo: ${commandLine(global, "undo")}`];
}
