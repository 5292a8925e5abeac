// Imports under way: a note for each, so that what a killed one has made is found and removed (F-72).
import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { z } from "zod";
import { removeFolder } from "../environment/directory/remove.ts";
import { openTheLayers, requireMachine } from "../environment/sandbox/open.ts";
import { isRewindError, systemCode } from "../errors.ts";
import { identityText } from "../store/branches.ts";
import { makeFolder, remove, removeTree, replaceFileNow, syncFolder } from "../store/io.ts";
import { layoutOf } from "../store/layout.ts";
import { type Lock, takeLock, tryLock } from "../store/lock.ts";
import { openStore, type Store } from "../store/store.ts";
import type { Header } from "./schema.ts";

const noteSchema = z.strictObject({
  kind: z.enum(["directory", "sandbox"]),
  folder: z.string(),
  /** Of the folder that was made, so that no other one is removed in its place; null before it is complete. */
  identity: z.string().nullable(),
});
type Note = z.infer<typeof noteSchema>;

export interface Arriving {
  /** Of the environment, and of its workspace. */
  readonly id: string;
  readonly workspace: string;
  /** Where the files are put before they have their place. */
  readonly staged: string;
  /** The staged folder is complete, and comes to its place next. */
  place(): Promise<void>;
  /** It is in the catalog: nothing of it is to be removed any more. */
  done(): Promise<void>;
  /** Nothing of it is left. */
  undo(): Promise<void>;
}

/** The environment is held until it is done or undone. */
export async function beginArrival(
  store: Store,
  kind: Header["environment"]["kind"],
  folder: string,
): Promise<Arriving> {
  const key = randomBytes(6).toString("hex");
  const id = `e${key}`;
  const lock = takeLock(store.layout.locks, id);
  let note: Note = { kind, folder, identity: null };
  const staged = stagedFolder(folder, id);
  const write = (): Promise<void> => writeNote(store, id, note);
  try {
    await write();
  } catch (error) {
    // Nothing else was begun.
    await forget(store, id, lock);
    throw error;
  }
  return {
    id,
    workspace: `w${key}`,
    staged,
    async place() {
      note = { ...note, identity: identityText(staged) };
      await write();
    },
    async done() {
      await forget(store, id, lock);
    },
    undo: () => undo(store, id, note, lock),
  };
}

/** What killed imports have left in a store; those that run are left alone. No store is made. @throws STORE_TOO_NEW, STORE_CORRUPT */
export async function removeLeftOverAt(path: string): Promise<void> {
  const { root } = layoutOf(path);
  if (!existsSync(notesFolder(root)) || readdirSync(notesFolder(root)).length === 0) return;
  const store = openStore(path);
  try {
    await removeLeftOver(store);
  } finally {
    store.close();
  }
}

async function removeLeftOver(store: Store): Promise<void> {
  const folder = notesFolder(store.layout.root);
  for (const file of readdirSync(folder)) {
    const id = /^(e[0-9a-f]{12})\.json(?:\.\d+)?$/.exec(file)?.[1];
    if (id === undefined) continue;
    if (isKnown(store, id)) {
      remove(join(folder, file));
      continue;
    }
    const lock = tryLock(store.layout.locks, id);
    if (lock === undefined) continue;
    try {
      await undo(store, id, readNote(join(folder, file)), lock);
      remove(join(folder, file));
    } catch (error) {
      // It cannot be done now: the next import tries again.
      if (!isRewindError(error) && systemCode(error) === undefined) throw error;
    }
  }
}

const isKnown = (store: Store, id: string): boolean =>
  store.sql.prepare("SELECT 1 FROM environment WHERE id = ?").get(id) !== undefined;

/** What is in the catalog stays. */
async function undo(store: Store, id: string, note: Note | undefined, lock: Lock): Promise<void> {
  const { root, cache } = store.layout;
  if (note === undefined || isKnown(store, id)) return forget(store, id, lock);
  const { kind, folder, identity } = note;
  try {
    await removeFolder(stagedFolder(folder, id));
    if (identity !== null && identityText(folder) === identity) await removeFolder(folder);
    if (kind === "sandbox") {
      const { layers } = await openTheLayers({ store: root, id, objects: store.open(id).objects }, requireMachine());
      try {
        await layers.discard();
      } finally {
        await layers.close();
      }
      await removeTree(join(root, "images", id));
      remove(join(root, "sandboxes", `${id}.json`));
    }
    for (const file of [`${id}.tree`, `${id}-bundle.tree`]) remove(join(cache, file));
  } catch (error) {
    lock.release();
    throw error;
  }
  await forget(store, id, lock);
}

async function forget(store: Store, id: string, lock: Lock): Promise<void> {
  try {
    remove(join(notesFolder(store.layout.root), `${id}.json`));
  } finally {
    lock.release();
  }
  if (!isKnown(store, id)) remove(join(store.layout.locks, `${id}.lock`));
}

const notesFolder = (root: string): string => join(root, "imports");

const stagedFolder = (folder: string, id: string): string => join(dirname(folder), `.agentrewind-${id}`);

async function writeNote(store: Store, id: string, note: Note): Promise<void> {
  const folder = notesFolder(store.layout.root);
  makeFolder(folder, 0o700);
  replaceFileNow(join(folder, `${id}.json`), Buffer.from(JSON.stringify(note)));
  await syncFolder(folder);
}

/** Undefined for one that its writer did not finish: then nothing else was begun. */
function readNote(path: string): Note | undefined {
  try {
    return noteSchema.parse(JSON.parse(readFileSync(path, "utf8")));
  } catch {
    return undefined;
  }
}
