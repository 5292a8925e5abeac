// What a store makes of a bundle that was looked at: objects, states, images, the workspace, and at the end the rows that show them.
import { dirname, join } from "node:path";
import { makeBreather } from "../breathe.ts";
import { openDirectory } from "../environment/directory/directory.ts";
import { makeEmpty } from "../environment/directory/fork.ts";
import type { Manifest, Problem } from "../environment/environment.ts";
import { requireMachine } from "../environment/sandbox/open.ts";
import { ParkingNote } from "../environment/sandbox/park.ts";
import { fault } from "../faults.ts";
import { reportProgress } from "../progress.ts";
import { makeFolder, rename, syncFolder } from "../store/io.ts";
import type { Objects } from "../store/objects.ts";
import type { Store } from "../store/store.ts";
import type { Arriving } from "./arrivals.ts";
import type { Checked } from "./check.ts";
import { checkLinks } from "./check-links.ts";
import { isObject, recordKind } from "./format.ts";
import { arrange, ImageLanding, landStates } from "./land-sandbox.ts";
import { type BundleReader, type BundleRecord, parseJson } from "./reader.ts";
import { insertRows } from "./rows-in.ts";
import { imageFileSchema, imageHeadSchema, type Row, rowSchema, type SandboxPart } from "./schema.ts";

/** Objects in one commit; fewer when they are large. */
const objectsPerCommit = 20_000;
const bytesPerCommit = 64 << 20;

export interface LandingPlace {
  readonly store: Store;
  readonly reader: BundleReader;
  readonly checked: Checked;
  readonly arriving: Arriving;
  /** Real path of the workspace. */
  readonly folder: string;
  readonly processes: "restore" | "relaunch" | "stop";
}

export interface Landed {
  /** Id of the thread's head. */
  readonly checkpoint: string;
  readonly checkpoints: number;
  readonly notRestored: readonly Problem[];
}

export class Landing {
  readonly #store: Store;
  readonly #objects: Objects;
  readonly #reader: BundleReader;
  readonly #processes: LandingPlace["processes"];
  readonly #checked: Checked;
  readonly #arriving: Arriving;
  readonly #folder: string;
  #states: ReadonlyMap<string, string> = new Map();
  #images: ImageLanding | undefined;
  #notRestored: readonly Problem[] = [];
  #head = "";

  constructor({ store, reader, checked, arriving, folder, processes }: LandingPlace) {
    this.#store = store;
    this.#objects = store.open(arriving.id).objects;
    this.#reader = reader;
    this.#processes = processes;
    this.#checked = checked;
    this.#arriving = arriving;
    this.#folder = folder;
  }

  /** In use from beginning to end: what was stored before, too, stays there. */
  run(): Promise<Landed> {
    return this.#objects.use(() => this.#run());
  }

  async #run(): Promise<Landed> {
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
    return { checkpoint: this.#head, checkpoints, notRestored: this.#notRestored };
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
    const processes = this.#processes;
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
    note.write(parked, sandbox.options, { arrangement });
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
    return this.#processes === "stop" ? null : (this.#images?.names.get(name) ?? null);
  }
}
