// Reads a bundle record by record and compares each with its digest; the file is believed to be neither whole nor well meant.
import { createHash } from "node:crypto";
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { inflateRawSync } from "node:zlib";
import { RewindError, systemCode } from "../errors.ts";
import {
  coding,
  damaged,
  deflateLimit,
  headSize,
  isObject,
  magic,
  payloadLimit,
  recordKind,
  smallLimit,
} from "./format.ts";
import { trailerSchema } from "./schema.ts";

export interface BundleRecord {
  readonly kind: number;
  /** SHA-256 of the payload: an object's name. */
  readonly digest: Buffer;
  readonly payload: Buffer;
}

export class BundleReader {
  readonly #fd: number;
  readonly #size: number;
  /** Of the whole, once it was read. */
  #digest: string | undefined;

  /** @throws BAD_ARGUMENT where no file can be read, BUNDLE_DAMAGED */
  constructor(path: string) {
    try {
      // Whoever names a FIFO is told so, instead of waiting for its writer.
      this.#fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    } catch (error) {
      const why = systemCode(error) === "ENOENT" ? "There is no file" : "There is no file that can be read at";
      throw new RewindError("BAD_ARGUMENT", `${why} ${path}.`, { hint: "Check the name.", cause: error });
    }
    const stat = fstatSync(this.#fd);
    this.#size = stat.size;
    if (stat.isFile()) return;
    this.close();
    throw new RewindError("BAD_ARGUMENT", `${path} is not a file.`, { hint: "Name the file of a bundle." });
  }

  /** All but the trailer, whose digest is that of everything before it; read again they are the same. @throws BUNDLE_DAMAGED */
  *records(): Generator<BundleRecord> {
    const whole = createHash("sha256");
    const start = this.#read(0, magic.length);
    if (!start.equals(magic)) throw damaged("it does not begin as one");
    whole.update(start);
    let at = magic.length;
    for (let number = 0; ; number++) {
      const head = this.#read(at, headSize);
      const length = head.readUInt32LE(4);
      const kind = head.readUInt8(0);
      requireLength(kind, head, `record ${number}`);
      const bytes = this.#read(at + headSize, length);
      const payload = decoded(head, bytes, number);
      const digest = head.subarray(12, headSize);
      if (!createHash("sha256").update(payload).digest().equals(digest))
        throw damaged(`record ${number} is not what its digest says`);
      if (kind === recordKind.trailer) {
        const trailer = parseJson(trailerSchema, payload, "trailer");
        if (trailer.records !== number || trailer.bytes !== at || trailer.digest !== whole.digest("hex"))
          throw damaged("its trailer tells of another one");
        if (at + headSize + length !== this.#size) throw damaged("something follows its end");
        this.#digest ??= trailer.digest;
        if (this.#digest !== trailer.digest) throw damaged("it was changed while it was read");
        return;
      }
      whole.update(head).update(bytes);
      at += headSize + length;
      yield { kind, digest, payload };
    }
  }

  close(): void {
    closeSync(this.#fd);
  }

  #read(at: number, length: number): Buffer {
    // Before there is room for it: a length is only a claim.
    if (at + length > this.#size) throw damaged("it is cut short");
    const bytes = Buffer.allocUnsafe(length);
    for (let done = 0; done < length; ) {
      const n = readSync(this.#fd, bytes, done, length - done, at + done);
      if (n === 0) throw damaged("it became shorter while it was read");
      done += n;
    }
    return bytes;
  }
}

function requireLength(kind: number, head: Buffer, name: string): void {
  const [how, stored, length] = [head.readUInt8(1), head.readUInt32LE(4), head.readUInt32LE(8)];
  if (head.readUInt16LE(2) !== 0) throw damaged(`${name} has no form that is known`);
  if (length > (isObject(kind) ? payloadLimit : smallLimit)) throw damaged(`${name} says that it has ${length} bytes`);
  if (how === coding.plain ? stored !== length : how !== coding.deflated || length > deflateLimit || stored > length)
    throw damaged(`${name} has no form that is known`);
}

function decoded(head: Buffer, bytes: Buffer, number: number): Buffer {
  if (head.readUInt8(1) === coding.plain) return bytes;
  const length = head.readUInt32LE(8);
  try {
    const payload = inflateRawSync(bytes, { maxOutputLength: Math.max(length, 1) });
    if (payload.length === length) return payload;
  } catch (error) {
    throw damaged(`record ${number} cannot be unpacked`, error);
  }
  throw damaged(`record ${number} has another length than it says`);
}

interface Schema<T> {
  safeParse(
    value: unknown,
  ): { readonly success: true; readonly data: T } | { readonly success: false; readonly error: Error };
}

/** @throws BUNDLE_DAMAGED */
export function parseJson<T>(schema: Schema<T>, payload: Buffer, what: string): T {
  let value: unknown;
  try {
    value = JSON.parse(payload.toString("utf8"));
  } catch (error) {
    throw damaged(`its ${what} cannot be read`, error);
  }
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw damaged(`its ${what} does not have the form of one`, parsed.error);
}
