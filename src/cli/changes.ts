// Changes of files as lines, with the letters of `git status`: A added, D deleted, M modified, m metadata, T type, R renamed.
import type { FileChanges } from "../environment/environment.ts";
import type { Paint } from "../text/paint.ts";
import { oneLine, safe } from "../text/safe.ts";

interface Change {
  readonly letter: "A" | "D" | "M" | "m" | "T" | "R";
  readonly path: string;
}

const colours = { A: "green", D: "red", M: "yellow", m: "dim", T: "magenta", R: "cyan" } as const;

function listChanges(changes: FileChanges): Change[] {
  const all = (letter: Change["letter"], paths: readonly string[]): Change[] =>
    paths.map((path) => ({ letter, path: safe(path) }));
  return [
    ...all("A", changes.added),
    ...all("D", changes.removed),
    ...all("M", changes.changed),
    ...all("T", changes.type),
    ...changes.renamed.map(({ from, to }): Change => ({ letter: "R", path: `${safe(from)} -> ${safe(to)}` })),
    ...all("m", changes.mode),
  ];
}

export function changeLines(changes: FileChanges, paint: Paint): string[] {
  return listChanges(changes).map(({ letter, path }) => `  ${paint(colours[letter], letter)} ${path}`);
}

export const countChanges = (changes: FileChanges): number => listChanges(changes).length;

/** "M src/a.ts, A b.txt and 3 more", with the metadata of folders that only had their times moved left out. */
export function shortChanges(changes: FileChanges | null, limit: number): string {
  if (changes === null) return "";
  const all = listChanges(changes);
  const telling = all.filter(({ letter }) => letter !== "m");
  const listed = telling.length > 0 ? telling : all;
  const parts: string[] = [];
  for (const { letter, path } of listed) {
    const part = `${letter} ${path}`;
    if (parts.length > 0 && [...parts, part].join(", ").length > limit) break;
    parts.push(part);
  }
  const rest = listed.length - parts.length;
  return oneLine(parts.join(", "), limit) + (rest > 0 ? ` and ${rest} more` : "");
}
