// Compiles the library once for tests that start real processes; each test file gets a copy of its own.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";

export interface Built {
  /** Absolute path of the compiled index.js. */
  readonly entry: string;
  remove(): void;
}

export function buildLibrary(): Built {
  const root = resolve(import.meta.dirname, "../..");
  const parent = join(root, "node_modules", ".cache");
  mkdirSync(parent, { recursive: true });
  const out = mkdtempSync(join(parent, "agentrewind-test-"));
  const result = spawnSync(
    process.execPath,
    [
      join(root, "node_modules/typescript/bin/tsc"),
      "-p",
      "tsconfig.build.json",
      "--outDir",
      out,
      "--sourceMap",
      "false",
    ],
    { cwd: root, encoding: "utf8" },
  );
  const entry = join(out, "src", "index.js");
  // Type errors are the type check's business; here it counts that code came out.
  if (!existsSync(entry)) throw new Error(`the library could not be compiled: ${result.stdout}${result.stderr}`);
  spawnSync("chmod", ["-R", "a+rX", out]);
  return { entry, remove: () => rmSync(out, { recursive: true, force: true }) };
}
