// Keeps what a scanner knows between processes. Losing it costs time; trusting it wrongly would lose content, so only what a checkpoint holds is taken up.
import { readFile } from "node:fs/promises";
import { uptime } from "node:os";
import { setImmediate as nextTurn } from "node:timers/promises";
import { replaceFile, writeAll } from "../../store/io.ts";
import type { Hash } from "../../store/objects.ts";
import { bootId, nameLength } from "../../store/packs.ts";
import type { Scanner } from "./scanner.ts";

const clockMarginNs = 60_000_000_000n;

/** In front of the scanner's image: the snapshot's name, when the machine's run began, and which run it was. */
function header(snapshot: Hash): Buffer {
  const began = Buffer.alloc(8);
  began.writeBigInt64LE(BigInt(Date.now()) * 1_000_000n - BigInt(Math.ceil(uptime() * 1e9)));
  return Buffer.concat([snapshot, began, Buffer.from(bootId().padEnd(bootLength))]);
}
const bootLength = 40;
const headerLength = nameLength + 8 + bootLength;

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
    if (bytes === undefined || bytes.length < headerLength) return;
    const snapshot = bytes.subarray(0, nameLength);
    if (!isHeld(snapshot.toString("hex"))) return;
    // A power loss can keep an inode's times and lose its bytes. What was not touched in that run of the machine had been read from the disk.
    const sameRun = bytes.toString("utf8", nameLength + 8, headerLength).trim() === bootId();
    const unsettledFromNs = sameRun ? null : bytes.readBigInt64LE(nameLength) - clockMarginNs;
    if (!(await scanner.load(bytes.subarray(headerLength), unsettledFromNs))) return;
    this.#snapshot = snapshot;
    this.#saved = snapshot;
  }

  /** The batch of the scan that gave this snapshot was committed. */
  keep(snapshot: Hash): void {
    this.#options.scanner.keep();
    this.#snapshot = snapshot;
    // A process that is killed shall not have read a large tree in vain.
    if (this.#saved === undefined) void nextTurn().then(() => this.save());
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
    // Without it the next process reads everything once more.
    await replaceFile(file, async (fd) => {
      const head = header(snapshot);
      writeAll(fd, head, 0);
      return head.length + (await scanner.save(fd, head.length));
    }).catch(() => {});
  }
}
