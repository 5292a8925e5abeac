// `fork`: independent workspaces that go on from a checkpoint.
import { resolve } from "node:path";
import type { BranchInfo } from "../opened.ts";
import { oneLine, safe } from "../text/safe.ts";
import { plural } from "../text/words.ts";
import { type Global, quoted } from "./global.ts";
import type { Output } from "./output.ts";
import { give } from "./writer.ts";

export interface ForkOptions {
  readonly into: string;
  readonly count?: number;
}

export async function fork(global: Global, id: string, { into, count = 1 }: ForkOptions): Promise<Output> {
  // The process that holds the workspace may work in another folder.
  const request = { count, into: resolve(into) };
  const made = await give<BranchInfo[]>(global, {
    command: "fork",
    arguments: { id, ...request },
    async here(thread, rewind) {
      const branches = await rewind.fork(id, { thread: thread.name, ...request });
      for (const branch of branches) await branch.close();
      const names = new Set(branches.map((branch) => branch.id));
      return rewind.branches().filter((one) => names.has(one.id));
    },
    begins: false,
  });
  return {
    json: made,
    text: (paint) => [
      `${plural(made.length, "branch", "branches")} from ${id} of thread ${oneLine(made[0]?.source.thread ?? "")}:`,
      ...made.map((one) => `  ${paint("bold", one.id)} ${safe(one.folder ?? "")}`),
      `To go on in one: agentrewind --workspace ${quoted(made[0]?.folder ?? "")}${storeOption(global)} list`,
    ],
  };
}

const storeOption = (global: Global): string => {
  const given = /--store (?:'[^']*'|\S+)/.exec(global.given);
  return given === null ? "" : ` ${given[0]}`;
};
