// A scanner without the addon: one thread, in slices.
import { makeBreather } from "../../breathe.ts";
import { writeInPieces } from "../../store/io.ts";
import { mountPoints } from "./mounts.ts";
import type { RawPath } from "./names.ts";
import { loadTree, saveTree } from "./portable-cache.ts";
import { type PortableScan, type ScannedEntry, scan } from "./portable-scan.ts";
import type { Scan, Scanner, ScannerOptions, ScanRequest, Seen } from "./scanner.ts";

export class PortableScanner implements Scanner {
  readonly #options: ScannerOptions;
  #kept: ScannedEntry | undefined;
  #last: PortableScan | undefined;

  constructor(options: ScannerOptions) {
    this.#options = options;
  }

  async scan({ posix, batch, signal }: ScanRequest): Promise<Scan> {
    const { root, stage, excluded } = this.#options;
    signal?.throwIfAborted();
    this.#last = await scan(posix, batch, {
      previous: this.#kept,
      skip: (path) => path === stage || (excluded?.(path) ?? false),
      mounts: mountPoints(root),
      breathe: makeBreather(signal),
    });
    return { ...this.#last, trusted: false, missed: false };
  }

  keep(): void {
    this.#kept = this.#last?.root;
  }

  lookup(path: RawPath): Seen | undefined {
    let entry = this.#kept;
    if (path !== "")
      for (const name of path.split("/")) entry = entry?.children?.entries.find((child) => child.name === name);
    return entry;
  }

  groups(): ReadonlyMap<RawPath, readonly RawPath[]> {
    return this.#last?.groups ?? new Map();
  }

  async save(file: number, offset: number): Promise<number> {
    if (this.#kept === undefined) return 0;
    const image = await saveTree(this.#kept);
    await writeInPieces(file, image, offset);
    return image.length;
  }

  async load(image: Uint8Array, unsettledFromNs: bigint | null): Promise<boolean> {
    this.#kept = loadTree(image, unsettledFromNs);
    return this.#kept !== undefined;
  }

  forget(): void {
    this.#kept = undefined;
  }

  close(): void {}
}
