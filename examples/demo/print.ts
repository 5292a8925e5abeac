// The demo for a person: turns as they happen, then the tree of checkpoints, what came back, and where the time went.
import { styleText } from "node:util";
import type { Checkpoint, FileChanges } from "agentrewind";
import { changedLines } from "./line-diff.ts";
import type { DemoRun, StartEvent } from "./run.ts";
import type { Event } from "./witness.ts";

type Style = Parameters<typeof styleText>[0];
type Write = (line: string) => void;

const margin = "        ";
const width = 110;

export interface Printer {
  tell(event: Event | StartEvent): void;
  summary(run: DemoRun): void;
}

/** Writes whole lines; colours only where `colour` is set. */
export function createPrinter(write: Write, colour: boolean): Printer {
  const paint = (style: Style, text: string): string =>
    colour ? styleText(style, text, { validateStream: false }) : text;
  const indented = (text: string, style?: Style): void => {
    for (const line of wrap(text, width - margin.length))
      write(line === "" ? "" : margin + (style === undefined ? line : paint(style, line)));
  };
  const heading = (text: string): void => {
    write("");
    write(paint("bold", text));
  };

  function tell(event: Event | StartEvent): void {
    switch (event.type) {
      case "start": {
        const what =
          event.latencyMs === null
            ? event.model
            : `a scripted one, behind an OpenAI-compatible server on 127.0.0.1 (${event.latencyMs} ms a reply). OPENAI_API_KEY takes a real one.`;
        write(`model      ${what}`);
        write(`workspace  ${event.workspace}`);
        write(`task       ${event.task}`);
        return;
      }
      case "reply":
        write("");
        write(
          `${paint("bold", `turn ${event.turn}`.padEnd(margin.length))}${wrap(event.text, width - margin.length).join(`\n${margin}`)}`,
        );
        for (const { name, args } of event.calls) indented(`> ${name} ${brief(args)}`.trimEnd(), "cyan");
        return;
      case "result":
        indented(essence(event.name, event.text), event.failed ? "red" : "dim");
        return;
      case "back":
        write("");
        write(paint(["bold", "green"], `back at ${event.to}, ${event.ms.toFixed(0)} ms. What the model reads now:`));
        indented(event.message, "green");
    }
  }

  function summary(run: DemoRun): void {
    const { report, checkpoints, rewinds } = run;
    heading("checkpoints");
    const targets = new Set(rewinds.map(({ to }) => to));
    for (const { text, checkpoint } of drawTree(checkpoints, targets)) {
      const target = targets.has(checkpoint.id);
      const marks = [target ? "  <- the agent came back here" : "", checkpoint.head ? "  <- head" : ""].join("");
      write((checkpoint.active ? text : paint("dim", text)) + paint("green", marks));
    }

    for (const { to, left, after } of rewinds) {
      heading(`what came back with ${to}`);
      for (const path of new Set([...left.tree.texts.keys(), ...after.tree.texts.keys()])) {
        const was = left.tree.texts.get(path) ?? "";
        const is = after.tree.texts.get(path) ?? "";
        if (was === is) continue;
        write(path);
        const changes = changedLines(was, is);
        for (const sign of ["-", "+"] as const) {
          const all = changes.filter((change) => change.sign === sign);
          for (const { line } of all.slice(0, 4)) write(paint(sign === "-" ? "red" : "green", `  ${sign} ${line}`));
          if (all.length > 4) write(paint("dim", `  ${sign} … ${all.length - 4} more`));
        }
      }
    }
    if (rewinds.length > 0) {
      const same = report.treeDigestAtCheckpoint === report.treeDigestAfterRewind;
      write(`tree digest at the checkpoint   ${report.treeDigestAtCheckpoint}`);
      write(`tree digest after the rewind    ${report.treeDigestAfterRewind}${same ? "  (equal)" : "  (different)"}`);
    }

    heading("time");
    const overlapped = checkpoints.reduce((sum, { timings }) => sum + timings.overlappedMs, 0);
    write(
      `captures   ${overlapped.toFixed(0)} ms beside the model's thinking, ${report.exposedMs.toFixed(0)} ms waited for`,
    );
    for (const { to, ms } of rewinds) write(`rewind     ${ms.toFixed(0)} ms to ${to}`);

    heading("result");
    for (const line of wrap(run.answer, width)) write(line);
    write(
      report.testsPass
        ? paint(["bold", "green"], "The suite, as shipped, passes.")
        : paint(["bold", "red"], "The suite, as shipped, does not pass."),
    );
  }

  return { tell, summary };
}

