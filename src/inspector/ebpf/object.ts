// The object with the programs: of this machine's clang where there is one, else the one that the package brings.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { packageRoot } from "../../native.ts";

/** Paths in the order in which they are preferred; [] outside of the package. */
export function objectFiles(): string[] {
  const root = packageRoot();
  if (root === undefined) return [];
  return [
    join(root, "native", "build", "Release", "effects.bpf.o"),
    join(root, "bpf", "prebuilt", "effects.bpf.o"),
  ].filter((path) => existsSync(path));
}
