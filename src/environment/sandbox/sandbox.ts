// The sandbox environment: the whole machine state of an agent, files and live processes, captured together and put back together.
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { setImmediate as nextTurn } from "node:timers/promises";
import { RewindError } from "../../errors.ts";
import { fault } from "../../faults.ts";
import type {
  Applied,
  ApplyOptions,
  Capture,
  Captured,
  CaptureOptions,
  Contact,
  Environment,
  ExecOptions,
  FileChanges,
  Manifest,
  Problem,
  Restored,
  RestoreOptions,
} from "../environment.ts";
import { applyFolders, setName, unappliedMessage } from "./apply/folders.ts";
import { outwardContacts } from "./contacts.ts";
import type { HostFiles } from "./host-files.ts";
import { covers } from "./inside.ts";
import type { Layers } from "./layers/layers.ts";
import type { Life, LifePlan } from "./life.ts";
import { SandboxLives } from "./lives.ts";
import type { SandboxOptions, SandboxPlace } from "./options.ts";
import { type Parked, ParkingNote } from "./park.ts";
import { type SandboxPortable, sandboxPortable } from "./portable.ts";
import { type Present, presentProcesses } from "./present.ts";
import type { ImageStore } from "./processes/image-store.ts";
import { type CaptureRequest, captureTree, foreseen, haveFilesStayed } from "./processes/tree.ts";
import { Quiet } from "./quiet.ts";
import { SandboxPaths, without } from "./sandbox-paths.ts";
import { filesOf, SandboxStates } from "./states.ts";
import { TreeFiles } from "./tree-files.ts";

