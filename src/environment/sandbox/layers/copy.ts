// Layers without a btrfs: the live folder is an ordinary one, and its states are those of the directory engine.
import { closeSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { makeBreather } from "../../../breathe.ts";
import { asWriteFailure, RewindError } from "../../../errors.ts";
import { fault } from "../../../faults.ts";
import {
  makeFolder,
  makeNewFolder,
  openForWriting,
  remove,
  removeFolder,
  syncFolder,
  writeAll,
} from "../../../store/io.ts";
import type { Objects } from "../../../store/objects.ts";
import { openDirectory } from "../../directory/directory.ts";
import { type Entry, entryType, sameContent } from "../../directory/entry.ts";
import { fromDisplay } from "../../directory/names.ts";
import { openPosix } from "../../directory/open-posix.ts";
import { readContent } from "../../directory/read-content.ts";
import { removeFolder as removeTree } from "../../directory/remove.ts";
import { compareTrees, findEntry, readSnapshot } from "../../directory/tree.ts";
import type { Environment, Problem } from "../../environment.ts";
import { isScratch } from "./difference.ts";
import { type LayerDifference, type LayerEntry, type LayerSnapshot, type Layers, workSuffix } from "./layers.ts";
import { isOfSocket, restoreLayers } from "./sockets.ts";

/*
 * In the sandbox's folder (F-62): `live`; in `states` an empty file for each state, named as the directory engine names it (so the same state has the same name, always); and while a
 * reset is under way, `target` with the name of the state that the live folder is to be, which the next open brings to its end.
 */

export interface CopyOptions {
  /** The sandbox's own; made when it is not there. */
  readonly folder: string;
  readonly objects: Objects;
  /** The environment's id. */
  readonly id: string;
}

export async function openCopyLayers(options: CopyOptions): Promise<Layers> {
  const { folder } = options;
  try {
    makeFolder(join(folder, "states"), 0o700);
    const layers = new CopyLayers(options);
    await layers.begin();
    return layers;
  } catch (error) {
    throw asWriteFailure(error, folder);
  }
}

/** In the place of a name: the empty state. */
const nothing = "-";

class CopyLayers implements Layers {
  readonly kind = "copy";
  readonly #options: CopyOptions;
  readonly #states: Set<string>;
  readonly #live: string;
  readonly #directory: Environment;
  #last: Promise<unknown> = Promise.resolve();

  constructor(options: CopyOptions) {
    const { folder, objects, id } = options;
    this.#options = options;
    this.#live = join(folder, "live");
    this.#states = new Set(readdirSync(join(folder, "states")));
    let generation = 0;
    this.#directory = openDirectory({
      root: this.#live,
      objects,
      id,
      exclude: [`*${workSuffix}/**`],
      watches: false,
      cacheFile: join(folder, "tree"),
      isHeld: (name) => this.#states.has(name),
      raiseGeneration: () => ++generation,
    });
  }

  async begin(): Promise<void> {
    const target = this.#path("target");
    if (existsSync(target)) await this.#bring(readFileSync(target, "latin1"));
    else makeFolder(this.#live, 0o700);
  }

  get kept(): string {
    return this.#path("kept");
  }

  live(): string {
    return this.#live;
  }

  snapshot(): Promise<LayerSnapshot> {
    return this.#inTurn(async () => {
      this.#settleScratch();
      const { manifest, problems, bytes } = await this.#directory.capture().captured;
      const name = manifest.files as string;
      const known = this.#states.has(name);
      if (!known) {
        closeSync(openForWriting(this.#stateFile(name), "w"));
        this.#states.add(name);
      }
      fault("layers.snapshot-made");
      const raw = problems
        .filter((one) => !isOfSocket(one))
        .map(({ path, reason }) => ({ path: fromDisplay(path), reason }));
      return { name, bytes: known ? 0 : bytes, problems: raw };
    });
  }

  /** Mounting an overlay moves the time of its workdir, which nobody reads. */
  #settleScratch(): void {
    const posix = openPosix(this.#live);
    try {
      for (const { name, type } of posix.readDirectory(""))
        if (type === entryType.directory && name.endsWith(workSuffix)) posix.setTime(name, 0n);
    } finally {
      posix.close();
    }
  }

  async sync(name: string): Promise<void> {
    this.#require(name);
    await this.#options.objects.sync();
    await syncFolder(this.#path("states"));
  }

  reset(name: string | null, end?: () => Promise<void>): Promise<void> {
    return this.#inTurn(async () => {
      if (name !== null) {
        this.#require(name);
        // Whether all of it is there is found out before anything is touched.
        await this.#directory.restore({ files: name, processes: null }, { dryRun: true });
      }
      await end?.();
      const fd = openForWriting(this.#path("target"), "w");
      try {
        writeAll(fd, Buffer.from(name ?? nothing), 0);
      } finally {
        closeSync(fd);
      }
      fault("layers.reset-made");
      await this.#bring(name ?? nothing);
      fault("layers.reset-done");
    });
  }

  async #bring(name: string): Promise<void> {
    if (name === nothing || name === "") {
      await removeTree(this.#live);
      makeNewFolder(this.#live, 0o700);
    } else {
      makeFolder(this.#live, 0o700);
      const [first] = await restoreLayers(this.#directory, this.#live, this.#options.objects, name);
      if (first !== undefined) throw incomplete(first);
    }
    remove(this.#path("target"));
  }

  async *diff(from: string, to: string): AsyncGenerator<LayerDifference> {
    const { objects } = this.#options;
    const [one, other] = [from, to].map((name) => readSnapshot(objects, this.#require(name)).root) as [Entry, Entry];
    const breathe = makeBreather();
    for (const { path, from: before, to: after } of compareTrees(objects, one, other)) {
      const pause = breathe();
      if (pause !== undefined) await pause;
      if (path === "" || isScratch(path)) continue;
      const sides = { before: layerEntry(before), after: layerEntry(after) };
      const same =
        before !== null &&
        after !== null &&
        (before.type === entryType.directory ? after.type === before.type : sameContent(before, after)) &&
        sides.before?.type === sides.after?.type &&
        sides.before?.opaque === sides.after?.opaque;
      // A folder whose content alone differs is told by that.
      if (same && before.type === entryType.directory && sameFolder(before, after)) continue;
      yield { path, ...sides, differs: same ? "metadata" : "content" };
    }
  }

  async look(name: string, path: string): Promise<LayerEntry | null> {
    const { objects } = this.#options;
    return layerEntry(findEntry(objects, readSnapshot(objects, this.#require(name)).root, path));
  }

  async *read(name: string, path: string): AsyncGenerator<Uint8Array> {
    const { objects } = this.#options;
    const { root } = readSnapshot(objects, this.#require(name));
    const found = findEntry(objects, root, path);
    const entry = found?.type === entryType.hardLink ? findEntry(objects, root, found.tail) : found;
    const breathe = makeBreather();
    if (entry === null) return;
    for (const bytes of readContent(objects, entry)) {
      yield bytes;
      const pause = breathe();
      if (pause !== undefined) await pause;
    }
  }

  folder(): undefined {
    return undefined;
  }

  has(name: string): boolean {
    return this.#states.has(name);
  }

  names(): string[] {
    return [...this.#states];
  }

  drop(name: string): Promise<void> {
    return this.#inTurn(async () => {
      if (!this.#states.delete(name)) return;
      remove(this.#stateFile(name));
      fault("layers.dropped");
    });
  }

  async verify(name: string): Promise<Problem[]> {
    if (!this.has(name)) return [{ path: name, reason: "the state is not there" }];
    return this.#directory.verify({ files: name, processes: null });
  }

  fork(name: string, folder: string): Promise<Layers> {
    this.#require(name);
    return this.#inTurn(async () => {
      const { objects, id } = this.#options;
      makeFolder(join(folder, "states"), 0o700);
      closeSync(openForWriting(join(folder, "states", name), "w"));
      fault("layers.forked");
      const fork = await openCopyLayers({ folder, objects, id });
      await fork.reset(name);
      return fork;
    });
  }

  discard(): Promise<void> {
    return this.#inTurn(async () => {
      await removeTree(this.#live);
      await removeTree(this.kept);
      await removeTree(this.#path("states"));
      for (const name of readdirSync(this.#options.folder)) remove(this.#path(name));
      removeFolder(this.#options.folder);
    });
  }

  async close(): Promise<void> {
    await this.#last;
    if (existsSync(this.#options.folder)) await this.#directory.close();
  }

  #path(name: string): string {
    return join(this.#options.folder, name);
  }

  #stateFile(name: string): string {
    return join(this.#options.folder, "states", name);
  }

  #require(name: string): string {
    if (this.#states.has(name)) return name;
    throw new RewindError("NOT_RESTORABLE", `The state ${name} of the sandbox's files is not there.`, {
      hint: "Choose another checkpoint.",
    });
  }

  /** One after the other; also behind one that has failed. */
  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => {});
    return done.catch((error: unknown) => {
      throw asWriteFailure(error, this.#options.folder);
    });
  }
}

const incomplete = ({ path, reason }: Problem): RewindError =>
  new RewindError("RESTORE_FAILED", `${path} of the sandbox's files could not be restored: ${reason}.`, {
    hint: "Mend that and try again; the next open goes on.",
  });

const marks = /^(?:trusted|user)\.overlay\.(.+)$/;

function markOf(entry: Entry, mark: string): Buffer | undefined {
  return entry.xattrs.find(([name]) => marks.exec(name)?.[1] === mark)?.[1];
}

function layerEntry(entry: Entry | null): LayerEntry | null {
  if (entry === null) return null;
  const opaque = entry.type === entryType.directory && markOf(entry, "opaque")?.toString() === "y";
  const { mode, uid, gid, size, mtimeNs } = entry;
  const known = { opaque, mode, uid, gid, size, mtimeNs, inode: 0n };
  const type = layerType(entry);
  return entry.content === null || type !== "file"
    ? { type, ...known }
    : { type, ...known, content: entry.content.toString("hex") };
}

function layerType(entry: Entry): LayerEntry["type"] {
  switch (entry.type) {
    case entryType.directory:
      return "directory";
    case entryType.symlink:
      return "symlink";
    case entryType.characterDevice:
      return entry.rdevMajor === 0 && entry.rdevMinor === 0 ? "whiteout" : "other";
    case entryType.file:
      return entry.size === 0 && markOf(entry, "whiteout") !== undefined ? "whiteout" : "file";
    // Another name of a file: what it holds is told at the first one.
    case entryType.hardLink:
      return "file";
    default:
      return "other";
  }
}

const sameFolder = (a: Entry, b: Entry): boolean =>
  a.mode === b.mode && a.uid === b.uid && a.gid === b.gid && a.mtimeNs === b.mtimeNs && sameAttributes(a, b);

function sameAttributes(a: Entry, b: Entry): boolean {
  const own = (entry: Entry): string =>
    entry.xattrs
      .filter(([name]) => !marks.test(name))
      .map(([name, value]) => `${name}=${value.toString("latin1")}`)
      .join("\n");
  return own(a) === own(b);
}
