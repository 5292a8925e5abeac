// Where the sandbox's own program lies, and why it may not be there.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** The program, or undefined where it was not built (no C compiler at install). */
export const sandboxProgram = (): string | undefined => built("agentrewind-sandbox");

/** What CRIU is loaded with to do what it does not do by itself here (native/sandbox/criu-*.c). */
export const criuLibrary = (): string | undefined => built("agentrewind-criu.so");

function built(name: string): string | undefined {
  for (let folder = dirname(fileURLToPath(import.meta.url)); ; folder = dirname(folder)) {
    const program = join(folder, "native", "build", "Release", name);
    if (existsSync(program)) return program;
    if (dirname(folder) === folder) return undefined;
  }
}
