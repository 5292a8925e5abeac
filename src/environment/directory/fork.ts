// Forks of a directory: the first is restored into an empty folder, the others beside each other, sharing its contents where the file system can.
import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { execa } from "execa";
import { RewindError, systemCode } from "../../errors.ts";
import { canShare, makeFolder, makeNewFolder } from "../../store/io.ts";
import type { Environment, ForkedEnvironment, ForkOptions, Manifest, Problem } from "../environment.ts";
import type { DirectoryOptions } from "./options.ts";
import { removeFolder } from "./remove.ts";

/** As many at once as keep the disk busy; each holds the descriptors of one restore. */
const atOnce = 4;

export async function forkDirectory(
  source: DirectoryOptions,
  manifest: Manifest,
  count: number,
  { into, onMade }: ForkOptions = {},
  open: (options: DirectoryOptions) => Environment,
): Promise<ForkedEnvironment[]> {
  if (!Number.isSafeInteger(count) || count < 1 || (into !== undefined && into.length !== count)) {
    throw new RewindError("BAD_ARGUMENT", `A fork into ${count} environments is not possible.`, {
      hint: "Give a count of at least 1, and one place for each.",
    });
  }
  const folders = into ?? chooseFolders(source, count);
  const made: ForkedEnvironment[] = [];
  const begun: string[] = [];
  let done = 0;
  async function make(folder: string, index: number): Promise<void> {
    makeEmpty(folder);
    begun.push(folder);
    const id = `${source.id}-${index + 1}`;
    let generation = 0;
    const environment = open({
      ...source,
      root: folder,
      id,
      cacheFile: join(dirname(source.cacheFile), `${id}.tree`),
      raiseGeneration: () => ++generation,
    });
    const notRestored = (await share(made[0], folder)) ?? (await environment.restore(manifest)).notRestored;
    made[index] = { ...environment, notRestored, discard: () => removeFolder(folder) };
    onMade?.(++done);
  }
  /** A copy of the first that shares its contents; undefined where the file system cannot. */
  async function share(first: ForkedEnvironment | undefined, folder: string): Promise<readonly Problem[] | undefined> {
    if (first === undefined || process.platform !== "linux" || !canShare(folder)) return undefined;
    const copy = await execa("cp", ["-a", "--reflink=always", "-T", folders[0] as string, folder], { reject: false });
    if (copy.exitCode === 0) return first.notRestored;
    await removeFolder(folder);
    makeEmpty(folder);
    return undefined;
  }
  try {
    await make(folders[0] as string, 0);
    if (count > 1) await makeRest(folders, make);
    return made;
  } catch (error) {
    for (const folder of begun) await removeFolder(folder);
    throw error;
  }
}

async function makeRest(
  folders: readonly string[],
  make: (folder: string, index: number) => Promise<void>,
): Promise<void> {
  let next = 1;
  let failed = false;
  async function work(): Promise<void> {
    while (next < folders.length && !failed) {
      const index = next++;
      try {
        await make(folders[index] as string, index);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  }
  // All have ended when it returns: what a failure removes, nobody still writes to.
  const results = await Promise.allSettled(Array.from({ length: atOnce }, work));
  const refused = results.find((one) => one.status === "rejected");
  if (refused !== undefined) throw refused.reason;
}

function chooseFolders({ forks, id }: DirectoryOptions, count: number): string[] {
  if (forks === undefined) {
    throw new RewindError("BAD_ARGUMENT", "Nobody says where the forks shall lie.", { hint: "Give `into`." });
  }
  makeFolder(forks, 0o700);
  const taken = new Set(readdirSync(forks));
  const names: string[] = [];
  for (let number = 1; names.length < count; number++) {
    const name = `${id}-${number}`;
    if (!taken.has(name)) names.push(name);
  }
  return names.map((name) => join(forks, name));
}

/** Nobody else can read it until its own mode is restored. @throws FOLDER_NOT_EMPTY */
export function makeEmpty(folder: string): void {
  makeFolder(dirname(folder));
  try {
    makeNewFolder(folder, 0o700);
  } catch (error) {
    if (systemCode(error) !== "EEXIST") throw error;
    requireEmpty(folder);
  }
}

/** @throws FOLDER_NOT_EMPTY */
export function requireEmpty(folder: string): void {
  try {
    if (readdirSync(folder).length === 0) return;
  } catch (error) {
    if (systemCode(error) === "ENOENT") return;
    if (systemCode(error) !== "ENOTDIR") throw error;
  }
  throw new RewindError("FOLDER_NOT_EMPTY", `${folder} is there already and not an empty folder.`, {
    hint: "Name a folder that is empty or not there yet.",
    details: { folder },
  });
}
