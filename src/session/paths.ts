// Which paths a request names: checked and in one form, a folder standing for all below it.
import { RewindError } from "../errors.ts";
import type { Attribution } from "./external.ts";

/** @throws BAD_ARGUMENT, PATH_OUTSIDE */
export function cleanPaths(paths: readonly string[]): string[] {
  if (paths.length === 0) {
    throw new RewindError("BAD_ARGUMENT", "No path was named.", {
      hint: "Name files or folders relative to the workspace, or leave `paths` out to take back everything.",
    });
  }
  return [...new Set(paths.map(cleanPath))];
}

function cleanPath(path: string): string {
  const quoted = isQuoted(path);
  const parts = (quoted ? path.slice(1, -1) : path).split("/");
  const kept = parts.filter((part) => part !== "" && part !== ".");
  if (path === "" || (parts[0] === "" && parts.length > 1) || kept.includes("..")) {
    throw new RewindError(
      path === "" ? "BAD_ARGUMENT" : "PATH_OUTSIDE",
      path === "" ? "A path is empty." : `${path} is not inside the workspace.`,
      { hint: 'Give paths relative to the workspace, without `..`; "." means all of it.' },
    );
  }
  return quoted ? `"${kept.join("/")}"` : kept.join("/");
}

const isQuoted = (path: string): boolean => path.length >= 2 && path.startsWith('"') && path.endsWith('"');
const bare = (path: string): string => (isQuoted(path) ? path.slice(1, -1) : path);

/** Whether `path` is one of `selected` or below one; null selects all. */
export function covers(selected: readonly string[] | null, path: string): boolean {
  if (selected === null) return true;
  const one = bare(path);
  return selected.map(bare).some((name) => name === "" || one === name || one.startsWith(`${name}/`));
}

export const selectPaths = ({ external, conflicts }: Attribution, selected: readonly string[] | null): Attribution => ({
  external: external.filter((path) => covers(selected, path)),
  conflicts: conflicts.filter((path) => covers(selected, path)),
});
