// Keeps what a scanner knows between processes. Losing it costs time; trusting it wrongly would lose content, so only what a checkpoint holds is taken up.
import { readFile, rename, rm, writeFile } from "node:fs/promises";
import type { Hash } from "../../store/objects.ts";
import type { Scanner } from "./scanner.ts";

const nameLength = 32;

export interface ScanMemoryOptions {
  readonly scanner: Scanner;
  readonly file: string;
  /** A restorable checkpoint holds this snapshot (hex), so the store has all of it. */
  readonly isHeld: (snapshot: string) => boolean;
}

export class ScanMemory {
  readonly #options: ScanMemoryOptions;
  #loaded = false;
  #snapshot: Hash | undefined;
  #saved: Hash | undefined;
  #saving: Promise<void> = Promise.resolve();

  constructor(options: ScanMemoryOptions) {
    this.#options = options;
  }

  /** Of the kept scan; undefined when nothing is kept. */
  get snapshot(): Hash | undefined {
    return this.#snapshot;
  }

  /** Before the first scan. */
  async load(): Promise<void> {
    if (this.#loaded) return;
    this.#loaded = true;
    const { scanner, file, isHeld } = this.#options;
    const bytes = await readFile(file).catch(() => undefined);
    const snapshot = bytes?.subarray(0, nameLength);
    if (bytes === undefined || snapshot?.length !== nameLength || !isHeld(snapshot.toString("hex"))) return;
    if (!(await scanner.load(bytes.subarray(nameLength)))) return;
    this.#snapshot = snapshot;
    this.#saved = snapshot;
  }

  /** The batch of the scan that gave this snapshot was committed. */
  keep(snapshot: Hash): void {
    this.#options.scanner.keep();
    this.#snapshot = snapshot;
    // A process that is killed shall not have read a large tree in vain.
    if (this.#saved === undefined) void this.save();
  }

  save(): Promise<void> {
    this.#saving = this.#saving.then(() => this.#write());
    return this.#saving;
  }

  async #write(): Promise<void> {
    const snapshot = this.#snapshot;
    if (snapshot === undefined || this.#saved?.equals(snapshot) === true) return;
    this.#saved = snapshot;
    const { scanner, file } = this.#options;
    const temporary = `${file}.new`;
    try {
      const image = await scanner.save();
      if (image === null) return;
      await writeFile(temporary, [snapshot, image], { mode: 0o600 });
      await rename(temporary, file);
    } catch {
      await rm(temporary, { force: true }).catch(() => {});
    }
  }
}
