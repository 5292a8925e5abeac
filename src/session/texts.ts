// What a model or a person reads: the list of checkpoints, the message after a rewind, refusals. Product text: short, concrete, with ids.
import type { Capabilities, FileChanges, Problem } from "../environment/environment.ts";
import type { RewindError } from "../errors.ts";
import { boundedLessons } from "./lessons.ts";
import { shorten } from "./mask.ts";
import type { Activity, Checkpoint, Lesson, Scope, ToolAction } from "./types.ts";

const inputLimit = 160;
const callLimit = 100;
const outputLimit = 120;
const pathsShown = 6;
const deliveredShown = 3;
const effectsShown = 20;
const deliveredLimit = 300;
/** Candidates in one list; the newest and the labelled ones stay. */
const listLimit = 40;

const oneLine = (text: string, limit: number): string => shorten(text.replace(/\s+/g, " "), limit);

function describeAction(action: ToolAction): string {
  const output = oneLine(action.output, outputLimit);
  const result = output === "" ? "" : ` -> ${action.failed ? "failed: " : ""}"${output}"`;
  return `${action.tool} ${oneLine(action.input, inputLimit)}${result}`.trim();
}

/** What was asked for, without what came of it: after a rewind that never happened. */
const describeCall = (action: ToolAction): string => `${action.tool} ${oneLine(action.input, callLimit)}`.trim();

export function describeActivity(activity: Activity, { results = true }: { readonly results?: boolean } = {}): string {
  if (activity.actions.length > 0) {
    const shown = activity.actions.slice(0, 3).map(results ? describeAction : describeCall);
    const rest = activity.actions.length - shown.length;
    return shown.join("; ") + (rest > 0 ? `; and ${rest} more` : "");
  }
  return activity.said === "" ? "" : `said "${oneLine(activity.said, inputLimit)}"`;
}

/** Every path of the changes once, each kind in its order. */
export function changedPaths(changes: FileChanges): string[] {
  const { added, removed, changed, mode, type, renamed } = changes;
  return [
    ...new Set([...changed, ...added, ...removed, ...type, ...renamed.flatMap((one) => [one.from, one.to]), ...mode]),
  ];
}

const shownPath = (path: string): string => (path === "" ? "all of them" : path);

export function describePaths(paths: readonly string[]): string {
  const shown = paths.slice(0, pathsShown).join(", ");
  return paths.length > pathsShown ? `${shown} and ${paths.length - pathsShown} more` : shown;
}

/** The answer of the `checkpoint` tool. */
export function labelledText({ id, label, state, reason }: Checkpoint): string {
  const but = state === "not-restorable" ? `, but it cannot be returned to: ${reason ?? "unknown"}` : "";
  return `${id} is now called "${label}"${but}.`;
}

/** What a list shows of one checkpoint and of what was done from there. */
export interface ListedCheckpoint {
  readonly checkpoint: Checkpoint;
  /** The next one on the same branch; null at its end. */
  readonly next: Checkpoint | null;
}

function describeListed({ checkpoint, next }: ListedCheckpoint): string {
  const label = checkpoint.label === null ? "" : `, "${oneLine(checkpoint.label, 60)}"`;
  const start = `${checkpoint.id} [turn ${checkpoint.turn}${label}]`;
  const unusable =
    checkpoint.state === "not-restorable" ? ` (cannot be restored: ${checkpoint.reason ?? "unknown"})` : "";
  if (checkpoint.head) return `${start} now${unusable}`;
  if (next === null) return `${start} the end of this branch${unusable}`;
  const did = describeActivity(next.activity);
  const paths = next.changes === null ? [] : changedPaths(next.changes);
  const files = paths.length === 0 ? "" : `; files changed: ${describePaths(paths)}`;
  return `${start} before: ${did === "" ? "the next message" : did}${files}${unusable}`;
}

function listedLines(listed: ListedCheckpoint): string[] {
  const { id, parent, pruned } = listed.checkpoint;
  const between = parent === null ? `before ${id}` : `between ${parent} and ${id}`;
  return [describeListed(listed), ...(pruned === 0 ? [] : [`(${pruned} ${between}: pruned, cannot be returned to)`])];
}

/** The list that `list_checkpoints` returns. Both lists newest first. */
export function listText(active: readonly ListedCheckpoint[], abandoned: readonly ListedCheckpoint[]): string {
  if (active.length === 0 && abandoned.length === 0) return "There are no checkpoints yet.";
  const keep = (list: readonly ListedCheckpoint[], limit: number): ListedCheckpoint[] =>
    list.filter((one, index) => index < limit || one.checkpoint.label !== null);
  const shown = keep(active, listLimit);
  const lines = [
    'Checkpoints, newest first. "cN before: X" is the moment before X was done; rewinding to cN takes back X and everything after it.',
    ...shown.flatMap(listedLines),
  ];
  if (active.length > shown.length) lines.push(`(${active.length - shown.length} older ones are not shown)`);
  const left = keep(abandoned, 10);
  if (left.length > 0) lines.push("Abandoned earlier:", ...left.flatMap(listedLines));
  return lines.join("\n");
}

