// Once for a run: the library and the command, bundled for the processes that tests start.
import type { TestProject } from "vitest/node";
import { bundle } from "./bundle.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Folder of the bundle. */
    library: string;
  }
}

export default async function setup({ provide }: TestProject): Promise<() => void> {
  const made = await bundle(
    "src/index",
    "src/cli/main",
    "src/upkeep",
    "src/store/control",
    "src/coordinator/engine/shared",
    "src/store/database",
    "src/store/layout",
    "src/store/store",
    "src/native",
    "src/environment/sandbox/layers/open",
    "adapters/openai/index",
  );
  provide("library", made.folder);
  return made.remove;
}
