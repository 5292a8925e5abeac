// Bundles what tests start as processes of their own: one of these is started in half the time, and none waits for a compiler.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { join, resolve } from "node:path";
import { build, defaultServerConditions } from "vite";

export interface Bundle {
  /** Holds each entry under its path in the repository, as .js. */
  readonly folder: string;
  remove(): void;
}

/** @param entries paths in the repository, without .ts. */
export async function bundle(...entries: readonly string[]): Promise<Bundle> {
  const root = resolve(import.meta.dirname, "../..");
  // Below the package's root: from there the addon is found.
  const parent = join(root, "node_modules", ".cache");
  mkdirSync(parent, { recursive: true });
  const folder = mkdtempSync(join(parent, "agentrewind-test-"));
  const conditions = ["agentrewind-source", ...defaultServerConditions];
  await build({
    root,
    configFile: false,
    logLevel: "error",
    ssr: { noExternal: true, resolve: { conditions } },
    build: {
      ssr: true,
      target: "node20",
      outDir: folder,
      rollupOptions: {
        input: Object.fromEntries(entries.map((entry) => [entry, join(root, `${entry}.ts`)])),
        external: ["better-sqlite3"],
        output: { entryFileNames: "[name].js" },
      },
    },
  });
  // Other users run it as well.
  spawnSync("chmod", ["-R", "a+rX", folder]);
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}
