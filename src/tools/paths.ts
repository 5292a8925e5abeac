// Paths as a model gives them: relative to the workspace, absolute below it, or in the quoted form in which unusual names are shown (F-14).
import type { Environment } from "../environment/environment.ts";
import { RewindError } from "../errors.ts";

/** Relative to the workspace, without "." parts; "" is its root. @throws PATH_OUTSIDE, BAD_ARGUMENT */
export function workspacePath(environment: Environment, given: string): string {
  const text = plainName(given);
  if (text === undefined || text.includes("\0")) {
    throw new RewindError("BAD_ARGUMENT", `${given} is a name that is not text.`, {
      hint: "Use bash for it, with the name written as $'…'.",
    });
  }
  const root = (environment.root ?? environment.path(""))?.replace(/\/+$/, "");
  const inside =
    root !== undefined && (text === root || text.startsWith(`${root}/`)) ? text.slice(root.length + 1) : text;
  const parts = inside.split("/").filter((part) => part !== "" && part !== ".");
  if (inside.startsWith("/") || parts.includes("..")) {
    throw new RewindError("PATH_OUTSIDE", `${given} is not inside the workspace.`, {
      hint: "Give a path relative to the workspace's root, without `..`.",
    });
  }
  return parts.join("/");
}

/** As `workspacePath`, for what has to name a file. @throws PATH_OUTSIDE, BAD_ARGUMENT */
export function filePath(environment: Environment, given: string): string {
  const path = workspacePath(environment, given);
  if (path !== "") return path;
  throw new RewindError("BAD_ARGUMENT", "The path names the workspace itself, not a file in it.", {
    hint: "Give the path of a file, relative to the workspace's root.",
  });
}

export const parentOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf("/")));
export const baseOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

const escapes: Record<string, string> = { n: "\n", t: "\t", '"': '"', "\\": "\\" };
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** What a shown name stands for; undefined when its bytes are not text. */
export function plainName(shown: string): string | undefined {
  if (shown.length < 2 || !shown.startsWith('"') || !shown.endsWith('"')) return shown;
  const parts = shown.slice(1, -1).split(/(\\x[0-9a-f]{2}|\\[nt"\\])/);
  const bytes = parts.map((part) => {
    if (part.startsWith("\\x")) return Buffer.from([Number.parseInt(part.slice(2), 16)]);
    return Buffer.from(part.startsWith("\\") ? (escapes[part[1] as string] ?? part) : part);
  });
  try {
    return strict.decode(Buffer.concat(bytes));
  } catch {
    return undefined;
  }
}