/** What a sandbox is made of; open.ts puts it together. */
export interface SandboxParts {
  readonly place: SandboxPlace;
  readonly plan: LifePlan;
  readonly layers: Layers;
  readonly images: ImageStore;
  readonly host: HostFiles;
  /** Absolute, inside: what `apply` may bring back. */
  readonly folders: readonly string[];
  readonly lacks: readonly string[];
}

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
  readonly root: string;
  readonly changed?: (since: Manifest) => Promise<"none" | "unknown">;
  readonly contacts?: () => readonly Contact[];
  readonly #place: SandboxPlace;
  readonly #plan: LifePlan;
  readonly #layers: Layers;
  readonly #images: ImageStore;
  readonly #host: HostFiles;
  readonly #folders: readonly string[];
  readonly #note: ParkingNote;
  readonly #files: TreeFiles;
  readonly #paths: SandboxPaths;
  readonly #lives: SandboxLives;
  readonly #states: SandboxStates;
  #generation = 0;
  /** What the last capture or restore found or left. */
  #last: Manifest | undefined;
  readonly #quiet = new Quiet();
  /** Absolute paths that the owner wrote since the last capture. */
  readonly #written = new Set<string>();
  /** States of those who recorded it, where it is only observed. */
  readonly #recorded: ReadonlySet<string>;
  /** Of the beginning of this life, where nobody was told yet. */
  #untold: readonly Problem[] = [];

  constructor({ place, plan, layers, images, host, folders, lacks }: SandboxParts) {
    this.#place = place;
    this.#host = host;
    this.#folders = folders;
    this.#plan = plan;
    this.root = plan.workspace;
    const { activity } = plan;
    if (activity !== undefined) {
      this.changed = (since) => this.#changed(since);
      const { takeContacts } = activity;
      if (takeContacts !== undefined) this.contacts = () => outwardContacts(plan, takeContacts.call(activity));
    }
    this.#layers = layers;
    this.#recorded = new Set(layers.names());
    this.#images = images;
    this.#note = new ParkingNote(place.store, place.id);
    this.#files = new TreeFiles(plan.native, plan.workspace, () => `/proc/${this.#lives.alive.pid}/root`);
    this.#paths = new SandboxPaths(plan, layers);
    const onAnew = (lost: Problem): void => {
      this.#last = undefined;
      this.#quiet.begin();
      this.#untold = [...this.#untold, lost];
    };
    this.#states = new SandboxStates(place, plan, layers, images);
    this.#lives = new SandboxLives({ plan, layers, images, onAnew });
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
  async resume(newest: Manifest | null, keep?: (found: Captured) => void): Promise<boolean> {
    try {
      return this.#lives.present === undefined && (await this.#resume(this.#note.read(), newest, keep));
    } finally {
      // Only now: killed before, the next one finds it parked as well.
      this.#note.write(null, this.#options());
      fault("sandbox.taken-up");
    }
  }

  async #resume(
    parked: Parked | undefined,
    newest: Manifest | null,
    keep: ((found: Captured) => void) | undefined,
  ): Promise<boolean> {
    const goesBack = parked === undefined && newest !== null && this.#states.has(newest);
    if (parked?.files != null && this.#states.has(parked as Manifest))
      this.#untold = await this.#begin(parked as Manifest);
    else if (goesBack) {
      await this.#keepLeft(newest, keep);
      this.#untold = await this.#begin(newest);
    } else await this.#lives.beginEmpty();
    void this.#host.look();
    this.#host.lookAround();
    return goesBack;
  }

  /** What a killed owner's tools changed behind the newest pair. */
  async #keepLeft(newest: Manifest, keep: ((found: Captured) => void) | undefined): Promise<void> {
    const left = await this.#captureFiles();
    const changes = await this.#paths.changes(filesOf(newest), filesOf(left.manifest));
    if (Object.values(changes).some((paths) => paths.length > 0)) keep?.(left);
  }

  capture({ mayPersist, unlessFilesDiffer }: CaptureOptions = {}): Capture {
    const captured = this.#known(unlessFilesDiffer).then((known) => known ?? this.#capture());
    const durable = captured.then(async ({ manifest }) => {
      await mayPersist;
      if (manifest.files !== null) await this.#layers.sync(manifest.files);
      if (manifest.processes !== null) await this.#images.sync(manifest.processes);
    });
    durable.catch(() => {});
    return { captured, durable };
  }

  async #changed(since: Manifest): Promise<"none" | "unknown"> {
    if (!this.#quiet.knows(since)) return "unknown";
    await this.#host.look();
    this.#host.lookAround();
    if (this.#host.hasMore || this.#written.size > 0 || this.#untold.length > 0) return "unknown";
    return this.#quiet.holds(this.#lives.present) ? "none" : "unknown";
  }

  async restore(manifest: Manifest, options: RestoreOptions = {}): Promise<Restored> {
    const { keep = new Set(), since, paths, dryRun = false } = options;
    const target = this.#states.require(manifest);
    if (options.signal?.aborted) {
      throw new RewindError("RESTORE_FAILED", "The restore was given up before it began; nothing was touched.", {
        hint: "Go on from here, or rewind again.",
        cause: options.signal.reason,
      });
    }
    const now = since?.files ?? (await this.#layers.snapshot()).name;
    const compared = this.#paths.changes(now, target);
    if (paths !== undefined) return this.#restorePaths(target, now, await compared, paths, dryRun);
    const kept = new Set([...keep].map((path) => this.#paths.absolute(path)));
    const uncaptured = since === undefined ? [] : [...this.#written].filter((path) => !kept.has(path));
    const notRestored = uncaptured.map((path) => ({
      path: this.#paths.shown(path),
      reason: "was written after the state that was left, and stays as it is",
    }));
    const restored = compared.then((changes) =>
      without(changes, (path) => covers([...kept, ...uncaptured], this.#paths.absolute(path))),
    );
    if (dryRun) {
      const lost = foreseen(this.#plan, this.#images, manifest.processes);
      return { generation: this.#generation, restored: await restored, notRestored: [...notRestored, ...lost] };
    }
    restored.catch(() => {});
    this.#states.requirePorts(manifest);
    const left = uncaptured.length + kept.size > 0 ? (await this.#layers.snapshot()).name : undefined;
    const keeps = left === undefined ? undefined : { state: left, paths: [...kept, ...uncaptured] };
    const lost = await this.#begin(manifest, keeps, restored);
    this.#generation = this.#place.raiseGeneration();
    return { generation: this.#generation, restored: await restored, notRestored: [...notRestored, ...lost] };
  }

  async apply(options: ApplyOptions = {}): Promise<Applied> {
    const { name } = await this.#layers.snapshot();
    const { overlays } = this.#plan;
    const folders = this.#folders;
    return this.#states.withFolder(name, (state) =>
      applyFolders({ overlays, folders, state, host: this.#host, paths: this.#paths, options }),
    );
  }

  async diff(from: Manifest, to: Manifest): Promise<FileChanges> {
    return from.files === to.files ? nothing : this.#paths.changes(filesOf(from), filesOf(to));
  }

  async settle(): Promise<void> {
    await this.#lives.present?.commands.settle();
  }

  async exec(command: string | readonly string[], options: ExecOptions = {}) {
    const cwd = options.cwd === undefined ? undefined : this.#files.inside(options.cwd);
    await this.#lives.revive();
    return this.#lives.alive.commands.exec(command, options, cwd);
  }

  async readFile(path: string): Promise<Uint8Array> {
    await this.#lives.revive();
    return this.#files.readFile(path);
  }

  async writeFile(path: string, data: string | Uint8Array): Promise<void> {
    await this.#lives.revive();
    this.#files.writeFile(path, data);
    this.#written.add(this.#files.inside(path));
  }

  async list(path: string) {
    // Whoever looks again and again must not keep commands from being started.
    await nextTurn();
    await this.#lives.revive();
    return this.#files.list(path);
  }

  path(path: string): string | null {
    const life = this.#lives.present;
    if (life !== undefined) this.#quiet.reach();
    return life === undefined ? null : join(`/proc/${life.pid}/root`, this.#files.inside(path));
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
    try {
      const life = this.#lives.present;
      await life?.commands.settle();
      // Where that fails, the last pair comes back.
      if (life !== undefined && !life.over.aborted) await this.#park();
      if (this.#place.observes === true)
        for (const name of this.#layers.names()) if (!this.#recorded.has(name)) await this.#layers.drop(name);
    } finally {
      await this.#lives.end();
      await this.#host.close().catch(() => {});
      this.#plan.activity?.close();
      await this.#plan.keeper.close();
      await this.#layers.close();
    }
  }

  /** For who only observes it: what can be told of the present without a snapshot or a dump. */
  async present(): Promise<Present> {
    await this.#lives.revive();
    this.#written.clear();
    const { alive } = this.#lives;
    return { live: this.#layers.live(), processes: await presentProcesses(this.#plan, alive) };
  }

  #options(): SandboxOptions {
    const { network, rootfs, mounts, hide, limits, noNewPrivs, trackMemory } = this.#place;
    return { network, rootfs, mounts, hide, limits, noNewPrivs, trackMemory };
  }

  /** A state without processes needs no capture: the live folder stays. */
  async #park(): Promise<void> {
    const runs = this.#place.observes !== true && this.#plan.group.processes().length > 1;
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
    const told = await this.#sayUnapplied();
    this.#note.write(parked ?? { files: null, processes: null }, this.#options(), { told });
    fault("sandbox.parked");
  }

  /** Once for each set of them. Gives what names the set. */
  async #sayUnapplied(): Promise<string> {
    const before = this.#note.told();
    try {
      const { added, changed, removed, conflicts } = await this.apply({ dryRun: true });
      const told = setName([added, changed, removed, conflicts]);
      if (told !== "" && told !== before)
        process.emitWarning(unappliedMessage(this.#place.workspace), "AgentRewindWarning");
      return told;
    } catch {
      // The host's folder may be gone, or the disk full: that is no reason not to close.
      return before;
    }
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

  /** Undefined unless it is the newest capture's and no file differs. */
  async #known(state: Manifest | undefined): Promise<Captured | undefined> {
    if (state === undefined || this.#lives.present === undefined) return undefined;
    await this.#lives.revive();
    const last = this.#last;
    if (last === undefined || last.files !== state.files || last.processes !== state.processes) return undefined;
    const start = performance.now();
    const stayed = await this.#lives.inLife((life) => haveFilesStayed(this.#request(life), last));
    // Another life may have begun meanwhile.
    if (!stayed || this.#last !== last) return undefined;
    return { manifest: last, problems: [], bytes: 0, captureMs: performance.now() - start };
  }

  #request(life: Life): CaptureRequest {
    return {
      ...{ life, plan: this.#plan, layers: this.#layers, images: this.#images, last: this.#last },
      inLayers: (path) => this.#paths.inLayers(path),
    };
  }

  async #capture(): Promise<Captured> {
    if (this.#lives.present === undefined) return this.#captureFiles();
    await this.#lives.revive();
    const start = performance.now();
    this.#written.clear();
    this.#quiet.forget();
    const looked = this.#host.look();
    const { manifest, problems, bytes, mark } = await this.#lives.inLife((life) => captureTree(this.#request(life)));
    this.#last = manifest;
    this.#quiet.captured(manifest, mark);
    const untold = this.#untold;
    this.#untold = [];
    await looked;
    const onHost = await this.#paths.hostWrites(this.#host.take(), filesOf(manifest));
    this.#host.lookAround();
    return {
      manifest,
      problems: [...untold, ...problems.map((one) => this.#paths.told(one)), ...onHost],
      bytes,
      captureMs: performance.now() - start,
    };
  }

  async #begin(manifest: Manifest, keep?: Kept, before?: Promise<unknown>): Promise<readonly Problem[]> {
    this.#untold = [];
    this.#quiet.begin();
    const lost = await this.#lives.begin(manifest, filesOf(manifest), {
      ...(before === undefined ? {} : { before }),
      ...(keep === undefined ? {} : { put: () => this.#put(keep.state, keep.paths) }),
    });
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
      this.#quiet.forget();
      await this.#put(target, paths);
      this.#generation = this.#place.raiseGeneration();
    }
    return { generation: this.#generation, restored, notRestored: [] };
  }

  #put(state: string, paths: readonly string[]): Promise<void> {
    return this.#states.put(state, paths, `/proc/${this.#lives.alive.pid}/root`);
  }
}