export interface RewindMessageParts {
  readonly target: string;
  /** What is taken back first, from the branch that is left. */
  readonly before: string;
  readonly scope: Scope;
  /** What alone was taken back; null when everything was. */
  readonly paths?: readonly string[] | null;
  /** The branch that was adopted. */
  readonly branch?: string | null;
  readonly restored: FileChanges;
  readonly notRestored: readonly Problem[];
  /** Programs that were started since and were ended. */
  readonly stopped?: readonly string[];
  readonly kept: readonly string[];
  readonly conflicts: readonly string[];
  readonly effects: readonly string[];
  /** Places outside to which was connected. */
  readonly contacted?: readonly string[];
  /** Effects that were made up for. */
  readonly compensated?: readonly string[];
  readonly delivered: readonly string[];
  readonly carried: number;
  readonly programs: Programs;
  /** Newest first. */
  readonly lessons: readonly Pick<Lesson, "text">[];
}

/** What became of running programs: back with their memory, ended because none ran then, left as they are, started again or stopped and named (with or without those that go on), none now as then as far as commands started them, or not something that this environment brings back. */
export type Programs = "back" | "ended" | "kept" | "named" | "told" | "as then" | "not restored";

const programLines: Readonly<Record<Programs, string>> = {
  back: "Running programs, shells and background jobs are back as they were then, with their memory.",
  ended: "No programs run in the background now: none did then.",
  kept: "Running programs were left as they are.",
  named:
    "Running programs do not have their memory of then: above is said which were started again and which were stopped.",
  told: "Programs that commands left running do not have their memory of then: above is said which go on, which were started again and which were not.",
  "as then": "Nothing that a command left in the background runs now, as at that checkpoint.",
  "not restored": "Running programs were not restored: start again what you need.",
};

/** @param notRestored what the environment says; it names programs as "process 12 (node)" */
export function programsOf(
  capabilities: Pick<Capabilities, "processes" | "programs">,
  target: { readonly processes: string | null },
  part: boolean,
  notRestored: readonly { readonly path: string }[] = [],
): Programs {
  const { processes, programs = false } = capabilities;
  const named = notRestored.some(({ path }) => /^process \d+/.test(path));
  if (!part && named && programs) return "told";
  if (!part && named && target.processes !== null) return "named";
  if (!processes && !programs) return "not restored";
  if (part) return "kept";
  if (!processes) return "as then";
  return target.processes === null ? "ended" : "back";
}

/** The message that ends the restored context: (a) where, (b) what came back, (c) what must not be repeated, (d) lessons. */
export function rewindMessage(parts: RewindMessageParts): string {
  const lines: string[] = [];
  const before = parts.before === "" ? "" : `, before: ${parts.before}`;
  if (typeof parts.branch === "string") {
    lines.push(`You are at ${parts.target} now, the end of branch ${parts.branch}.`);
    lines.push(
      "The conversation above and the files are those of that branch; what was done here meanwhile has been taken back.",
    );
  } else if (parts.paths) {
    lines.push(`Some files are back as they were at ${parts.target}: ${describePaths(parts.paths.map(shownPath))}.`);
    lines.push(
      "Only these were taken back; everything else, and the conversation above, is as it was. The files now come from different moments: " +
        "read them before you rely on them, and check that they fit together.",
    );
  } else if (parts.scope === "both") {
    lines.push(`You are back at ${parts.target}${before}.`);
    const programs = parts.programs === "back" || parts.programs === "ended" ? " and in running programs" : "";
    lines.push(
      `What was done after that point has been taken back, in this conversation${programs === "" ? " and" : ","} in the files${programs}.`,
    );
  } else if (parts.scope === "environment") {
    lines.push(`The files are back at ${parts.target}${before}.`);
    lines.push(
      "Only the files were taken back; the conversation above still mentions later work that is no longer on disk. Read a file before you rely on it.",
    );
  } else {
    lines.push(`The conversation is back at ${parts.target}${before}.`);
    lines.push(
      "Only the conversation was taken back; the files still hold the later work. Look at them before you change them.",
    );
  }
  if (parts.scope !== "context") lines.push(...fileLines(parts));
  lines.push(...carriedLines(parts.carried), ...doneLines(parts.effects, parts.delivered));
  lines.push(...listed("Connected to from there; what was done there is not taken back:", parts.contacted ?? []));
  lines.push(...listed("Taken back in the world too, not in force any more:", parts.compensated ?? []));
  if (parts.lessons.length > 0) lines.push("", "Lessons so far, newest first:", ...lessonLines(parts.lessons));
  lines.push("", goOn);
  return lines.join("\n");
}

