// The programs that a sandbox would use here, for tests that must know before they begin.
import { spawnSync } from "node:child_process";
import { resolve } from "node:path";
import type { CriuProgram } from "../../src/environment/sandbox/processes/criu-channel.ts";
import type { Found, HostProgram } from "../../src/environment/sandbox/tools.ts";

interface Tools {
  readonly criu: Found<CriuProgram>;
  readonly mkfsBtrfs: Found<HostProgram>;
}

let found: Tools | undefined;

export function tools(): Tools {
  found ??= JSON.parse(
    spawnSync(process.execPath, ["--import", "tsx", resolve(import.meta.dirname, "../fixtures/tools.mjs")], {
      encoding: "utf8",
    }).stdout,
  ) as Tools;
  return found;
}

/** The command of mkfs.btrfs; undefined where there is none. */
export const mkfsBtrfs = (): readonly string[] | undefined => tools().mkfsBtrfs.tool?.command;
