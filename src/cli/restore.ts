// `restore`: only some paths go back to a checkpoint; the rest of the files and the conversation stay.

import type { Global } from "./global.ts";
import type { Output } from "./output.ts";
import { rewind } from "./rewind.ts";

export interface RestoreOptions {
  readonly lesson?: string;
  readonly dryRun?: boolean;
}

export const restore = (
  global: Global,
  to: string,
  paths: readonly string[],
  options: RestoreOptions,
): Promise<Output> => rewind(global, to, { ...options, scope: "environment", paths });
