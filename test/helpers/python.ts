// Runs the Python scripts of test/fixtures: system calls that Node lacks, and an oracle that shares no code with the library.
import { execFileSync, spawnSync } from "node:child_process";
import { resolve } from "node:path";

const fixtures = resolve(import.meta.dirname, "../fixtures");
let found: string | null | undefined;

/** The interpreter itself, not a version manager's wrapper; null where there is none. */
export function pythonPath(): string | null {
  found ??=
    spawnSync("python3", ["-c", "import sys; print(sys.executable, end='')"], { encoding: "utf8" }).stdout || null;
  return found;
}

export const pythonArguments = (script: string, ...args: string[]): string[] => [
  "-IS",
  resolve(fixtures, script),
  ...args,
];

export const python = (script: string, ...args: string[]): string =>
  execFileSync(pythonPath() ?? "python3", pythonArguments(script, ...args), {
    encoding: "utf8",
    stdio: "pipe",
    maxBuffer: 64 << 20,
  });
