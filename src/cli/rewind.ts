// `rewind`: back to a checkpoint; beside a running agent at its next turn boundary.
import { randomUUID } from "node:crypto";
import type { Scope } from "../session/types.ts";
import type { Global } from "./global.ts";
import { type Moved, movedOutput, withoutContext } from "./moved.ts";
import type { Output } from "./output.ts";
import { give } from "./writer.ts";

export interface RewindOptions {
  readonly lesson?: string;
  readonly dryRun?: boolean;
  readonly scope?: Scope;
  readonly paths?: readonly string[];
  readonly verify?: string;
}

export async function rewind(global: Global, to: string, options: RewindOptions): Promise<Output> {
  const { scope = "both", dryRun = false, lesson, paths, verify } = options;
  // The key makes it one rewind, also when the holder ends before it answers.
  const request = {
    to,
    scope,
    dryRun,
    key: randomUUID(),
    ...(lesson === undefined ? {} : { lesson }),
    ...(paths === undefined ? {} : { paths }),
    ...(verify === undefined ? {} : { verify }),
  };
  const moved = await give<Moved>(global, {
    command: "rewind",
    arguments: request,
    here: async (thread) => withoutContext(await thread.rewind(request)),
    begins: false,
  });
  return movedOutput(global, moved, { kind: "rewind", scope, dryRun });
}
