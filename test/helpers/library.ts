// The library and the command as files that processes of their own run.
import { join } from "node:path";
import { inject } from "vitest";

/** @param path in the repository, without .ts. */
const bundled = (path: string): string => join(inject("library"), `${path}.js`);

export const libraryEntry: string = bundled("src/index");
export const commandFile: string = bundled("src/cli/main");
export const openaiFile: string = bundled("adapters/openai/index");
export const engineFile: string = bundled("src/coordinator/engine/shared");
export const controlFile: string = bundled("src/store/control");
