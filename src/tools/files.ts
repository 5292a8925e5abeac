// Files as the tools see them: is there one, of what kind, is it text; every answer through the environment alone.
import type { DirectoryEntry, Environment } from "../environment/environment.ts";
import { RewindError, systemCode } from "../errors.ts";
import { baseOf, parentOf, plainName } from "./paths.ts";

/** Above this a file is not for a tool that returns text. */
const largestText = 8 << 20;

/** An environment in another process may tell the system's code in words only. */
const says = (error: unknown, ...codes: readonly string[]): boolean =>
  codes.includes(systemCode(error) ?? "") ||
  codes.some((code) => String((error as Error)?.message).includes(`${code}:`));

/** The entries of a folder. @throws NO_FILE, WRONG_KIND, PATH_OUTSIDE */
export async function entriesOf(environment: Environment, path: string): Promise<DirectoryEntry[]> {
  try {
    return await environment.list(path);
  } catch (error) {
    if (says(error, "ENOENT")) throw missing(path);
    if (says(error, "ENOTDIR")) {
      throw new RewindError("WRONG_KIND", `${path} is not a folder.`, { hint: "Use read for a file." });
    }
    throw error;
  }
}

/** Its bytes; undefined when there is no file of that name. @throws WRONG_KIND, FILE_TOO_LARGE, PATH_OUTSIDE */
export async function bytesOf(environment: Environment, path: string): Promise<Uint8Array | undefined> {
  const type = await typeOf(environment, path);
  if (type === undefined) return undefined;
  if (type === "directory") throw new RewindError("WRONG_KIND", `${path} is a folder.`, { hint: "Use list for it." });
  if (type === "other") {
    throw new RewindError("WRONG_KIND", `${path} is no ordinary file (a pipe, a socket or a device).`, {
      hint: "Use bash for it.",
    });
  }
  let bytes: Uint8Array;
  try {
    bytes = await environment.readFile(path);
  } catch (error) {
    if (says(error, "ENOENT")) return undefined;
    if (says(error, "EISDIR"))
      throw new RewindError("WRONG_KIND", `${path} leads to a folder.`, { hint: "Use list for it." });
    throw error;
  }
  if (bytes.byteLength <= largestText) return bytes;
  throw new RewindError("FILE_TOO_LARGE", `${path} has ${bytes.byteLength} bytes, more than this tool takes.`, {
    hint: "Use bash for it: head, tail, sed -n '1000,1100p', grep.",
    details: { bytes: bytes.byteLength },
  });
}

/** @throws NO_FILE, and what `bytesOf` throws */
export async function existing(environment: Environment, path: string): Promise<Uint8Array> {
  const bytes = await bytesOf(environment, path);
  if (bytes === undefined) throw missing(path);
  return bytes;
}

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Byte for byte what `Buffer.from(text)` gives back. @throws NOT_TEXT */
export function textOf(path: string, bytes: Uint8Array): string {
  try {
    if (!bytes.includes(0)) return strict.decode(bytes);
  } catch {
    // Not UTF-8.
  }
  throw new RewindError("NOT_TEXT", `${path} is a binary file of ${bytes.byteLength} bytes.`, {
    hint: "Use bash for it: file, strings, xxd | head.",
    details: { bytes: bytes.byteLength },
  });
}

async function typeOf(environment: Environment, path: string): Promise<DirectoryEntry["type"] | undefined> {
  try {
    const entries = await environment.list(parentOf(path));
    return entries.find((entry) => plainName(entry.name) === baseOf(path))?.type;
  } catch (error) {
    if (says(error, "ENOENT", "ENOTDIR")) return undefined;
    throw error;
  }
}

const missing = (path: string): RewindError =>
  new RewindError("NO_FILE", `There is no ${path}.`, {
    hint: `List ${parentOf(path) === "" ? "the workspace" : parentOf(path)} to see what is there.`,
  });
