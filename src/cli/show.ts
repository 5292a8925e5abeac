// `show`: everything about one checkpoint.
import { describeEffectState } from "../session/effect-views.ts";
import type { Checkpoint, Lesson, ToolAction } from "../session/types.ts";
import type { Paint } from "../text/paint.ts";
import { oneLine, safe } from "../text/safe.ts";
import { bytes, milliseconds, plural } from "../text/words.ts";
import { changeLines, countChanges } from "./changes.ts";
import type { Global } from "./global.ts";
import type { Output } from "./output.ts";
import { withThread } from "./recorded.ts";

interface Shown extends Checkpoint {
  /** Lessons that its context contains, and those of rewinds from it or to it; newest first. */
  readonly lessons: readonly Lesson[];
  /** What its snapshot of files does not hold; null when that is not known. */
  readonly lacks: readonly string[] | null;
}

export function show(global: Global, id: string): Promise<Output> {
  return withThread(global, (thread, recorded) => {
    const checkpoint = thread.get(id);
    const contained = new Set(recorded.lessonsAt(thread.name, checkpoint.id));
    const shown: Shown = {
      ...checkpoint,
      lessons: thread
        .lessons()
        .filter((one) => contained.has(one.id) || one.to === checkpoint.id || one.from === checkpoint.id),
      lacks: recorded.lacks(checkpoint.environment),
    };
    return { json: shown, text: (paint) => lines(shown, paint) };
  });
}

function lines(one: Shown, paint: Paint): string[] {
  const field = (name: string, value: string): string => `${paint("dim", name.padEnd(10))} ${value}`;
  const place = one.head ? "the head" : one.active ? "on the head's lineage" : "on an abandoned branch";
  return [
    `${paint("bold", one.id)} of thread ${oneLine(one.thread)}, ${place}`,
    ...(one.label === null ? [] : [field("label", `"${oneLine(one.label)}"`)]),
    field("state", one.state + (one.reason === null ? "" : `: ${oneLine(one.reason)}`)),
    field("made", `${one.createdAt}, ${kinds[one.kind]}`),
    field("turn", `${one.turn}`),
    field("parent", one.parent ?? "none"),
    ...(one.branch === null ? [] : [field("branch", one.branch)]),
    ...(one.partial === null
      ? []
      : [
          field(
            "paths",
            `from ${one.partial.from ?? "a pruned one"}: ${one.partial.paths.map((path) => safe(path || ".")).join(", ")}`,
          ),
        ]),
    ...(one.anchor === null ? [] : [field("anchor", oneLine(one.anchor))]),
    field("messages", `${one.messages}`),
    field("manifest", `files ${one.environment.files ?? "none"}, processes ${one.environment.processes ?? "none"}`),
    ...(one.lacks === null ? [] : [field("fidelity", fidelity(one.lacks))]),
    field("timings", timings(one)),
    ...section("Done since the parent:", doneLines(one), paint),
    ...(one.changes === null
      ? []
      : section(
          `Files changed since the parent (${countChanges(one.changes)}):`,
          changeLines(one.changes, paint),
          paint,
        )),
    ...section(
      `Not fully captured (${one.problems.length}):`,
      one.problems.map((problem) => `  ${safe(problem.path)}: ${oneLine(problem.reason)}`),
      paint,
    ),
    ...section(
      `Done outside of the workspace (${plural(one.effects.length, "effect")}):`,
      one.effects.map((effect) => `  ${oneLine(describeEffectState(effect))}`),
      paint,
    ),
    ...section(
      `Lessons (${plural(one.lessons.length, "lesson")}, newest first):`,
      one.lessons.flatMap(lessonLines),
      paint,
    ),
  ];
}

const kinds = {
  turn: "at a model decision",
  explicit: "asked for",
  safety: "the state that a rewind left",
  partial: "when some paths were taken back",
  step: "the files between two decisions",
} as const;

const section = (title: string, rest: readonly string[], paint: Paint): string[] =>
  rest.length === 0 ? [] : ["", paint("bold", title), ...rest];

const fidelity = (lacks: readonly string[]): string => (lacks.length === 0 ? "full" : `without ${lacks.join(", ")}`);

const timings = ({ timings: { exposedMs, overlappedMs, bytes: stored } }: Checkpoint): string =>
  `waited ${milliseconds(exposedMs)}, beside the model ${milliseconds(overlappedMs)}, stored ${bytes(stored)}`;

function doneLines({ activity }: Checkpoint): string[] {
  return [
    ...(activity.said === "" ? [] : indented(`said: ${activity.said}`)),
    ...activity.actions.flatMap((action) => indented(describeAction(action))),
  ];
}

function describeAction({ tool, input, output, failed }: ToolAction): string {
  const result = output === "" ? "" : `\n-> ${failed ? "failed: " : ""}${output}`;
  return `${tool} ${input}${result}`;
}

export const lessonLines = ({ text, from, to, branch, covers }: Lesson): string[] =>
  indented(
    `${from} -> ${to}${branch === null ? "" : ` in ${branch}`}${covers.length === 0 ? "" : `, sums up ${covers.length}`}: ${text}`,
  );

const indented = (text: string): string[] =>
  safe(text)
    .split("\n")
    .map((line) => `  ${line}`);
