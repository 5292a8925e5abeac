// Where a store keeps what (docs/format.md, Layout), and its permissions.
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { makeFolder, setMode } from "./io.ts";

export interface Layout {
  readonly root: string;
  readonly catalog: string;
  readonly packs: string;
  readonly locks: string;
  readonly cache: string;
  /** Made when the first command is run. */
  readonly programs: string;
}

/** The user's store: $XDG_STATE_HOME/agentrewind, else ~/.local/state/agentrewind. */
export function defaultStorePath(env: NodeJS.ProcessEnv = process.env): string {
  return join(env.XDG_STATE_HOME || join(homedir(), ".local", "state"), "agentrewind");
}

export function layoutOf(path: string): Layout {
  const root = resolve(path);
  return {
    root,
    catalog: join(root, "catalog.db"),
    packs: join(root, "packs"),
    locks: join(root, "locks"),
    cache: join(root, "cache"),
    programs: join(root, "programs"),
  };
}

/** Makes the folders, readable by the owner only (F-2). */
export function prepareLayout(layout: Layout): void {
  for (const folder of [layout.root, layout.packs, layout.locks, layout.cache]) {
    makeFolder(folder, 0o700);
    setMode(folder, 0o700);
  }
}
