// The edit tool: one exact piece of a file's text, which occurs once, replaced by another.
import { z } from "zod";
import { RewindError } from "../errors.ts";
import { existing, textOf } from "./files.ts";
import { filePath } from "./paths.ts";
import { linesOf } from "./read.ts";
import type { ToolKind } from "./tool.ts";

const placesShown = 8;

const schema = z.object({
  path: z.string().min(1).describe("Relative to the workspace's root."),
  old: z.string().min(1).describe("The exact text to replace, with its indentation; it has to occur once in the file."),
  new: z.string().describe("The text that takes its place."),
});

export const editTool: ToolKind<typeof schema> = {
  name: "edit",
  description:
    "Replace one exact piece of a text file. The file must have been read before, and not changed since. " +
    "The piece has to occur exactly once: take enough of the lines around it.",
  schema,
  writes: true,
  async act({ path: given, old, new: replacement }, { environment, knowledge, write }) {
    const path = filePath(environment, given);
    const bytes = await existing(environment, path);
    const text = textOf(path, bytes);
    knowledge.require(path, bytes);
    if (old === replacement) {
      throw new RewindError("BAD_ARGUMENT", "The old and the new text are the same.", {
        hint: "Say what is to change.",
      });
    }
    const ends = lineEnds(text, old);
    const [wanted, instead] = [ends(old), ends(replacement)];
    const { count, places } = find(text, wanted);
    const [at] = places;
    if (at === undefined) throw noMatch(path, text, old);
    if (count > 1) throw ambiguous(path, text, count, places);
    const data = Buffer.from(text.slice(0, at) + instead + text.slice(at + wanted.length));
    await write(path, data);
    knowledge.learn(path, data);
    return `Edited ${path} at line ${lineAt(text, at)}.`;
  },
};

/** A file whose lines end with CRLF is shown without the CR: what does not occur as it stands is looked for, and put in, with these ends. */
function lineEnds(text: string, old: string): (piece: string) => string {
  const keeps = text.includes(old) || !text.includes("\r\n") || old.includes("\r");
  return keeps ? (piece) => piece : (piece) => piece.replace(/(?<!\r)\n/g, "\r\n");
}

/** @returns how often `piece` occurs, and where first */
function find(text: string, piece: string): { readonly count: number; readonly places: readonly number[] } {
  const places: number[] = [];
  let count = 0;
  for (let at = text.indexOf(piece); at >= 0; at = text.indexOf(piece, at + 1)) {
    if (count++ < placesShown) places.push(at);
  }
  return { count, places };
}

const lineAt = (text: string, at: number): number => text.slice(0, at).split("\n").length;

const listed = (lines: readonly number[], count: number): string =>
  `${count === 1 ? "line" : "lines"} ${lines.slice(0, placesShown).join(", ")}${count > placesShown ? ", …" : ""}`;

function noMatch(path: string, text: string, old: string): RewindError {
  const message = `The old text does not occur in ${path}.`;
  if (linesOf(old).every((line) => /^\s*\d+\t/.test(line))) {
    return new RewindError("NO_MATCH", message, {
      hint: "Leave out the line numbers and tabs that read puts before each line.",
    });
  }
  const first = linesOf(old)
    .find((line) => line.trim() !== "")
    ?.trim();
  const alike = linesOf(text).flatMap((line, index) => (line.trim() === first ? [index + 1] : []));
  return new RewindError("NO_MATCH", message, {
    hint:
      alike.length === 0
        ? "Read the part that you want to change again, and take the text from there."
        : `Its first line is at ${listed(alike, alike.length)}, but what follows, or the white space, differs. Read from there and take the text exactly.`,
    details: { alike: alike.slice(0, placesShown) },
  });
}

function ambiguous(path: string, text: string, count: number, places: readonly number[]): RewindError {
  const lines = places.map((at) => lineAt(text, at));
  return new RewindError(
    "AMBIGUOUS_MATCH",
    `The old text occurs ${count} times in ${path}, at ${listed(lines, count)}.`,
    {
      hint: "Take more of the lines around the one that you mean, so that it occurs once.",
      details: { count },
    },
  );
}
