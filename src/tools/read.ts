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
    const lines = linesOf(text);
    if (lines.length === 0) {
      knowledge.learn(path, bytes);
      return "(the file is empty)";
    }
    if (offset > lines.length) {
      throw new RewindError("BAD_ARGUMENT", `${path} has ${lines.length} lines; there is no line ${offset}.`, {
        hint: `Use an offset of at most ${lines.length}.`,
      });
    }
    const shown: string[] = [];
    let size = 0;
    let cut = false;
    for (const line of lines.slice(offset - 1, offset - 1 + wanted)) {
      const numbered = `${offset + shown.length}\t${clipped(line)}`;
      size += numbered.length + 1;
      if (size > limit && shown.length > 0) break;
      cut ||= line.length > longestLine;
      shown.push(numbered);
    }
    knowledge.learn(path, bytes);
    return [...shown, ...notes(text, lines.length, offset, offset + shown.length - 1, cut)].join("\n");
  },
};

function notes(text: string, count: number, first: number, last: number, cut: boolean): string[] {
  const found: string[] = [];
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