/** One line a checkpoint; a fork is indented, its abandoned branches come first. */
function drawTree(
  checkpoints: readonly Checkpoint[],
  targets: ReadonlySet<string>,
): { text: string; checkpoint: Checkpoint }[] {
  const known = new Set(checkpoints.map(({ id }) => id));
  const lines: { text: string; checkpoint: Checkpoint }[] = [];
  const childrenOf = (id: string | null): Checkpoint[] =>
    checkpoints
      .filter(({ parent }) => (parent !== null && known.has(parent) ? parent : null) === id)
      .sort((a, b) => Number(a.active) - Number(b.active));

  function draw(checkpoint: Checkpoint, first: string, rest: string): void {
    lines.push({ text: first + describe(checkpoint, targets), checkpoint });
    const children = childrenOf(checkpoint.id);
    for (const [index, child] of children.entries()) {
      if (children.length === 1) draw(child, rest, rest);
      else if (index < children.length - 1) draw(child, `${rest}├─ `, `${rest}│  `);
      else draw(child, `${rest}└─ `, `${rest}   `);
    }
  }

  for (const root of childrenOf(null)) draw(root, "", "");
  return lines;
}

function describe(checkpoint: Checkpoint, targets: ReadonlySet<string>): string {
  const { id, parent, turn, kind, activity, changes, label, active } = checkpoint;
  const did = activity.actions.map(({ tool, input }) => `${tool} ${input}`).join(", ");
  const quiet = parent === null ? "start" : targets.has(parent) ? "with the lesson" : "went on";
  const what = kind === "safety" ? "what the rewind left" : did === "" ? quiet : `after ${shorten(did, 60)}`;
  const notes = [label ?? "", changes === null ? "" : changedPaths(changes), active ? "" : "abandoned"];
  return [`${id.padEnd(4)} turn ${turn}  ${what}`, ...notes.filter((note) => note !== "")].join("; ");
}

function changedPaths({ added, removed, changed, type, renamed }: FileChanges): string {
  const paths = [...added, ...removed, ...changed, ...type, ...renamed.map(({ to }) => to)];
  return paths.length === 0 ? "" : `changed ${shorten(paths.join(", "), 40)}`;
}

function brief(args: Record<string, unknown>): string {
  const values = Object.values(args).map((value) => (typeof value === "string" ? value : JSON.stringify(value)));
  return values.map((value) => shorten(value, 300)).join(" | ");
}

/** The lines of a result that tell how it went. */
function essence(tool: string, text: string): string {
  const lines = text.split("\n");
  if (tool === "list_checkpoints")
    return lines
      .slice(0, 12)
      .map((line) => shorten(line, width))
      .join("\n");
  const telling = new Set(lines.filter((line) => /^(✖ (?!failing)|ℹ (pass|fail) )/u.test(line)).map(withoutTime));
  const shown = [lines[0] ?? "", ...telling].slice(0, 8);
  const hidden = lines.length - shown.length;
  return shown.join("\n") + (hidden > 0 && telling.size === 0 ? ` (+ ${hidden} lines)` : "");
}

const withoutTime = (line: string): string => line.replace(/ \([\d.]+ms\)$/, "");

function shorten(text: string, length: number): string {
  const flat = text.replaceAll(/\s+/g, " ").trim();
  return flat.length <= length ? flat : `${flat.slice(0, length - 1)}…`;
}

/** Breaks at spaces where there are any. */
function wrap(text: string, length: number): string[] {
  const piece = new RegExp(`.{1,${length}}(?= |$)|.{1,${length}}`, "gu");
  return text
    .split("\n")
    .flatMap((line) => line.match(piece)?.map((part, index) => (index === 0 ? part : part.trimStart())) ?? [""]);
}
