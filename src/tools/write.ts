// The write tool: a whole file, new or instead of one that the agent has read.
import { z } from "zod";
import { bytesOf } from "./files.ts";
import { filePath } from "./paths.ts";
import { linesOf } from "./read.ts";
import type { ToolKind } from "./tool.ts";

const schema = z.object({
  path: z.string().min(1).describe("Relative to the workspace's root. Folders that are missing are made."),
  content: z.string().describe("All that the file will hold."),
});

export const writeTool: ToolKind<typeof schema> = {
  name: "write",
  description:
    "Write a whole file. A file that is there already must have been read before, and not changed since; for a change in it use edit.",
  schema,
  writes: true,
  async act({ path: given, content }, { environment, knowledge, write }) {
    const path = filePath(environment, given);
    const before = await bytesOf(environment, path);
    if (before !== undefined) knowledge.require(path, before);
    const data = Buffer.from(content);
    await write(path, data);
    knowledge.learn(path, data);
    const lines = linesOf(content).length;
    return `${before === undefined ? "Made" : "Replaced"} ${path}: ${lines} ${lines === 1 ? "line" : "lines"}, ${data.byteLength} bytes.`;
  },
};
