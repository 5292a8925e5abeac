// Absolute paths as a sandbox sees them: which lie below which.
import { fromBytes, type RawPath } from "../directory/names.ts";

/** The folder itself, too. */
export const isBelow = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder === "/" ? "/" : `${folder}/`);

/** A path is one of these, or below one. */
export const covers = (folders: readonly string[], path: string): boolean =>
  folders.some((folder) => isBelow(path, folder));

/** The path below the folder; "" for the folder itself. */
export const restBelow = (path: string, folder: string): string => path.slice(folder === "/" ? 1 : folder.length + 1);

/** The other way round. */
export const inFolder = (folder: string, rest: string): string =>
  rest === "" ? folder : folder === "/" ? `/${rest}` : `${folder}/${rest}`;

/** Of those that hold the path, the one that nothing else lies between. */
export const innermost = <T>(list: readonly T[], folderOf: (one: T) => string, path: string): T | undefined =>
  list.filter((one) => isBelow(path, folderOf(one))).sort((a, b) => folderOf(b).length - folderOf(a).length)[0];

/** Without those that lie below another one. */
export const outermost = (paths: readonly string[]): string[] =>
  paths.filter((path, index) =>
    paths.every((other, at) => at === index || !isBelow(path, other) || (other === path && at > index)),
  );

export const raw = (path: string): RawPath => fromBytes(Buffer.from(path));
