// The sandbox environment: the whole machine state of an agent, files and live processes, captured together and put back together.
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { RewindError } from "../../errors.ts";
import { loadNative } from "../../native.ts";
import { makeFolder } from "../../store/io.ts";
import type {
  Capture,
  Captured,
  Environment,
  FileChanges,
  Manifest,
  Problem,
  Restored,
  RestoreOptions,
} from "../environment.ts";
import { cgroupMount, SandboxGroup } from "./cgroup.ts";
import type { SandboxExecOptions } from "./commands.ts";
import { Keeper } from "./keeper.ts";
import { openBtrfsLayers } from "./layers/btrfs.ts";
import { openImage } from "./layers/image.ts";
import { beginLife, type Life, type LifePlan, rootPid } from "./life.ts";
import { planHidden, planOverlays } from "./mount-plan.ts";
import type { SandboxPlace } from "./options.ts";
import { processInfos } from "./proc.ts";
import { dumpTree, restoreTree } from "./processes/criu.ts";
import { ImageStore } from "./processes/image-store.ts";
import { kernelFeatures } from "./processes/kernel-features.ts";
import { isSameImage } from "./processes/same-image.ts";
import { recordProcesses } from "./processes/table.ts";
import { sandboxProgram } from "./program.ts";
import { findCriu, findMkfsBtrfs } from "./tools.ts";
import { TreeFiles } from "./tree-files.ts";

const nothing: FileChanges = { added: [], removed: [], changed: [], mode: [], type: [], renamed: [] };
/** Numbers that CRIU may need for itself beside those that it restores. */
const pidRoom = 200;
const pidLimit = 32_768;

