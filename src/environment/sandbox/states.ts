// The stored states of one sandbox: whether they can be brought back, and their files as a folder.
import { join } from "node:path";
import { RewindError } from "../../errors.ts";
import type { Manifest } from "../environment.ts";
import type { Layers } from "./layers/layers.ts";
import type { LifePlan } from "./life.ts";
import type { SandboxPlace } from "./options.ts";
import type { ImageStore } from "./processes/image-store.ts";
import { portsInUse } from "./processes/table.ts";
import { putPaths } from "./put.ts";

export class SandboxStates {
  readonly #place: SandboxPlace;
  readonly #plan: LifePlan;
  readonly #layers: Layers;
  readonly #images: ImageStore;

  constructor(place: SandboxPlace, plan: LifePlan, layers: Layers, images: ImageStore) {
    this.#place = place;
    this.#plan = plan;
    this.#layers = layers;
    this.#images = images;
  }

  has({ files, processes }: Manifest): boolean {
    return files !== null && this.#layers.has(files) && (processes === null || this.#images.has(processes));
  }

  /** Gives the state of the files. @throws NOT_RESTORABLE */
  require(manifest: Manifest): string {
    const files = filesOf(manifest);
    if (this.has(manifest)) return files;
    const half = this.#layers.has(files) ? "processes" : "files";
    throw new RewindError("NOT_RESTORABLE", `The ${half} of this checkpoint are not there any more.`, {
      hint: "Choose another checkpoint.",
    });
  }

  /** Another process may have taken a port meanwhile: nothing is touched then. @throws PROCESSES_NOT_RESTORED */
  requirePorts({ processes }: Manifest): void {
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

  /** With a host path of the state's files, as a live folder has them. */
  async withFolder<T>(state: string, work: (folder: string) => Promise<T>): Promise<T> {
    const folder = this.#layers.folder(state);
    if (folder !== undefined) return work(folder);
    const borrowed = await this.#layers.fork(state, join(this.#place.store, "layers-view", this.#place.id));
    try {
      return await work(borrowed.live());
    } finally {
      await borrowed.discard();
    }
  }

  /** Single paths, absolute inside, into the running sandbox whose root is at `root` on the host. */
  put(state: string, paths: readonly string[], root: string): Promise<void> {
    const { native, overlays } = this.#plan;
    const scratch = join(this.#place.store, "views");
    return this.withFolder(state, (folder) => putPaths({ native, scratch, overlays, state: folder, root, paths }));
  }
}

/** @throws NOT_RESTORABLE */
export function filesOf(manifest: Manifest): string {
  if (manifest.files !== null) return manifest.files;
  throw new RewindError("NOT_RESTORABLE", "This checkpoint holds no files.", { hint: "Choose another checkpoint." });
}
