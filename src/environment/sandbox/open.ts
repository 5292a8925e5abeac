// Opens a sandbox: looks what this machine has for one, and plans it.
import { realpathSync } from "node:fs";
import { join } from "node:path";
import { RewindError } from "../../errors.ts";
import { loadNative, type Native } from "../../native.ts";
import type { Environment } from "../environment.ts";
import { SandboxGroup } from "./cgroup.ts";
import { cpuTimeActivity } from "./cpu-time.ts";
import { HostFiles } from "./host-files.ts";
import { Keeper } from "./keeper.ts";
import type { Layers } from "./layers/layers.ts";
import { openLayers, probeBtrfs } from "./layers/open.ts";
import type { LifePlan } from "./life.ts";
import { arrangedOverlays, planHidden, planOverlays } from "./mount-plan.ts";
import { cgroup2Mount } from "./mount-table.ts";
import type { SandboxPlace } from "./options.ts";
import { type Arrangement, ParkingNote } from "./park.ts";
import { ImageStore } from "./processes/image-store.ts";
import { kernelFeatures } from "./processes/kernel-features.ts";
import { sandboxProgram } from "./program.ts";
import { Sandbox } from "./sandbox.ts";
import { findCriu, findMkfsBtrfs } from "./tools.ts";

/** @throws NOT_AVAILABLE where this machine cannot make one; the message says what it lacks */
export async function openSandbox(given: SandboxPlace): Promise<Environment> {
  const said = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const note = new ParkingNote(given.store, given.id);
  const place = { ...note.options(), ...said } as SandboxPlace;
  const { overlays, ...planned } = await planLife(place, note.arrangement());
  const { layers, lacks } = await openTheLayers(place, planned);
  const plan: LifePlan = {
    ...planned,
    overlays: overlays.map((one) => ({ ...one, kept: join(layers.kept, one.name) })),
  };
  const images = new ImageStore(join(place.store, "images", place.id));
  await images.clean();
  // What a killed owner left running: its state is that of the last pair, which is brought back.
  await plan.group.remove();
  const folders = [plan.workspace, ...(place.mounts ?? []).map((path) => realpathSync(path))];
  const host = new HostFiles({
    native: plan.native,
    overlays: plan.overlays,
    folders,
    hidden: plan.hide,
    sandboxes: () => plan.group.beside(),
    file: join(place.store, "sandboxes", `${place.id}.host`),
  });
  return new Sandbox({ place, plan, layers, images, host, folders, lacks });
}

type Planned = Omit<LifePlan, "overlays"> & { readonly overlays: ReturnType<typeof planOverlays> };

/** @throws NOT_AVAILABLE where this machine lacks what no sandbox can do without */
export function requireMachine(): { readonly native: Native; readonly program: string; readonly mount: string } {
  const loaded = loadNative();
  const program = sandboxProgram();
  const mount = process.platform === "linux" ? cgroup2Mount() : undefined;
  if (loaded.native === null) throw unavailable(`the addon is not available (${loaded.reason})`);
  if (process.getuid?.() !== 0) throw unavailable("it needs root");
  if (program === undefined) throw unavailable("the program for sandboxes was not built");
  if (mount === undefined) throw unavailable("cgroup v2 is not mounted");
  return { native: loaded.native, program, mount };
}

async function planLife(place: SandboxPlace, arrangement: Arrangement | undefined): Promise<Planned> {
  const { native, program, mount } = requireMachine();
  const overlays = arrangement === undefined ? planOverlays(place) : arrangedOverlays(place, arrangement);
  const { tool, reason } = await findCriu();
  const { processes = tool === null ? "relaunch" : "restore" } = place;
  if (processes === "restore" && tool === null) throw unavailable(`processes cannot be restored: ${reason}`);
  return {
    keeper: Keeper.open(program),
    native,
    group: new SandboxGroup(mount, place.id, place.limits),
    program,
    overlays,
    hide: planHidden(place),
    hostname: "sandbox",
    network: place.network ?? "host",
    noNewPrivs: place.noNewPrivs ?? false,
    activity: place.activity ?? (place.inspector === "scan" ? undefined : cpuTimeActivity),
    judgesShells: place.inspector !== "scan",
    tracksMemory: place.trackMemory ?? true,
    workspace: arrangement?.workspace ?? place.workspace,
    criu: tool === null ? undefined : { program: tool, kernelFeatures: await kernelFeatures(tool) },
    processes,
    whyNoMemory: processes === "restore" ? "" : tool === null ? reason : "its memory is not kept",
  };
}

export async function openTheLayers(
  place: Pick<SandboxPlace, "store" | "id" | "objects">,
  { native }: Pick<LifePlan, "native">,
): Promise<{ layers: Layers; lacks: string[] }> {
  const { store, id, objects } = place;
  const mkfs = (await findMkfsBtrfs()).tool?.command;
  const kind = probeBtrfs(native, store, mkfs).status === "available" ? "btrfs" : "copy";
  return { layers: await openLayers({ store, native, mkfs, id, objects, kind }), lacks: [] };
}

const unavailable = (reason: string): RewindError =>
  new RewindError("NOT_AVAILABLE", `A sandbox cannot be made here: ${reason}.`, {
    hint: 'Run `agentrewind doctor`, or use environment: "directory".',
  });
