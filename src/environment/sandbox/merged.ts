// What an overlay shows at a path in one state: the upper layer's entry, or the lower one's where nothing hides it.
import { join, parentOf, type RawPath } from "../directory/names.ts";
import type { LayerEntry, Layers } from "./layers/layers.ts";
import type { Lower } from "./lower.ts";

export interface Shown {
  readonly entry: LayerEntry;
  readonly from: "upper" | "lower";
}

export class Merged {
  readonly #layers: Layers;
  readonly #state: string;
  readonly #layer: RawPath;
  readonly #lower: Lower | undefined;
  readonly #upper = new Map<RawPath, LayerEntry | null>();
  readonly #reaches = new Map<RawPath, boolean>([["", true]]);

  /** @param layer the upper folder, below the live folder */
  constructor(layers: Layers, state: string, layer: RawPath, lower: Lower | undefined) {
    this.#layers = layers;
    this.#state = state;
    this.#layer = layer;
    this.#lower = lower;
  }

  /** Spares a look at what is known. */
  know(path: RawPath, entry: LayerEntry | null): void {
    this.#upper.set(path, entry);
  }

  async shown(path: RawPath): Promise<Shown | null> {
    const upper = await this.#upperAt(path);
    if (upper !== null) return upper.type === "whiteout" ? null : { entry: upper, from: "upper" };
    const lower = (await this.#isReached(path)) ? this.#lower?.look(path) : undefined;
    return lower === undefined || lower === null ? null : { entry: lower, from: "lower" };
  }

  /** Entries of the lower folder at `path` are seen. */
  async showsBelow(path: RawPath): Promise<boolean> {
    if (this.#lower?.look(path)?.type !== "directory") return false;
    return (await this.#isReached(path)) && (await this.#isMerged(path));
  }

  /** Nothing above the path hides the lower layer's. */
  async #isReached(path: RawPath): Promise<boolean> {
    const known = this.#reaches.get(path);
    if (known !== undefined) return known;
    const parent = parentOf(path);
    const reached = (await this.#isReached(parent)) && (await this.#isMerged(parent));
    this.#reaches.set(path, reached);
    return reached;
  }

  async #isMerged(folder: RawPath): Promise<boolean> {
    const upper = await this.#upperAt(folder);
    return upper === null || (upper.type === "directory" && !upper.opaque);
  }

  async #upperAt(path: RawPath): Promise<LayerEntry | null> {
    const known = this.#upper.get(path);
    if (known !== undefined) return known;
    const found = await this.#lookUp(path);
    this.#upper.set(path, found);
    return found;
  }

  async #lookUp(path: RawPath): Promise<LayerEntry | null> {
    if (path === "") return this.#layers.look(this.#state, this.#layer);
    // What is in no folder needs no look: of a tree that came or went that is all of it.
    const above = await this.#upperAt(parentOf(path));
    return above?.type === "directory" ? this.#layers.look(this.#state, join(this.#layer, path)) : null;
  }
}
