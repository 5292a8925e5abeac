// What killed owners of sandboxes left on the machine: nothing of it is needed, and opening the workspace again takes most of it up.
import { existsSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import type { Native } from "../../native.ts";
import { removeFolder } from "../directory/remove.ts";
import { SandboxGroup } from "./cgroup.ts";
import { openImage } from "./layers/image.ts";
import { SandboxLimits } from "./limits.ts";
import { cgroup1Mount, cgroup2Mount, mountAt, mountTable } from "./mount-table.ts";

export interface Orphan {
  readonly kind: "cgroup" | "mount" | "folder";
  /** Absolute. */
  readonly path: string;
  readonly problem: string;
  /** To be called while nobody can open the sandboxes of `environments`. */
  remove(): Promise<void>;
}

export interface OrphanPlace {
  readonly native: Native;
  /** Real path of the store's folder. */
  readonly store: string;
  /** Ids of the store's sandboxes that nobody holds. */
  readonly idle: readonly string[];
  /** Nobody holds any sandbox of the store. */
  readonly isQuiet: boolean;
}

const detach = 2;

/** Looks only. */
export function findOrphans(place: OrphanPlace): Orphan[] {
  const { store, native, idle, isQuiet } = place;
  return [
    ...idle.flatMap(groupsOf),
    ...idle.flatMap((id) => unfinished(join(store, "images", id), (name) => name.startsWith("."))),
    ...(isQuiet ? storeWide(store, native) : []),
  ];
}

function groupsOf(id: string): Orphan[] {
  const mount = cgroup2Mount();
  if (mount === undefined) return [];
  const group = new SandboxGroup(mount, id);
  const found: Orphan[] = [];
  if (existsSync(group.root)) {
    found.push({
      kind: "cgroup",
      path: group.root,
      problem: "is a control group of a sandbox that nobody has open",
      remove: () => group.remove(),
    });
  }
  for (const controller of SandboxLimits.controllers) {
    const folder = join(cgroup1Mount(controller) ?? "", "agentrewind", id);
    if (existsSync(folder)) {
      found.push({
        kind: "cgroup",
        path: folder,
        problem: "is a control group of a sandbox that nobody has open",
        remove: () => SandboxLimits.removeFolder(folder),
      });
    }
  }
  return found;
}

function unfinished(folder: string, isOurs: (name: string) => boolean): Orphan[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .filter(isOurs)
    .map((name) => ({
      kind: "folder",
      path: join(folder, name),
      problem: "was not finished",
      remove: () => removeFolder(join(folder, name)),
    }));
}

/** The views come before the image that they lie on. */
function storeWide(store: string, native: Native): Orphan[] {
  const views = join(store, "views");
  const layers = join(store, "layers");
  const mounts = mountTable()
    .map(({ point }) => point)
    .filter((point) => point.startsWith(`${views}/`) || point.startsWith(`${layers}/`))
    .reverse();
  return [
    ...mounts.map(
      (path): Orphan => ({
        kind: "mount",
        path,
        problem: "is mounted, and nobody has a sandbox of this store open",
        remove: () => native.unmount(Buffer.from(path), detach),
      }),
    ),
    ...unfinished(views, () => true).map((one) => ({
      ...one,
      problem: `${basename(one.path)} is looked at by nobody`,
    })),
    ...(mountAt(layers) === undefined
      ? []
      : [
          {
            kind: "mount",
            path: layers,
            problem: "is mounted, and nobody has a sandbox of this store open",
            // Its last user unmounts it.
            remove: async () => (await openImage({ store, native, mkfs: undefined, reserve: 0 })).close(),
          } as const,
        ]),
  ];
}
