// The demo for a person: turns as they happen, then the tree of checkpoints, what came back, and where the time went.
import { styleText } from "node:util";
import { changedLines } from "./line-diff.ts";
import type { DemoRun, StartEvent } from "./run.ts";
import { shorten, wrap } from "./text.ts";
import { drawTree } from "./tree.ts";
import type { Event, ObservedRewind } from "./witness.ts";

type Style = Parameters<typeof styleText>[0];
type Write = (line: string) => void;

const margin = "        ";
const width = 110;
const room = width - margin.length;

export interface Printer {
  tell(event: Event | StartEvent): void;
  summary(run: DemoRun): void;
}

/** Writes whole lines; colours only where `colour` is set. */
export function createPrinter(write: Write, colour: boolean): Printer {
  const paint = (style: Style, text: string): string =>
    colour && text !== "" ? styleText(style, text, { validateStream: false }) : text;
  const indented = (text: string, style?: Style): void => {
    for (const line of wrap(text, room))
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
        write(paint("bold", `turn ${event.turn}`.padEnd(margin.length)) + wrap(event.text, room).join(`\n${margin}`));
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
    heading("checkpoints");
    printTree(run);
    for (const rewind of run.rewinds) {
      heading(`what came back with ${rewind.to}`);
      printDifference(rewind);
    }
    if (run.rewinds.length > 0) printDigests(run);
    heading("time");
    printTimes(run);
    heading("result");
    for (const line of wrap(run.answer, width)) write(line);
    const [style, verdict] = run.report.testsPass
      ? (["green", "passes"] as const)
      : (["red", "does not pass"] as const);
    write(paint(["bold", style], `The suite, as shipped, ${verdict}.`));
  }

  function printTree({ checkpoints, rewinds }: DemoRun): void {
    const targets = new Set(rewinds.map(({ to }) => to));
    for (const { text, checkpoint } of drawTree(checkpoints, targets)) {
      const target = targets.has(checkpoint.id) ? "  <- the agent came back here" : "";
      const head = checkpoint.head ? "  <- head" : "";
      write((checkpoint.active ? text : paint("dim", text)) + paint("green", target + head));
    }
  }

  function printDifference({ left, after }: ObservedRewind): void {
    for (const path of new Set([...left.tree.texts.keys(), ...after.tree.texts.keys()])) {
      const was = left.tree.texts.get(path) ?? "";
      const is = after.tree.texts.get(path) ?? "";
      if (was === is) continue;
      write(path);
      const changes = changedLines(was, is);
      for (const [sign, style] of [["-", "red"] as const, ["+", "green"] as const]) {
        const all = changes.filter((change) => change.sign === sign);
        for (const { line } of all.slice(0, 4)) write(paint(style, `  ${sign} ${line}`));
        if (all.length > 4) write(paint("dim", `  ${sign} … ${all.length - 4} more`));
      }
    }
  }

  function printDigests({ report: { treeDigestAtCheckpoint, treeDigestAfterRewind }, lacks }: DemoRun): void {
    const equal = treeDigestAtCheckpoint === treeDigestAfterRewind;
    write(`tree digest at the checkpoint   ${treeDigestAtCheckpoint}`);
    write(`tree digest after the rewind    ${treeDigestAfterRewind}  (${equal ? "equal" : "different"})`);
    if (!equal && lacks.length > 0) write(`snapshots lack on this machine: ${lacks.join(", ")}`);
  }

  function printTimes({ checkpoints, rewinds, report }: DemoRun): void {
    const overlapped = checkpoints.reduce((sum, { timings }) => sum + timings.overlappedMs, 0);
    const exposed = report.exposedMs.toFixed(0);
    write(`captures   ${overlapped.toFixed(0)} ms beside the model's thinking, ${exposed} ms waited for`);
    for (const { to, ms } of rewinds) write(`rewind     ${ms.toFixed(0)} ms to ${to}`);
  }

  return { tell, summary };
}

function brief(args: Record<string, unknown>): string {
  const values = Object.values(args).map((value) => (typeof value === "string" ? value : JSON.stringify(value)));
  return values.map((value) => shorten(value, 300)).join(" | ");
}

/** The lines of a result that tell how it went. */
function essence(tool: string, text: string): string {
  const lines = text.split("\n");
  const list = lines.slice(0, 12).map((line) => shorten(line, 150));
  if (tool === "list_checkpoints") return list.join("\n");
  const telling = new Set(lines.filter((line) => /^(✖ (?!failing)|ℹ (pass|fail) )/u.test(line)).map(withoutTime));
  const shown = [lines[0] ?? "", ...telling].slice(0, 8);
  const hidden = lines.length - shown.length;
  return shown.join("\n") + (hidden > 0 && telling.size === 0 ? ` (+ ${hidden} lines)` : "");
}

const withoutTime = (line: string): string => line.replace(/ \([\d.]+ms\)$/, "");
