// The read tool: a file's lines, numbered, from any line on; always the text itself.
import { z } from "zod";
import { RewindError } from "../errors.ts";
import { existing, textOf } from "./files.ts";
import { filePath } from "./paths.ts";
import type { ToolKind } from "./tool.ts";

/** Characters shown of one line. */
const longestLine = 2_000;

const schema = z.object({
  path: z.string().min(1).describe("Relative to the workspace's root."),
  offset: z.int().min(1).optional().describe("Number of the first line. Default 1."),
  limit: z.int().min(1).optional().describe("How many lines. Default: as many as fit."),
});

export const readTool: ToolKind<typeof schema> = {
  name: "read",
  description:
    "Read a text file. Each line comes with its number and a tab, which are not part of the file. Of a long file the answer says where to read on.",
  schema,
  async act({ path: given, offset = 1, limit: wanted = Number.POSITIVE_INFINITY }, { environment, knowledge, limit }) {
    const path = filePath(environment, given);
    const bytes = await existing(environment, path);
    const text = textOf(path, bytes);
    const window = windowOf(text, offset, wanted, limit);
    if (offset > Math.max(1, window.count)) {
      throw new RewindError("BAD_ARGUMENT", `${path} has ${window.count} lines; there is no line ${offset}.`, {
        hint: `Use an offset of at most ${window.count}.`,
      });
    }
    knowledge.learn(path, bytes);
    if (text === "") return "(the file is empty)";
    return [...window.shown, ...notes(text, window, offset)].join("\n");
  },
};

interface Window {
  readonly shown: readonly string[];
  /** Of all lines. */
  readonly count: number;
  readonly cut: boolean;
}

/** Goes through the text once, and makes strings of what is shown alone. */
function windowOf(text: string, offset: number, wanted: number, limit: number): Window {
  const shown: string[] = [];
  let count = 0;
  let size = 0;
  let cut = false;
  let full = false;
  for (let at = 0; at < text.length; ) {
    const found = text.indexOf("\n", at);
    const end = found < 0 ? text.length : found;
    count++;
    if (count >= offset && !full && shown.length < wanted) {
      const line = text.slice(at, text[end - 1] === "\r" && end > at ? end - 1 : end);
      const numbered = `${count}\t${clipped(line)}`;
      size += numbered.length + 1;
      full = size > limit && shown.length > 0;
      if (!full) {
        shown.push(numbered);
        cut ||= line.length > longestLine;
      }
    }
    at = end + 1;
  }
  return { shown, count, cut };
}

function notes(text: string, { shown, count, cut }: Window, first: number): string[] {
  const found: string[] = [];
  const last = first + shown.length - 1;
  if (first > 1 || last < count) {
    found.push(`[lines ${first} to ${last} of ${count}${last < count ? `; read on with offset ${last + 1}` : ""}]`);
  }
  if (cut)
    found.push(`[long lines are cut after ${longestLine} characters; use bash (cut -c, grep -o) to see the rest]`);
  if (text.includes("\r\n")) found.push("[line ends: CRLF; edit keeps them]");
  if (last === count && !text.endsWith("\n")) found.push("[no line end at the end of the file]");
  return found;
}

const clipped = (line: string): string =>
  line.length <= longestLine ? line : `${line.slice(0, longestLine)} [+${line.length - longestLine} characters]`;

/** Without their ends. */
export function linesOf(text: string): string[] {
  const lines = text.split("\n").map((line) => (line.endsWith("\r") ? line.slice(0, -1) : line));
  if (lines.at(-1) === "") lines.pop();
  return lines;
}
