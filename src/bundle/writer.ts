// Writes a bundle record by record, under another name until it is whole.
import { createHash, randomBytes } from "node:crypto";
import { closeSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { deflateRawSync } from "node:zlib";
import { asWriteFailure, RewindError } from "../errors.ts";
import { fault } from "../faults.ts";
import { openForWriting, remove, rename, syncFile, syncFolder, writeAll } from "../store/io.ts";
import { coding, deflateLimit, headSize, magic, payloadLimit, recordKind } from "./format.ts";

const bufferLimit = 1 << 20;
/** Shorter ones gain nothing. */
const worthDeflating = 128;

export class BundleWriter {
  readonly #path: string;
  readonly #unfinished: string;
  readonly #fd: number;
  readonly #digest = createHash("sha256");
  #buffered: Uint8Array[] = [];
  #bufferedBytes = 0;
  #written = 0;
  #records = 0;
  #open = true;
  #placed = false;

  /** @param path where nothing is yet. @throws BAD_ARGUMENT, DISK_FULL, WRITE_FAILED */
  constructor(path: string) {
    requireFree(path);
    this.#path = path;
    this.#unfinished = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString("hex")}.part`);
    try {
      this.#fd = openForWriting(this.#unfinished, "wx+");
    } catch (error) {
      throw asWriteFailure(error, path);
    }
    this.#append(magic);
  }

  /** @returns the payload's SHA-256. @throws DISK_FULL, WRITE_FAILED */
  add(kind: number, payload: Uint8Array): Buffer {
    if (payload.length > payloadLimit)
      throw new RewindError("NOT_AVAILABLE", `A part of ${payload.length} bytes is more than a bundle takes.`, {
        hint: "Export another checkpoint.",
      });
    const [how, bytes] = packed(payload);
    const head = Buffer.alloc(headSize);
    const digest = createHash("sha256").update(payload).digest();
    head.writeUInt8(kind, 0);
    head.writeUInt8(how, 1);
    head.writeUInt32LE(bytes.length, 4);
    head.writeUInt32LE(payload.length, 8);
    digest.copy(head, 12);
    this.#records++;
    this.#append(head);
    this.#append(bytes);
    return digest;
  }

  addJson(kind: number, value: unknown): void {
    this.add(kind, Buffer.from(JSON.stringify(value)));
  }

  /** The bundle is whole, on disk, and has its name. @returns its length in bytes */
  async finish(): Promise<number> {
    const trailer = { records: this.#records, bytes: this.#length, digest: this.#digest.copy().digest("hex") };
    this.addJson(recordKind.trailer, trailer);
    try {
      this.#flush();
      fault("export.written");
      await syncFile(this.#unfinished);
      this.#close();
      requireFree(this.#path);
      rename(this.#unfinished, this.#path);
      this.#placed = true;
      await syncFolder(dirname(this.#path));
    } catch (error) {
      throw asWriteFailure(error, this.#path);
    }
    return this.#length;
  }

  /** Nothing of it is left. */
  discard(): void {
    this.#close();
    remove(this.#placed ? this.#path : this.#unfinished);
  }

  #close(): void {
    if (this.#open) closeSync(this.#fd);
    this.#open = false;
  }

  get #length(): number {
    return this.#written + this.#bufferedBytes;
  }

  #append(bytes: Uint8Array): void {
    this.#digest.update(bytes);
    this.#buffered.push(bytes);
    this.#bufferedBytes += bytes.length;
    if (this.#bufferedBytes >= bufferLimit) this.#flush();
  }

  #flush(): void {
    try {
      writeAll(this.#fd, Buffer.concat(this.#buffered), this.#written);
    } catch (error) {
      throw asWriteFailure(error, this.#path);
    }
    this.#written += this.#bufferedBytes;
    this.#buffered = [];
    this.#bufferedBytes = 0;
  }
}

function packed(payload: Uint8Array): [coding: number, bytes: Uint8Array] {
  if (payload.length >= worthDeflating && payload.length <= deflateLimit) {
    const deflated = deflateRawSync(payload, { level: 1 });
    if (deflated.length < payload.length - payload.length / 8) return [coding.deflated, deflated];
  }
  return [coding.plain, payload];
}

/** @throws BAD_ARGUMENT */
function requireFree(path: string): void {
  if (!(statSync(dirname(path), { throwIfNoEntry: false })?.isDirectory() ?? false))
    throw new RewindError("BAD_ARGUMENT", `There is no folder ${dirname(path)}.`, {
      hint: "Make it, or name another.",
    });
  if (statSync(path, { throwIfNoEntry: false }) !== undefined)
    throw new RewindError("BAD_ARGUMENT", `${path} is there already.`, {
      hint: "Name a file that is not there yet; nothing is overwritten.",
    });
}
