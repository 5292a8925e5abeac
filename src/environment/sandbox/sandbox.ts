// The sandbox environment: the whole machine state of an agent, files and live processes, captured together and put back together.
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";
import { RewindError } from "../../errors.ts";
import type {
  Capture,
  Captured,
  Environment,
  ExecOptions,
  FileChanges,
  Manifest,
  Problem,
  Restored,
  RestoreOptions,
} from "../environment.ts";
import type { Layers } from "./layers/layers.ts";
import { beginLife, type Life, type LifePlan } from "./life.ts";
import type { SandboxOptions, SandboxPlace } from "./options.ts";
import { type Parked, ParkingNote } from "./park.ts";
import { type SandboxPortable, sandboxPortable } from "./portable.ts";
import type { ImageStore } from "./processes/image-store.ts";
import { portsInUse } from "./processes/table.ts";
import { bringBack, captureTree, foreseen, refusalOf } from "./processes/tree.ts";
import { putPaths } from "./put.ts";
import { covers, SandboxPaths, without } from "./sandbox-paths.ts";
import { TreeFiles } from "./tree-files.ts";

/** What a restore leaves as it is. */
interface Kept {
  readonly state: string;
  readonly paths: readonly string[];
}

const nothing: FileChanges = { added: [], removed: [], changed: [], mode: [], type: [], renamed: [] };

export class Sandbox implements Environment {
  readonly kind = "sandbox";
  readonly capabilities: Environment["capabilities"];
  readonly portable: SandboxPortable;
  readonly #place: SandboxPlace;
  readonly #plan: LifePlan;
  readonly #layers: Layers;
  readonly #images: ImageStore;
  readonly #note: ParkingNote;
  readonly #files: TreeFiles;
  readonly #paths: SandboxPaths;
  #life: Life | undefined;
  #revival: Promise<void> | undefined;
  #generation = 0;
  /** What the last capture or restore found or left. */
  #last: Manifest | undefined;
  /** Absolute paths that the owner wrote since the last capture. */
  readonly #written = new Set<string>();
  /** Of the beginning of this life, where nobody was told yet. */
  #untold: readonly Problem[] = [];

