// The paths of a sandbox: as callers write them, as it sees them, and where they lie in its layers.
import { join } from "node:path";
import type { Native } from "../../native.ts";
import { display, fromDisplay, type RawPath, toBytes } from "../directory/names.ts";
import type { FileChanges, Problem } from "../environment.ts";
import { fileChanges, type LayerRoot, rootOf } from "./changes.ts";
import { raw, restBelow } from "./inside.ts";
import type { Layers } from "./layers/layers.ts";
import type { LifePlan } from "./life.ts";
import { openLower } from "./lower.ts";
import { runLayer, runPath } from "./run-folder.ts";
import { lowersOf, type Overlay } from "./view.ts";

/** Of the host's changes, by name. */
const mostTold = 50;
/** Differences of two states that are kept in memory, and paths in one of them: a rewind asks for those again that its checkpoints told of. */
const mostKept = 64;
const mostPaths = 2_000;

export class SandboxPaths {
  readonly #native: Native;
  readonly #layers: Layers;
  readonly #workspace: string;
  readonly #overlays: readonly Overlay[];
  /** By both names, those asked for last at the end. */
  readonly #known = new Map<string, Promise<FileChanges>>();

  constructor({ native, workspace, overlays }: LifePlan, layers: Layers) {
    this.#native = native;
    this.#layers = layers;
    this.#workspace = workspace;
    this.#overlays = overlays;
  }

  get #roots(): readonly LayerRoot[] {
    return [
      ...this.#overlays.map((one) => ({ layer: `${one.name}.upper`, at: raw(one.path), lowers: lowersOf(one) })),
      { layer: "tmp", at: "/tmp" },
      { layer: "shm", at: "/dev/shm" },
    ];
  }

  /** Of a path in display form: below the workspace, or absolute. */
  absolute(shown: string): string {
    const path = toBytes(fromDisplay(shown)).toString("utf8");
    if (path.startsWith("/")) return path;
    return path === "" ? this.#workspace : join(this.#workspace, path);
  }

  /** Where an absolute path, inside, lies below the live folder. */
  inLayers(path: string): string {
    const root = rootOf([...this.#roots, { layer: runLayer, at: runPath }], raw(path)) as LayerRoot;
    const below = restBelow(raw(path), root.at);
    return below === "" ? root.layer : `${root.layer}/${below}`;
  }

  shown(path: string): string {
    return path.startsWith(`${this.#workspace}/`) ? path.slice(this.#workspace.length + 1) : path;
  }

  /** What the layers say in their own paths, as the sandbox sees it. */
  told({ path, reason }: Problem): Problem {
    const root = this.#roots.find(({ layer }) => path.startsWith(`${layer}/`));
    if (root === undefined) return { path, reason };
    return { path: this.shown(join(root.at, path.slice(root.layer.length + 1))), reason };
  }

  #rootOf(path: string): LayerRoot {
    return rootOf(this.#roots, path) as LayerRoot;
  }

  /** One of the states, or the lower folder, has it. */
  async isKnown(path: string, states: readonly string[]): Promise<boolean> {
    const root = this.#rootOf(path);
    const below = restBelow(raw(path), root.at);
    for (const state of states) {
      const upper = await this.#layers.look(state, below === "" ? root.layer : `${root.layer}/${below}`);
      if (upper !== null && upper.type !== "whiteout") return true;
    }
    if (root.lowers === undefined) return false;
    const lower = openLower(this.#native, root.lowers);
    try {
      return lower.look(below) !== null;
    } finally {
      lower.close();
    }
  }

  /** What somebody changed on the host, absolute paths inside: whether the sandbox in this state sees it. */
  async hostWrites(paths: readonly RawPath[], state: string): Promise<Problem[]> {
    const told = paths.slice(0, mostTold).map(async (path) => {
      const root = this.#rootOf(path);
      const below = restBelow(path, root.at);
      const own = await this.#layers.look(state, below === "" ? root.layer : `${root.layer}/${below}`);
      const seen = own === null || own.type === "directory" ? "the sandbox sees the host's" : "the sandbox has its own";
      return { path: display(this.shown(path)), reason: `HOST_WRITE: it was changed on the host meanwhile; ${seen}` };
    });
    const rest = paths.length - told.length;
    const more = { path: "host", reason: `HOST_WRITE: ${rest} more paths were changed on the host meanwhile` };
    return [...(await Promise.all(told)), ...(rest > 0 ? [more] : [])];
  }

  changes(from: string, to: string): Promise<FileChanges> {
    const key = `${from} ${to}`;
    const known = this.#known.get(key) ?? this.#compare(from, to);
    this.#known.delete(key);
    this.#known.set(key, known);
    known.then(
      (changes) => countPaths(changes) > mostPaths && this.#known.delete(key),
      () => this.#known.delete(key),
    );
    if (this.#known.size > mostKept) this.#known.delete(this.#known.keys().next().value as string);
    return known;
  }

  #compare(from: string, to: string): Promise<FileChanges> {
    const options = { native: this.#native, layers: this.#layers, roots: this.#roots, workspace: raw(this.#workspace) };
    return fileChanges(options, from, to);
  }
}

const countPaths = (changes: FileChanges): number =>
  Object.values(changes).reduce((sum, { length }) => sum + length, 0);

/** Less the paths of which `isLeft` is true. */
export function without(changes: FileChanges, isLeft: (path: string) => boolean): FileChanges {
  const rest = (paths: readonly string[]): string[] => paths.filter((path) => !isLeft(path));
  const renamed = changes.renamed.filter(({ from, to }) => !isLeft(from) && !isLeft(to));
  // Half of a rename is an entry that came or went.
  const halves = changes.renamed.filter((one) => !renamed.includes(one));
  return {
    added: [...rest(changes.added), ...rest(halves.map(({ to }) => to))],
    removed: [...rest(changes.removed), ...rest(halves.map(({ from }) => from))],
    changed: rest(changes.changed),
    mode: rest(changes.mode),
    type: rest(changes.type),
    renamed,
  };
}
