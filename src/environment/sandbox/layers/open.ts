// Opens the layers of one sandbox in a store, of the kind that is asked for.
import { accessSync, constants, existsSync, readFileSync, statfsSync } from "node:fs";
import { join } from "node:path";
import type { Native } from "../../../native.ts";
import type { Objects } from "../../../store/objects.ts";
import type { ProbeResult } from "../../environment.ts";
import { openBtrfsLayers } from "./btrfs.ts";
import { openCopyLayers } from "./copy.ts";
import { btrfsMagic, type ImageOptions, openImage } from "./image.ts";
import type { Layers } from "./layers.ts";

export interface LayersOptions extends ImageOptions {
  /** The environment's id: the name of the sandbox's folder. */
  readonly id: string;
  readonly objects: Objects;
  /** What an environment was begun with it stays with. */
  readonly kind: Layers["kind"];
}

/** @throws NOT_AVAILABLE where this machine has no such kind, DISK_FULL, WRITE_FAILED */
export async function openLayers(options: LayersOptions): Promise<Layers> {
  const { store, id, objects, kind, native } = options;
  if (kind === "copy") return openCopyLayers({ folder: join(store, "copies", id), objects, id });
  const image = await openImage(options);
  try {
    const layers = await openBtrfsLayers({ native, folder: join(image.folder, id), check: image.check });
    return closing(layers, () => image.close());
  } catch (error) {
    await image.close();
    throw error;
  }
}

/** Forks lie on the same image, which stays mounted until the last of them is closed. */
function closing(layers: Layers, end: () => Promise<void>): Layers {
  let open = 1;
  const count = (one: Layers): Layers => {
    const close = one.close.bind(one);
    const fork = one.fork.bind(one);
    let closed = false;
    one.close = async () => {
      if (closed) return;
      closed = true;
      await close();
      if (--open === 0) await end();
    };
    one.fork = async (name, folder) => {
      const made = await fork(name, folder);
      open++;
      return count(made);
    };
    return one;
  };
  return count(layers);
}

/** Can layers be kept on a btrfs in this store? */
export function probeBtrfs(native: Native | null, store: string, mkfs: readonly string[] | undefined): ProbeResult {
  const reason = whyNot(native, store, mkfs);
  if (reason === undefined) return { status: "available", reason: "" };
  return { status: "unsupported", reason };
}

function whyNot(native: Native | null, store: string, mkfs: readonly string[] | undefined): string | undefined {
  if (native === null) return "the native addon is not there";
  if (process.getuid?.() !== 0) return "mounting needs root";
  if (existsSync(store) && statfsSync(store).type === btrfsMagic) return undefined;
  if (!/\bbtrfs$/m.test(readFileSync("/proc/filesystems", "utf8")))
    return "this kernel has no btrfs (`modprobe btrfs`)";
  try {
    accessSync("/dev/loop-control", constants.R_OK | constants.W_OK);
  } catch {
    return "there are no loop devices (/dev/loop-control)";
  }
  if (mkfs === undefined && !existsSync(join(store, "layers.img")))
    return "there is no mkfs.btrfs (package btrfs-progs)";
  return undefined;
}