  constructor(place: SandboxPlace, plan: LifePlan, layers: Layers, images: ImageStore, lacks: readonly string[]) {
    this.#place = place;
    this.#plan = plan;
    this.#layers = layers;
    this.#images = images;
    this.#note = new ParkingNote(place.store, place.id);
    this.#files = new TreeFiles(plan.native, plan.workspace, () => `/proc/${this.#alive().pid}/root`);
    this.#paths = new SandboxPaths(plan, layers);
    this.portable = sandboxPortable({
      ...{ place, plan, layers, images, options: this.#options() },
      told: (one) => this.#paths.told(one),
    });
    const processes = plan.processes === "restore";
    this.capabilities = {
      files: true,
      processes,
      fork: false,
      inPlace: true,
      freeze: true,
      memory: processes,
      shell: true,
      lacks,
    };
  }

  async probe() {
    const { processes, whyNoMemory } = this.#plan;
    const what = processes === "restore" ? "files and processes" : `without the memory of processes: ${whyNoMemory}`;
    return { status: "available" as const, reason: `${what}, layers on ${this.#layers.kind}` };
  }

  /** Begins its first life: as it was closed, else as the newest pair says, else empty. */
  async resume(newest: Manifest | null, keep?: (found: Captured) => void): Promise<void> {
    try {
      if (this.#life === undefined) await this.#resume(this.#note.read(), newest, keep);
    } finally {
      // Only now: killed before, the next one finds it parked as well.
      await this.#note.write(null, this.#options());
    }
  }

  async #resume(
    parked: Parked | undefined,
    newest: Manifest | null,
    keep: ((found: Captured) => void) | undefined,
  ): Promise<void> {
    if (parked?.files != null && this.#has(parked as Manifest)) this.#untold = await this.#begin(parked as Manifest);
    else if (parked === undefined && newest !== null && this.#has(newest)) {
      await this.#keepLeft(newest, keep);
      this.#untold = await this.#begin(newest);
    } else this.#life = await beginLife(this.#plan, this.#layers.live(), undefined);
  }

  /** What a killed owner's tools changed behind the newest pair. */
  async #keepLeft(newest: Manifest, keep: ((found: Captured) => void) | undefined): Promise<void> {
    const left = await this.#captureFiles();
    const changes = await this.#paths.changes(this.#filesOf(newest), this.#filesOf(left.manifest));
    if (Object.values(changes).some((paths) => paths.length > 0)) keep?.(left);
  }

  capture(): Capture {
    const captured = this.#capture();
    const durable = captured.then(async ({ manifest }) => {
      if (manifest.files !== null) await this.#layers.sync(manifest.files);
      if (manifest.processes !== null) await this.#images.sync(manifest.processes);
    });
    durable.catch(() => {});
    return { captured, durable };
  }

  async restore(manifest: Manifest, options: RestoreOptions = {}): Promise<Restored> {
    const { keep = new Set(), since, paths, dryRun = false } = options;
    const target = this.#require(manifest);
    if (options.signal?.aborted) {
      throw new RewindError("RESTORE_FAILED", "The restore was given up before it began; nothing was touched.", {
        hint: "Go on from here, or rewind again.",
        cause: options.signal.reason,
      });
    }
    const now = since?.files ?? (await this.#layers.snapshot()).name;
    const changes = await this.#paths.changes(now, target);
    if (paths !== undefined) return this.#restorePaths(target, now, changes, paths, dryRun);
    const kept = new Set([...keep].map((path) => this.#paths.absolute(path)));
    const uncaptured = since === undefined ? [] : [...this.#written].filter((path) => !kept.has(path));
    const notRestored = uncaptured.map((path) => ({
      path: this.#paths.shown(path),
      reason: "was written after the state that was left, and stays as it is",
    }));
    const restored = without(changes, (path) => covers([...kept, ...uncaptured], this.#paths.absolute(path)));
    if (dryRun) {
      const lost = foreseen(this.#plan, this.#images, manifest.processes);
      return { generation: this.#generation, restored, notRestored: [...notRestored, ...lost] };
    }
    this.#requirePorts(manifest);
    const left = uncaptured.length + kept.size > 0 ? (await this.#layers.snapshot()).name : undefined;
    const keeps = left === undefined ? undefined : { state: left, paths: [...kept, ...uncaptured] };
    const lost = await this.#begin(manifest, keeps);
    this.#generation = this.#place.raiseGeneration();
    return { generation: this.#generation, restored, notRestored: [...notRestored, ...lost] };
  }

  async diff(from: Manifest, to: Manifest): Promise<FileChanges> {
    return from.files === to.files ? nothing : this.#paths.changes(this.#filesOf(from), this.#filesOf(to));
  }

  async settle(): Promise<void> {
    await this.#life?.commands.settle();
  }

  async exec(command: string | readonly string[], options: ExecOptions = {}) {
    const cwd = options.cwd === undefined ? undefined : this.#files.inside(options.cwd);
    await this.#revive();
    return this.#alive().commands.exec(command, options, cwd);
  }

  async readFile(path: string): Promise<Uint8Array> {
    await this.#revive();
    return this.#files.readFile(path);
  }

  async writeFile(path: string, data: string | Uint8Array): Promise<void> {
    await this.#revive();
    this.#files.writeFile(path, data);
    this.#written.add(this.#files.inside(path));
  }

  async list(path: string) {
    // Whoever looks again and again must not keep commands from being started.
    await nextTurn();
    await this.#revive();
    return this.#files.list(path);
  }

  path(path: string): string | null {
    return this.#life === undefined ? null : join(`/proc/${this.#life.pid}/root`, this.#files.inside(path));
  }

  async verify({ files, processes }: Manifest): Promise<Problem[]> {
    const found = files === null ? [] : await this.#layers.verify(files);
    if (processes === null || this.#images.has(processes)) return found;
    return [...found, { path: processes, reason: "the image of the processes is not there" }];
  }

  /** Gives up the states and images that nobody names any more. */
  async forget(isNeeded: (half: "files" | "processes", name: string) => boolean): Promise<void> {
    if (this.portable.isHeld()) return;
    for (const name of this.#layers.names())
      if (name !== this.#last?.files && !isNeeded("files", name)) await this.#layers.drop(name);
    for (const name of this.#images.names())
      if (name !== this.#last?.processes && !isNeeded("processes", name)) await this.#images.drop(name);
  }

  async close(): Promise<void> {
    if (this.#life !== undefined) {
      await this.#life.commands.settle();
      if (!this.#life.over.aborted) await this.#park();
      await this.#life.end();
      this.#life = undefined;
    }
    await this.#plan.keeper.close();
    await this.#layers.close();
  }

  #options(): SandboxOptions {
    const { network, rootfs, mounts, hide } = this.#place;
    return { network, rootfs, mounts, hide };
  }

  /** A state without processes needs no capture: the live folder stays. */
  async #park(): Promise<void> {
    const runs = this.#plan.group.processes().length > 1;
    const parked = runs
      ? await this.#capture().then(
          ({ manifest }) => manifest,
          () => null,
        )
      : null;
    if (parked !== null) {
      await this.#layers.sync(parked.files as string);
      if (parked.processes !== null) await this.#images.sync(parked.processes);
    }
    await this.#note.write(parked ?? { files: null, processes: null }, this.#options());
  }

  /** Before its first life: what a killed owner left. What ran has ended with it. */
  async #captureFiles(): Promise<Captured> {
    const start = performance.now();
    const { name, bytes, problems } = await this.#layers.snapshot();
    await this.#layers.sync(name);
    const manifest = { files: name, processes: null };
    return {
      manifest,
      problems: problems.map((one) => this.#paths.told(one)),
      bytes,
      captureMs: performance.now() - start,
    };
  }

  async #capture(): Promise<Captured> {
    if (this.#life === undefined) return this.#captureFiles();
    await this.#revive();
    const start = performance.now();
    this.#written.clear();
    const { manifest, problems, bytes } = await captureTree({
      life: this.#alive(),
      plan: this.#plan,
      layers: this.#layers,
      images: this.#images,
      last: this.#last,
    });
    this.#last = manifest;
    const untold = this.#untold;
    this.#untold = [];
    return {
      manifest,
      problems: [...untold, ...problems.map((one) => this.#paths.told(one))],
      bytes,
      captureMs: performance.now() - start,
    };
  }

  /** Ends the life that there is and begins the one of the manifest. Gives the processes that are not what they were. */
  async #begin(manifest: Manifest, keep?: Kept): Promise<readonly Problem[]> {
    try {
      return await this.#beginWith(manifest, keep);
    } catch (error) {
      const refused = refusalOf(error, "PROCESSES_NOT_RESTORED");
      if (refused === undefined) throw error;
      return this.#beginWith(manifest, keep, refused);
    }
  }

  async #beginWith(manifest: Manifest, keep?: Kept, refused?: readonly Problem[]): Promise<readonly Problem[]> {
    await this.#life?.commands.settle();
    await this.#life?.end();
    this.#life = undefined;
    this.#untold = [];
    await this.#layers.reset(this.#filesOf(manifest));
    const { life, ready } = await bringBack(this.#plan, this.#layers.live(), this.#images, manifest.processes, refused);
    this.#life = life;
    if (keep !== undefined) await this.#put(keep.state, keep.paths);
    const lost = await ready();
    this.#written.clear();
    this.#last = keep === undefined ? manifest : undefined;
    return lost;
  }

  async #restorePaths(
    target: string,
    now: string,
    changes: FileChanges,
    wanted: ReadonlySet<string>,
    dryRun: boolean,
  ): Promise<Restored> {
    const paths = [...wanted].map((path) => this.#paths.absolute(path));
    const known = await Promise.all(paths.map((path) => this.#paths.isKnown(path, [target, now])));
    const unknown = paths.find((_, index) => !known[index]);
    if (unknown !== undefined) {
      throw new RewindError("BAD_ARGUMENT", `Neither state has ${this.#paths.shown(unknown)}.`, {
        hint: "Check the name: list the folder, or see what changed with `diff`.",
      });
    }
    const restored = without(changes, (path) => !covers(paths, this.#paths.absolute(path)));
    if (!dryRun) {
      await this.#put(target, paths);
      this.#generation = this.#place.raiseGeneration();
    }
    return { generation: this.#generation, restored, notRestored: [] };
  }

  async #put(state: string, paths: readonly string[]): Promise<void> {
    const folder = this.#layers.folder(state);
    const borrowed =
      folder === undefined
        ? await this.#layers.fork(state, join(this.#place.store, "layers-view", this.#place.id))
        : undefined;
    try {
      await putPaths({
        native: this.#plan.native,
        scratch: join(this.#place.store, "views"),
        overlays: this.#plan.overlays,
        state: folder ?? (borrowed as Layers).live(),
        root: `/proc/${this.#alive().pid}/root`,
        paths,
      });
    } finally {
      await borrowed?.discard();
    }
  }

  /** Whoever is root inside can end everything inside: it goes on with the same files. */
  #revive(): Promise<void> {
    this.#revival ??= this.#beginAnew().finally(() => {
      this.#revival = undefined;
    });
    return this.#revival;
  }

  async #beginAnew(): Promise<void> {
    if (this.#life?.over.aborted !== true) return;
    await this.#life.end();
    this.#life = await beginLife(this.#plan, this.#layers.live(), undefined);
    this.#last = undefined;
    this.#untold = [
      ...this.#untold,
      { path: "processes", reason: "all of them had ended, from inside, and none was started again" },
    ];
  }

  #alive(): Life {
    if (this.#life !== undefined && !this.#life.over.aborted) return this.#life;
    throw new RewindError("SANDBOX_FAILED", "The sandbox does not run.", {
      hint: "Rewind to a checkpoint, or open the workspace again: the last pair comes back.",
    });
  }

  #has({ files, processes }: Manifest): boolean {
    return files !== null && this.#layers.has(files) && (processes === null || this.#images.has(processes));
  }

  #require(manifest: Manifest): string {
    const files = this.#filesOf(manifest);
    if (this.#has(manifest)) return files;
    const half = this.#layers.has(files) ? "processes" : "files";
    throw new RewindError("NOT_RESTORABLE", `The ${half} of this checkpoint are not there any more.`, {
      hint: "Choose another checkpoint.",
    });
  }

  /** Another process may have taken a port meanwhile: nothing is touched then. */
  #requirePorts({ processes }: Manifest): void {
    if (processes === null || this.#plan.network === "own") return;
    const { ports } = this.#images.about(processes);
    const taken = portsInUse(ports, this.#plan.group.processes());
    if (taken.length === 0) return;
    throw new RewindError(
      "PROCESSES_NOT_RESTORED",
      `Another process of this machine listens on port ${taken.join(", ")}.`,
      {
        hint: 'End it, or give the sandbox a network of its own (`network: "own"`).',
        details: { ports: taken, problems: [] },
      },
    );
  }

  #filesOf(manifest: Manifest): string {
    if (manifest.files !== null) return manifest.files;
    throw new RewindError("NOT_RESTORABLE", "This checkpoint holds no files.", { hint: "Choose another checkpoint." });
  }
}
