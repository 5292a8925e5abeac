// Brings a bundle to life in a store: all of it is looked at first, and nothing of it is seen before one transaction at the end.
import { dirname, join } from "node:path";
import { makeBreather } from "../breathe.ts";
import { openDirectory } from "../environment/directory/directory.ts";
import { makeEmpty, requireEmpty } from "../environment/directory/fork.ts";
import type { Manifest, Problem } from "../environment/environment.ts";
import { arrangedOverlays } from "../environment/sandbox/mount-plan.ts";
import { requireMachine } from "../environment/sandbox/open.ts";
import { ParkingNote } from "../environment/sandbox/park.ts";
import { asWriteFailure, isRewindError, RewindError } from "../errors.ts";
import { fault } from "../faults.ts";
import { reportProgress } from "../progress.ts";
import { makeFolder, rename, syncFolder } from "../store/io.ts";
import type { Objects } from "../store/objects.ts";
import { openStore, type Store } from "../store/store.ts";
import { findEnvironment } from "../store/workspaces.ts";
import { resolveWorkspace } from "../workspace.ts";
import { type Arriving, beginArrival, removeLeftOverAt } from "./arrivals.ts";
import { type Checked, checkBundle } from "./check.ts";
import { checkLinks } from "./check-links.ts";
import { isObject, recordKind } from "./format.ts";
import { arrange, ImageLanding, landStates } from "./land-sandbox.ts";
import { unlikenesses } from "./likeness.ts";
import { BundleReader, type BundleRecord, parseJson } from "./reader.ts";
import { insertRows } from "./rows-in.ts";
import { imageFileSchema, imageHeadSchema, type Row, rowSchema, type SandboxPart } from "./schema.ts";

export interface ImportRequest {
  readonly file: string;
  /** Folder of the store. */
  readonly store: string;
  /** The workspace that is made; undefined: where it was. */
  readonly into: string | undefined;
  readonly processes: "restore" | "relaunch" | "stop";
  readonly allowBroadWorkspace: boolean;
}

export interface Imported {
  /** Real path of the workspace that was made. */
  readonly workspace: string;
  readonly environment: "directory" | "sandbox";
  readonly thread: string;
  /** Id of the thread's head. */
  readonly checkpoint: string;
  readonly checkpoints: number;
  /** What becomes of the processes of a sandbox when it is opened; null where there are none. */
  readonly processes: "restore" | "relaunch" | "stop" | null;
  /** Why processes could not have gone on here with their memory. */
  readonly unlike: readonly string[];
  /** What of the files differs from the bundle's, and why. */
  readonly notRestored: readonly Problem[];
}

/** Objects in one commit; fewer when they are large. */
const objectsPerCommit = 20_000;
const bytesPerCommit = 64 << 20;

/**
 * Killed at any moment nothing of it is seen, or all; what it left goes with the next import.
 * @throws BAD_ARGUMENT, BUNDLE_DAMAGED, FOLDER_NOT_EMPTY, NOT_AVAILABLE, STORE_INSIDE_WORKSPACE, STORE_TOO_NEW, UNLIKE_MACHINE, WORKSPACE_TOO_BROAD, DISK_FULL, WRITE_FAILED
 */
export async function importInto(request: ImportRequest): Promise<Imported> {
  const reader = new BundleReader(request.file);
  try {
    reportProgress("import", "looking at the bundle");
    const checked = await checkBundle(reader);
    const { source, environment } = checked.header;
    const folder = resolveWorkspace(request.into ?? source.workspace, request.store, request.allowBroadWorkspace, true);
    await removeLeftOverAt(request.store);
    requireFree(folder, request.into);
    const unlike = await unlikeHere(checked, folder);
    if (unlike.length > 0 && request.processes === "restore") throw unlikeMachine(unlike);
    fault("import.verified");
    const store = openStore(request.store);
    try {
      requireUnknown(store, folder);
      const arriving = await beginArrival(store, environment.kind, folder);
      try {
        const landed = await new Landing(store, reader, request, checked, arriving, folder).run();
        await arriving.done();
        fault("import.done");
        return { ...landed, unlike };
      } catch (error) {
        await arriving.undo();
        throw error;
      }
    } catch (error) {
      throw asWriteFailure(error, request.store);
    } finally {
      store.close();
    }
  } finally {
    reader.close();
  }
}

/** @throws FOLDER_NOT_EMPTY */
function requireFree(folder: string, into: string | undefined): void {
  try {
    requireEmpty(folder);
  } catch (error) {
    if (!isRewindError(error) || into !== undefined) throw error;
    const hint = "Say where the workspace shall be: `into`, or `--into DIR`.";
    throw new RewindError(error.code, error.message, { hint, details: error.details });
  }
}

