// `list`: the checkpoints of a thread, oldest first; with `--all` the whole tree.
import type { Effect } from "../session/effect-types.ts";
import { describeEffectState } from "../session/effect-views.ts";
import { describeActivity } from "../session/texts.ts";
import type { Checkpoint } from "../session/types.ts";
import type { Paint } from "../text/paint.ts";
import { oneLine } from "../text/safe.ts";
import { layOut } from "../text/table.ts";
import { plural } from "../text/words.ts";
import { shortChanges } from "./changes.ts";
import { commandLine, type Global } from "./global.ts";
import type { Output } from "./output.ts";
import { chooseThread, nothingSentence, withReader } from "./recorded.ts";
import { lessonLines } from "./show.ts";
import { type Row, treeRows } from "./tree.ts";

const labelLimit = 32;
const doneLimit = 64;
const filesLimit = 48;
const effectsShown = 20;
const lessonsShown = 10;

export function list(global: Global, { all = false }: { readonly all?: boolean }): Promise<Output> {
  return withReader(global, (reader, workspace) => {
    const recorded = reader?.recorded;
    if (recorded === undefined) {
      return { json: [], text: () => [oneLine(nothingSentence(global, workspace, reader !== undefined))] };
    }
    const name = chooseThread(recorded, global.thread);
    const thread = recorded.thread(name);
    const whole = thread.checkpoints({ all: true });
    const shown = all ? whole : thread.checkpoints();
    const effects = thread.effects();
    const lessons = thread.lessons();
    const others = recorded.threads().filter((one) => one !== name);
    return {
      json: shown,
      text: (paint) => [
        heading(name, others),
        ...(shown.length === 0 ? ["No checkpoints yet."] : table(all ? treeRows(shown) : flat(shown), all, paint)),
        ...section(
          `Done outside of the workspace (${plural(effects.length, "effect")}, the newest last):`,
          effects.slice(-effectsShown).map(effectLine),
          paint,
        ),
        ...section(
          `Lessons (${plural(lessons.length, "lesson")}, newest first):`,
          lessons.slice(0, lessonsShown).flatMap(lessonLines),
          paint,
        ),
        ...(all ? [] : abandonedLine(global, whole.filter((one) => !one.active && branchOf(one) === null).length)),
      ],
    };
  });
}

function heading(name: string, others: readonly string[]): string {
  const also = others.slice(0, 8).map((one) => oneLine(one, 40));
  const rest = others.length - also.length;
  if (rest > 0) also.push(`${rest} more`);
  return `Thread ${oneLine(name)}${also.length === 0 ? "" : ` (other threads here: ${also.join(", ")})`}`;
}

const section = (title: string, lines: readonly string[], paint: Paint): string[] =>
  lines.length === 0 ? [] : ["", paint("bold", title), ...lines, ""];

const effectLine = (effect: Effect): string => `  ${oneLine(describeEffectState(effect))}`;

const flat = (shown: readonly Checkpoint[]): Row[] => shown.map((checkpoint) => ({ checkpoint, depth: 0 }));

function abandonedLine(global: Global, count: number): string[] {
  if (count === 0) return [];
  return [`${plural(count, "checkpoint")} on abandoned branches: ${commandLine(global, "list --all")}`];
}

function table(rows: readonly Row[], branches: boolean, paint: Paint): string[] {
  const titles = ["  ID", "TURN", "STATE", ...(branches ? ["BRANCH"] : []), "LABEL", "DONE", "FILES"];
  const cells = rows.map(({ checkpoint, depth }) => [
    `${checkpoint.head ? "*" : " "} ${"  ".repeat(Math.min(depth, 12))}${checkpoint.id}`,
    `${checkpoint.turn}`,
    checkpoint.state,
    ...(branches ? [checkpoint.active ? "active" : (branchOf(checkpoint) ?? "abandoned")] : []),
    checkpoint.label === null ? "" : `"${oneLine(checkpoint.label, labelLimit)}"`,
    oneLine(describeDone(checkpoint), doneLimit),
    shortChanges(checkpoint.changes, filesLimit),
  ]);
  const line = layOut(titles, cells);
  return [
    paint("dim", line(titles)),
    ...cells.flatMap((row, index) => [
      ...prunedLine(rows[index] as Row, paint),
      coloured(line(row), rows[index] as Row, paint),
    ]),
  ];
}

function prunedLine({ checkpoint, depth }: Row, paint: Paint): string[] {
  if (checkpoint.pruned === 0) return [];
  return [paint("dim", `  ${"  ".repeat(Math.min(depth, 12))}… ${plural(checkpoint.pruned, "checkpoint")} pruned`)];
}

/** Of another workspace's thread that was forked from this one: its ids are named with it. */
const branchOf = ({ id, branch }: Checkpoint): string | null => (id.includes("/") ? (branch ?? "source") : null);

function coloured(text: string, { checkpoint }: Row, paint: Paint): string {
  if (checkpoint.head) return paint("bold", text);
  if (checkpoint.state === "not-restorable") return paint("red", text);
  return checkpoint.active ? text : paint("dim", text);
}

/** What happened between the checkpoint before and this one. */
function describeDone(checkpoint: Checkpoint): string {
  if (checkpoint.state === "not-restorable") return `cannot be restored: ${checkpoint.reason ?? "unknown"}`;
  const done = describeActivity(checkpoint.activity);
  return done === "" && checkpoint.kind === "safety" ? "what a rewind left" : done;
}
