// The list tool: the names in one folder.
import { z } from "zod";
import type { DirectoryEntry } from "../environment/environment.ts";
import { entriesOf } from "./files.ts";
import { workspacePath } from "./paths.ts";
import type { ToolKind } from "./tool.ts";

const schema = z.object({
  path: z.string().optional().describe("A folder, relative to the workspace's root. Default: the root."),
});

const endings: Record<DirectoryEntry["type"], string> = { file: "", directory: "/", symlink: "@", other: "|" };

export const listTool: ToolKind<typeof schema> = {
  name: "list",
  description:
    'List a folder, hidden names too. Folders end with "/", links with "@", pipes and devices with "|". Names in quotes can be used as they stand.',
  schema,
  async act({ path: given = "" }, { environment, limit }) {
    const entries = await entriesOf(environment, workspacePath(environment, given));
    if (entries.length === 0) return "(the folder is empty)";
    const names = entries.map(({ name, type }) => name + endings[type]).sort();
    let size = 0;
    const shown = names.filter((name) => {
      size += name.length + 1;
      return size <= limit;
    });
    const left = names.length - shown.length;
    if (left > 0) shown.push(`[${left} more of ${names.length}: narrow it with bash, for example ls | grep]`);
    return shown.join("\n");
  },
};
