// Brings the states and images of a sandbox into a store: layers of whatever kind this machine keeps, and folders of images.
import { closeSync } from "node:fs";
import { join } from "node:path";
import { openDirectory } from "../environment/directory/directory.ts";
import { openPosix } from "../environment/directory/open-posix.ts";
import type { Problem } from "../environment/environment.ts";
import { restoreLayers } from "../environment/sandbox/layers/sockets.ts";
import { isOwn, overlayOf } from "../environment/sandbox/mount-plan.ts";
import { openTheLayers } from "../environment/sandbox/open.ts";
import { notInStates } from "../environment/sandbox/portable.ts";
import { type ImageAbout, ImageStore } from "../environment/sandbox/processes/image-store.ts";
import { asWriteFailure } from "../errors.ts";
import { fault } from "../faults.ts";
import type { Native } from "../native.ts";
import { openForWriting, remove, writeAll } from "../store/io.ts";
import type { Objects } from "../store/objects.ts";
import type { SandboxPart } from "./schema.ts";
import { SplitOff } from "./split-off.ts";

export interface SandboxLanding {
  readonly native: Native;
  /** The store's folder. */
  readonly store: string;
  readonly id: string;
  readonly objects: Objects;
  readonly sandbox: SandboxPart;
}

/** The overlay of the workspace alone: its paths inside are those of the machine that it came from, the folder below is this one's. */
const workspaceOverlay = "workspace";

/** @returns the overlays, that of the workspace among them */
export function arrange({ workspace, overlays }: SandboxPart): { path: string; name: string }[] {
  if (overlays.some(({ path }) => path === workspace)) return [...overlays];
  const all = [...overlays, { path: workspace, name: workspaceOverlay }];
  return all.sort((a, b) => a.path.length - b.path.length);
}

export interface LandedStates {
  /** By the names that they had. */
  readonly names: ReadonlyMap<string, string>;
  readonly problems: readonly Problem[];
}

/** @throws DISK_FULL, WRITE_FAILED, STORE_CORRUPT */
export async function landStates({ native, store, id, objects, sandbox }: SandboxLanding): Promise<LandedStates> {
  const { layers } = await openTheLayers({ store, id, objects }, { native });
  const cacheFile = join(store, "cache", `${id}-bundle.tree`);
  const names = new Map<string, string>();
  const problems = new Map<string, Problem>();
  try {
    const live = layers.live();
    const directory = openDirectory({
      ...{ root: live, objects, id, cacheFile, exclude: notInStates },
      watches: false,
      isHeld: () => false,
      raiseGeneration: () => 0,
    });
    const posix = openPosix(live);
    try {
      const split = splitOf(sandbox);
      for (const { name, files } of sandbox.states) {
        split?.join(posix);
        for (const one of await restoreLayers(directory, live, objects, files))
          problems.set(one.path, told(sandbox, one));
        split?.split(posix);
        const snapshot = await layers.snapshot();
        await layers.sync(snapshot.name);
        names.set(name, snapshot.name);
        fault("import.state-landed");
      }
    } finally {
      posix.close();
      await directory.close();
      remove(cacheFile);
    }
  } catch (error) {
    throw asWriteFailure(error, store);
  } finally {
    await layers.close();
  }
  return { names, problems: [...problems.values()] };
}

/** As the sandbox sees it. */
function told({ overlays }: SandboxPart, { path, reason }: Problem): Problem {
  const overlay = overlays.find(({ name }) => path.startsWith(`${name}.upper/`));
  if (overlay === undefined) return { path, reason };
  return { path: join(overlay.path, path.slice(`${overlay.name}.upper/`.length)), reason };
}

function splitOf({ workspace, overlays }: SandboxPart): SplitOff | undefined {
  const { overlay: owner, below } = overlayOf(overlays, workspace);
  if (isOwn(workspace, owner) || owner.path === workspace) return undefined;
  const path = Buffer.from(below).toString("latin1");
  return new SplitOff(`${owner.name}.upper`, path, `${workspaceOverlay}.upper`);
}

/** Images come record by record. */
export class ImageLanding {
  readonly names = new Map<string, string>();
  readonly #images: ImageStore;
  readonly #states: ReadonlyMap<string, string>;
  readonly #withMemory: boolean;
  #open: { readonly name: string; readonly about: ImageAbout; readonly folder: string } | undefined;
  #file: { readonly fd: number; at: number } | undefined;

  constructor(store: string, id: string, states: ReadonlyMap<string, string>, withMemory: boolean) {
    this.#images = new ImageStore(join(store, "images", id));
    this.#states = states;
    this.#withMemory = withMemory;
  }

  async begin(name: string, about: ImageAbout): Promise<void> {
    await this.end();
    this.#open = { name, about, folder: this.#images.begin() };
  }

  file(name: string): void {
    this.#endFile();
    if (this.#withMemory && this.#open !== undefined)
      this.#file = { fd: openForWriting(join(this.#open.folder, name), "wx+"), at: 0 };
  }

  bytes(piece: Buffer): void {
    if (this.#file === undefined) return;
    writeAll(this.#file.fd, piece, this.#file.at);
    this.#file.at += piece.length;
  }

  /** Of the image that was begun, if one was. */
  async end(): Promise<void> {
    this.#endFile();
    if (this.#open === undefined) return;
    const { name, about, folder } = this.#open;
    this.#open = undefined;
    const made = this.#images.commit(folder, {
      ...about,
      kind: this.#withMemory ? about.kind : "table",
      files: this.#states.get(about.files) ?? about.files,
    });
    await this.#images.sync(made);
    this.names.set(name, made);
  }

  #endFile(): void {
    if (this.#file !== undefined) closeSync(this.#file.fd);
    this.#file = undefined;
  }
}