const goOn = "Go on with the task from here.";

const carriedLines = (count: number): string[] =>
  count === 0
    ? []
    : [
        count === 1
          ? "One message that the person sent after that point was kept; it stands right above."
          : `${count} messages that the person sent after that point were kept; they stand right above.`,
      ];

function doneLines(effects: readonly string[], delivered: readonly string[]): string[] {
  return listed("Already done or delivered, do not repeat:", [
    ...newest(effects),
    ...delivered.slice(-deliveredShown).map((text) => `you told the person: "${oneLine(text, deliveredLimit)}"`),
  ]);
}

const listed = (title: string, lines: readonly string[]): string[] =>
  lines.length === 0 ? [] : ["", title, ...newest(lines).map((line) => `- ${line}`)];

/** @param lines oldest first */
const newest = (lines: readonly string[]): string[] =>
  lines.length <= effectsShown
    ? [...lines]
    : [`(${lines.length - effectsShown} earlier ones are not shown)`, ...lines.slice(-effectsShown)];

/** The message of a rewind from outside, with what only the adapter that takes it over knows of the conversation. */
export function messageForConversation(
  message: string,
  { carried, delivered }: { readonly carried: number; readonly delivered: readonly string[] },
): string {
  const [title, ...done] = doneLines([], delivered).slice(1);
  const body = message.slice(0, -goOn.length).trimEnd();
  // Effects stand under the same title already.
  const together = title !== undefined && body.includes(`\n${title}\n`);
  const start = together ? body.replace(`\n${title}\n`, () => `\n${[title, ...done].join("\n")}\n`) : body;
  const lines = [...carriedLines(carried), ...(together ? [] : doneLines([], delivered))];
  if (lines.length === 0 && start === body) return message;
  return [start, ...lines, "", goOn].join("\n");
}

function fileLines(parts: RewindMessageParts): string[] {
  const lines: string[] = [];
  const paths = changedPaths(parts.restored);
  const none = parts.notRestored.length === 0 ? "Files: none differed." : "Files restored: none.";
  lines.push(paths.length === 0 ? none : `Files restored: ${describePaths(paths)}.`);
  if (parts.notRestored.length > 0) {
    const shown = parts.notRestored.slice(0, pathsShown).map((one) => `${one.path || "."} (${one.reason})`);
    const rest = parts.notRestored.length - shown.length;
    lines.push(`Not restored: ${shown.join("; ")}${rest > 0 ? `; and ${rest} more` : ""}.`);
  }
  const { stopped = [] } = parts;
  if (stopped.length > 0) lines.push(`Stopped, because started after that point: ${describePaths(stopped)}.`);
  if (parts.kept.length > 0) lines.push(`Kept, because somebody else changed them: ${describePaths(parts.kept)}.`);
  if (parts.conflicts.length > 0) {
    lines.push(
      `Changed by you and by somebody else, taken back to ${parts.target}: ${describePaths(parts.conflicts)}.`,
    );
  }
  lines.push(programLines[parts.programs]);
  return lines;
}

function lessonLines(lessons: readonly Pick<Lesson, "text">[]): string[] {
  const shown = boundedLessons(lessons);
  const rest = lessons.length - shown.length;
  return [
    ...shown.map(({ text }, index) => `${index + 1}. ${text}`),
    ...(rest > 0 ? [`(${rest} older ones are not shown)`] : []),
  ];
}

/** Lessons that the framework cut out of the conversation, newest first, for its model. */
export const reminderText = (lessons: readonly Pick<Lesson, "text">[]): string =>
  ["Lessons from attempts of yours that were taken back, newest first. They still hold:", ...lessonLines(lessons)].join(
    "\n",
  );

/** A refusal as the tool's result: what was wrong, and what to do next. */
export function refusalText(error: RewindError): string {
  const hint = error.modelHint ?? error.hint;
  return `Not done: ${error.message}${hint === undefined ? "" : ` ${hint}`}`;
}

export const siblingRefusal =
  "Not run: it was sent together with a rewind that was refused. Send it again, without the rewind.";
export const staleRefusal = "Not run: the conversation was rewound before this call started.";
export const endedRefusal =
  "Ended: a rewind came while this ran. What it has done is taken back with the rest; what it would have reported is lost.";