/** A folder of which something is recorded has a past of its own. @throws FOLDER_NOT_EMPTY */
function requireUnknown(store: Store, folder: string): void {
  for (const kind of ["directory", "sandbox"]) {
    const found = findEnvironment(store.sql, folder, kind);
    const held = store.sql.prepare(
      "SELECT 1 FROM checkpoint c JOIN thread t ON t.id = c.thread WHERE t.environment = ?",
    );
    if (found !== undefined && held.get(found.id) !== undefined)
      throw new RewindError("FOLDER_NOT_EMPTY", `The store knows a workspace at ${folder} already.`, {
        hint: "Name another folder; the same bundle may be imported again and again, each time into one of its own.",
        details: { folder },
      });
  }
}

/** Why its processes cannot go on here. @throws NOT_AVAILABLE, BAD_ARGUMENT where no sandbox of this form can be made here */
async function unlikeHere({ header }: Checked, folder: string): Promise<string[]> {
  const { sandbox } = header.environment;
  if (sandbox === null) return [];
  const { native } = requireMachine();
  const overlays = arrangedOverlays(
    { ...sandbox.options, workspace: folder },
    { workspace: sandbox.workspace, overlays: arrange(sandbox) },
  );
  // The workspace goes along, and is not there yet.
  const machine = overlays.filter(({ path }) => path !== sandbox.workspace);
  return unlikenesses(header.machine, sandbox.images, { native, overlays: machine });
}

const unlikeMachine = (reasons: readonly string[]): RewindError =>
  new RewindError("UNLIKE_MACHINE", `The processes cannot go on on this machine: ${reasons.join("; ")}.`, {
    hint: 'Import it on a machine that is like it, or without their memory: `processes: "relaunch"` starts them again, "stop" leaves them behind (`--processes`).',
    details: { reasons },
  });

class Landing {
  readonly #store: Store;
  readonly #objects: Objects;
  readonly #reader: BundleReader;
  readonly #request: ImportRequest;
  readonly #checked: Checked;
  readonly #arriving: Arriving;
  readonly #folder: string;
  #states: ReadonlyMap<string, string> = new Map();
  #images: ImageLanding | undefined;
  #notRestored: readonly Problem[] = [];
  #head = "";

  constructor(
    store: Store,
    reader: BundleReader,
    request: ImportRequest,
    checked: Checked,
    arriving: Arriving,
    folder: string,
  ) {
    this.#store = store;
    this.#objects = store.open(arriving.id).objects;
    this.#reader = reader;
    this.#request = request;
    this.#checked = checked;
    this.#arriving = arriving;
    this.#folder = folder;
  }

  /** In use from beginning to end: what was stored before, too, stays there. */
  run(): Promise<Omit<Imported, "unlike">> {
    return this.#objects.use(() => this.#run());
  }

  async #run(): Promise<Omit<Imported, "unlike">> {
    const { header } = this.#checked;
    const records = this.#reader.records();
    const first = await this.#storeObjects(records);
    const row = await this.#landImages(first, records);
    await this.#landFolder();
    await this.#place();
    await this.#objects.sync();
    const checkpoints = insertRows(this.#store.sql, {
      ...{ workspace: this.#arriving.workspace, environment: this.#arriving.id, folder: this.#folder, header },
      files: (name) => this.#filesOf(name),
      processes: (name) => this.#processesOf(name),
      rows: this.#rows(row, records),
    });
    fault("import.committed");
    await this.#store.syncLog();
    return {
      ...{ workspace: this.#folder, environment: header.environment.kind, thread: header.threads[0]?.name ?? "" },
      ...{ checkpoint: this.#head, checkpoints, notRestored: this.#notRestored },
      processes: (header.environment.sandbox?.images.length ?? 0) === 0 ? null : this.#request.processes,
    };
  }

  /** @returns the first record behind them */
  async #storeObjects(records: Generator<BundleRecord>): Promise<BundleRecord | undefined> {
    const breathe = makeBreather();
    let batch = this.#objects.batch();
    let [count, bytes, all] = [0, 0, 0];
    try {
      for (;;) {
        const { value: record, done } = records.next();
        if (done === true) break;
        if (record.kind === recordKind.header) continue;
        if (!isObject(record.kind)) {
          await batch.commit();
          await this.#landStates();
          return record;
        }
        batch.put(record.payload);
        bytes += record.payload.length;
        if (++all % 1000 === 0) reportProgress("import", "storing the contents", all);
        if (++count < objectsPerCommit && bytes < bytesPerCommit) {
          const pause = breathe();
          if (pause !== undefined) await pause;
          continue;
        }
        await batch.commit();
        fault("import.objects-written");
        batch = this.#objects.batch();
        [count, bytes] = [0, 0];
      }
    } catch (error) {
      batch.discard();
      throw error;
    }
    return undefined;
  }