/** @throws NOT_AVAILABLE where this machine cannot make one; the message says what it lacks */
export async function openSandbox(place: SandboxPlace): Promise<Environment> {
  const loaded = loadNative();
  const { native } = loaded;
  const program = sandboxProgram();
  const mount = cgroupMount();
  if (loaded.native === null || native === null) throw unavailable(`the addon is not available (${loaded.reason})`);
  if (process.getuid?.() !== 0) throw unavailable("it needs root");
  if (program === undefined) throw unavailable("the program for sandboxes was not built");
  if (mount === undefined) throw unavailable("cgroup v2 is not mounted");
  const overlays = planOverlays(place);
  const [criu, mkfs] = await Promise.all([findCriu(), findMkfsBtrfs()]);
  const image = await openImage({ store: place.store, native, mkfs: mkfs.tool?.command });
  const layers = await openBtrfsLayers({ native, folder: join(image.folder, place.id), check: image.check });
  const imagesFolder = join(place.store, "images");
  makeFolder(imagesFolder, 0o700);
  const images = new ImageStore(join(imagesFolder, place.id));
  await images.clean();
  const group = new SandboxGroup(mount, place.id);
  // What a killed owner left running: its state is that of the last pair, which is brought back.
  await group.remove();
  const plan: LifePlan = {
    keeper: Keeper.open(program),
    native,
    group,
    program,
    overlays,
    hide: planHidden(place),
    hostname: "sandbox",
    network: place.network ?? "host",
    workspace: place.workspace,
    criu: criu.tool === null ? undefined : { program: criu.tool, kernelFeatures: await kernelFeatures(criu.tool) },
  };
  let life: Life = await beginLife(plan, layers.live(), undefined);
  let generation = 0;
  /** The manifest that the last capture or restore left. */
  let last: Manifest | undefined;
  const files = new TreeFiles(native, place.workspace, () => `/proc/${life.pid}/root`);

  async function capture(): Promise<Captured> {
    const start = performance.now();
    const infos = processInfos(group.processes()).filter(({ state }) => state !== "Z");
    const live = infos.length > 1;
    if (!live || plan.criu === undefined) {
      const { name, bytes, problems } = await layers.snapshot();
      last = { files: name, processes: null };
      return { manifest: last, problems, bytes, captureMs: performance.now() - start };
    }
    const folder = images.begin();
    let snapshot: Awaited<ReturnType<typeof layers.snapshot>> | undefined;
    try {
      const channel = await life.criu(folder, 0);
      const dumped = await dumpTree(channel, {
        images: folder,
        pid: rootPid,
        leaveRunning: true,
        async onFrozen() {
          snapshot = await layers.snapshot();
        },
      });
      const { name, bytes, problems } = snapshot as unknown as Awaited<ReturnType<typeof layers.snapshot>>;
      const same = last?.processes != null && (await isSameImage(folder, images.path(last.processes)));
      let processes = last?.processes as string;
      if (same) await images.discard(folder);
      else {
        processes = images.commit(folder, {
          files: name,
          lastPid: Math.max(...infos.map(({ inside }) => inside)),
          processes: recordProcesses(infos),
          ports: [],
          criu: plan.criu.program.version,
          kernel: "",
        });
      }
      last = { files: name, processes };
      return {
        manifest: last,
        problems: [...problems, ...dumped.problems],
        bytes: bytes + (same ? 0 : dumped.bytes),
        captureMs: performance.now() - start,
      };
    } catch (error) {
      await images.discard(folder);
      throw error;
    }
  }

  async function restore(manifest: Manifest, { dryRun = false }: RestoreOptions): Promise<Restored> {
    const { files: target, processes } = manifest;
    if (target === null || !layers.has(target)) throw missing("files");
    if (processes !== null && !images.has(processes)) throw missing("processes");
    if (dryRun) return { generation, restored: nothing, notRestored: [] };
    const T0 = performance.now();
    const lap = (w: string) => process.env.T && console.log(w, performance.now() - T0);
    await life.commands.settle();
    lap("settle");
    await life.end();
    lap("end");
    await layers.reset(target);
    lap("reset");
    if (processes === null) life = await beginLife(plan, layers.live(), undefined);
    else {
      const about = images.about(processes);
      const after = about.lastPid + 20 + pidRoom < pidLimit ? about.lastPid + 20 : 300;
      life = await beginLife(plan, layers.live(), after);
      lap("begun");
      const channel = await life.criu(images.path(processes), after + 1);
      lap("criu");
      const restored = life;
      await restoreTree(channel, {
        images: images.path(processes),
        async onNotify(script) {
          if (script === "post-restore") await restored.closeSettings();
        },
      });
    }
    lap("restored");
    last = manifest;
    generation = place.raiseGeneration();
    return { generation, restored: nothing, notRestored: [] };
  }

  return {
    kind: "sandbox",
    capabilities: {
      files: true,
      processes: criu.tool !== null,
      fork: false,
      inPlace: true,
      freeze: true,
      memory: criu.tool !== null,
      lacks: [],
    },

    async probe() {
      return {
        status: "available",
        reason: criu.tool === null ? `without processes: ${criu.reason}` : "files and processes",
      };
    },

    capture(): Capture {
      const captured = capture();
      const durable = captured.then(async ({ manifest }) => {
        if (manifest.files !== null) await layers.sync(manifest.files);
        if (manifest.processes !== null) await images.sync(manifest.processes);
      });
      durable.catch(() => {});
      return { captured, durable };
    },

    restore: (manifest, options = {}) => restore(manifest, options),

    async diff(): Promise<FileChanges> {
      return nothing;
    },

    settle: () => life.commands.settle(),

    async exec(command, options: SandboxExecOptions = {}) {
      return life.commands.exec(command, options, options.cwd === undefined ? undefined : files.inside(options.cwd));
    },

    readFile: async (path) => files.readFile(path),
    writeFile: async (path, data) => files.writeFile(path, data),
    list: async (path) => files.list(path),
    path: (path) => join(`/proc/${life.pid}/root`, files.inside(path)),

    async verify({ files: state, processes }): Promise<Problem[]> {
      const found = state === null ? [] : await layers.verify(state);
      if (processes !== null && !images.has(processes))
        return [...found, { path: processes, reason: "the image of the processes is not there" }];
      return found;
    },

    async close() {
      await life.commands.settle();
      await life.end();
      await plan.keeper.close();
      await layers.close();
      await image.close();
    },
  };
}

const missing = (half: string): RewindError =>
  new RewindError("NOT_RESTORABLE", `The ${half} of this checkpoint are not there any more.`, {
    hint: "Choose another checkpoint.",
  });

const unavailable = (reason: string): RewindError =>
  new RewindError("NOT_AVAILABLE", `A sandbox cannot be made here: ${reason}.`, {
    hint: 'Run `agentrewind doctor`, or use environment: "directory".',
  });
