// The mkfs.btrfs of this machine as a command: AGENTREWIND_MKFS_BTRFS, the one in PATH, or one in the user's cache of tools.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

const works = (command: readonly string[]): boolean => {
  const [program = "", ...args] = command;
  return spawnSync(program, [...args, "--version"]).status === 0;
};

function* candidates(): Generator<string[]> {
  const named = process.env.AGENTREWIND_MKFS_BTRFS?.split(" ").filter((word) => word !== "") ?? [];
  if (named.length > 0) yield named;
  yield ["mkfs.btrfs"];
  const tools = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "agentrewind", "tools");
  if (!existsSync(tools)) return;
  for (const prefix of ["", ...readdirSync(tools)].map((name) => join(tools, name))) {
    const libraries = join(prefix, "usr", "lib", "x86_64-linux-gnu");
    const loader = [join(libraries, "ld-linux-x86-64.so.2"), "--library-path", libraries];
    for (const folder of ["usr/sbin", "usr/bin", "sbin"]) {
      const program = join(prefix, folder, "mkfs.btrfs");
      if (existsSync(program)) yield [...loader, program];
    }
  }
}

let found: readonly string[] | undefined | null = null;

export function mkfsBtrfs(): readonly string[] | undefined {
  if (found === null) found = [...candidates()].find(works);
  return found;
}