  async #landStates(): Promise<void> {
    fault("import.objects-written");
    const breathe = makeBreather();
    for (const name of this.#checked.snapshots) await checkLinks(this.#objects, name, this.#checked.hasLinks, breathe);
    const { sandbox } = this.#checked.header.environment;
    if (sandbox === null) return;
    reportProgress("import", "making the sandbox's files");
    const { native } = requireMachine();
    const { id } = this.#arriving;
    const landed = await landStates({ native, store: this.#store.layout.root, id, objects: this.#objects, sandbox });
    this.#states = landed.names;
    this.#notRestored = landed.problems;
  }

  /** @returns the first record behind them */
  async #landImages(
    first: BundleRecord | undefined,
    records: Generator<BundleRecord>,
  ): Promise<BundleRecord | undefined> {
    const { processes } = this.#request;
    if (this.#checked.header.environment.sandbox === null) return first;
    const { root } = this.#store.layout;
    const landing = new ImageLanding(root, this.#arriving.id, this.#states, processes === "restore");
    this.#images = landing;
    const breathe = makeBreather();
    for (let record = first; record !== undefined; ) {
      if (record.kind === recordKind.row) {
        await landing.end();
        fault("import.images-landed");
        return record;
      }
      if (processes !== "stop") {
        if (record.kind === recordKind.image) {
          const { name, about } = parseJson(imageHeadSchema, record.payload, "image");
          await landing.begin(name, about);
        } else if (record.kind === recordKind.imageFile)
          landing.file(parseJson(imageFileSchema, record.payload, "image").name);
        else landing.bytes(record.payload);
      }
      const pause = breathe();
      if (pause !== undefined) await pause;
      const next = records.next();
      record = next.done === true ? undefined : next.value;
    }
    return undefined;
  }

  /** The workspace under another name; of a sandbox what lies below it. */
  async #landFolder(): Promise<void> {
    const { header, pair } = this.#checked;
    const { staged, id } = this.#arriving;
    makeFolder(dirname(this.#folder), 0o700);
    makeEmpty(staged);
    const { sandbox } = header.environment;
    const files = sandbox === null ? pair?.files : sandbox.base;
    if (files == null) return;
    reportProgress("import", "making the workspace");
    const directory = openDirectory({
      ...{ root: staged, objects: this.#objects, id, exclude: [], watches: false },
      cacheFile: join(this.#store.layout.cache, `${id}.tree`),
      isHeld: () => false,
      raiseGeneration: () => 0,
    });
    try {
      const { notRestored } = await directory.restore({ files, processes: null });
      this.#notRestored = [...this.#notRestored, ...notRestored];
    } finally {
      await directory.close();
    }
  }

  async #place(): Promise<void> {
    const { sandbox } = this.#checked.header.environment;
    const { id, staged } = this.#arriving;
    if (sandbox !== null) await this.#park(sandbox, id);
    await this.#arriving.place();
    fault("import.folder-journaled");
    rename(staged, this.#folder);
    await syncFolder(dirname(this.#folder));
    fault("import.folder-placed");
  }

  /** Its processes go on when it is opened. */
  async #park(sandbox: SandboxPart, id: string): Promise<void> {
    const { pair } = this.#checked;
    const parked: Manifest =
      pair?.files == null
        ? { files: null, processes: null }
        : {
            files: this.#filesOf(pair.files),
            processes: pair.processes === null ? null : this.#processesOf(pair.processes),
          };
    const arrangement = { workspace: sandbox.workspace, overlays: arrange(sandbox) };
    const note = new ParkingNote(this.#store.layout.root, id);
    await note.write(parked, sandbox.options, arrangement);
    await note.sync();
  }

  *#rows(first: BundleRecord | undefined, records: Generator<BundleRecord>): Generator<Row> {
    const head = this.#checked.header.threads[0]?.head;
    let number = 0;
    for (let record = first; record !== undefined; ) {
      const row = parseJson(rowSchema, record.payload, "row");
      if (row.table === "checkpoint" && ++number === head) this.#head = `c${row.seq}`;
      yield row;
      const next = records.next();
      record = next.done === true ? undefined : next.value;
    }
  }

  #filesOf(name: string): string {
    return this.#checked.header.environment.sandbox === null ? name : (this.#states.get(name) ?? name);
  }

  #processesOf(name: string): string | null {
    return this.#request.processes === "stop" ? null : (this.#images?.names.get(name) ?? null);
  }
}
