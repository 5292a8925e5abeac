// Where the sandbox's own program lies, and why it may not be there.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The program, or undefined where it was not built (no C compiler at install). */
export const sandboxProgram = (): string | undefined => built("agentrewind-sandbox");

/** What lets CRIU see the limits of other users' processes where it has not the capability (native/sandbox/limits.c). */
export const limitsLibrary = (): string | undefined => built("agentrewind-limits.so");

function built(name: string): string | undefined {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    const program = join(folder, "native", "build", "Release", name);
    if (existsSync(program)) return program;
    if (dirname(folder) === folder) return undefined;
  }
}
