// What a bundle needs of a sandbox: its states as snapshots of directories, whatever keeps them here, and what its processes rely on.
import { join } from "node:path";
import { remove } from "../../store/io.ts";
import type { Objects } from "../../store/objects.ts";
import { openDirectory } from "../directory/directory.ts";
import type { Portable, PortableFiles, Problem } from "../environment.ts";
import { isBelow } from "./inside.ts";
import { type Layers, workSuffix } from "./layers/layers.ts";
import { isOfSocket } from "./layers/sockets.ts";
import type { LifePlan } from "./life.ts";
import { withMerged } from "./merged-view.ts";
import { isOwn, overlayOf } from "./mount-plan.ts";
import type { SandboxOptions, SandboxPlace } from "./options.ts";
import { imageFiles } from "./processes/image-files.ts";
import type { ImageStore } from "./processes/image-store.ts";
import { openFiles, programsAt } from "./programs.ts";
import { lowersOf } from "./view.ts";

/** What is no part of a state. */
export const notInStates: readonly string[] = [`*${workSuffix}/**`];

interface Sources {
  readonly place: SandboxPlace;
  readonly plan: LifePlan;
  readonly layers: Layers;
  readonly images: ImageStore;
  readonly options: SandboxOptions;
  /** As the sandbox sees it. */
  readonly told: (problem: Problem) => Problem;
}

export interface SandboxPortable extends Portable {
  isHeld(): boolean;
}

export function sandboxPortable({ place, plan, layers, images, options, told }: Sources): SandboxPortable {
  let holders = 0;
  const { store, id, objects } = place;
  const cacheFile = join(store, "cache", `${id}-bundle.tree`);
  return {
    isHeld: () => holders > 0,
    hold() {
      holders++;
      let held = true;
      return () => {
        if (held) holders--;
        held = false;
      };
    },
    async files(name) {
      const folder = layers.folder(name);
      if (folder === undefined) return { name, problems: [] };
      const found = await captureFolder({ root: folder, objects, id, cacheFile, exclude: notInStates });
      return { name: found.name, problems: found.problems.filter((one) => !isOfSocket(one)).map(told) };
    },
    base() {
      const capture = (root: string): Promise<PortableFiles> =>
        captureFolder({ root, objects, id, cacheFile, exclude: [] });
      const { overlay, below } = overlayOf(plan.overlays, plan.workspace);
      const folders = lowersOf(overlay);
      if (folders.length === 1) return capture(place.workspace);
      return withMerged(plan.native, join(store, "views"), folders, (view) => capture(join(view, below)));
    },
    imageAbout(name) {
      // What the shells know is found out anew where they are brought back.
      const { still: _, ...about } = images.about(name);
      return about;
    },
    imageFiles: (name) => imageFiles(images.path(name)),
    async programs(name) {
      const { kind, files } = images.about(name);
      if (kind !== "memory") return [];
      const below: string[] = [];
      for (const path of await openFiles(images.path(name))) {
        const { overlay, below: rest } = overlayOf(plan.overlays, path);
        // The workspace goes along.
        if (isOwn(path, overlay) || isBelow(path, plan.workspace)) continue;
        const upper = join(`${overlay.name}.upper`, rest);
        if (layers.has(files) && (await layers.look(files, Buffer.from(upper).toString("latin1"))) === null)
          below.push(path);
      }
      return programsAt(plan.native, plan.overlays, below);
    },
    opened: {
      workspace: plan.workspace,
      overlays: plan.overlays.map(({ path, name }) => ({ path, name })),
      options: JSON.parse(JSON.stringify(options)) as object,
    },
  };
}

interface Folder {
  readonly root: string;
  readonly objects: Objects;
  readonly id: string;
  readonly cacheFile: string;
  readonly exclude: readonly string[];
}

async function captureFolder({ root, objects, id, cacheFile, exclude }: Folder): Promise<PortableFiles> {
  const directory = openDirectory({
    ...{ root, objects, id, cacheFile, exclude },
    watches: false,
    isHeld: () => false,
    raiseGeneration: () => 0,
  });
  try {
    const { manifest, problems } = await directory.capture().captured;
    return { name: manifest.files as string, problems };
  } finally {
    await directory.close();
    // Of another folder the next time.
    remove(cacheFile);
  }
}
