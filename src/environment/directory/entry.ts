// One directory entry as bytes (docs/format.md, Files) and back.
import type { Hash } from "../../store/objects.ts";
import { fromBytes, type RawPath, toBytes } from "./names.ts";

export const entryType = {
  file: 1,
  directory: 2,
  symlink: 3,
  hardLink: 4,
  fifo: 5,
  characterDevice: 6,
  blockDevice: 7,
  socket: 8,
  unread: 9,
} as const;
export type EntryType = (typeof entryType)[keyof typeof entryType];

/** sparse: of formats up to 3, where pages of zeros come back as holes. */
export const entryFlag = { blocks: 1, sparse: 2, torn: 4 } as const;

export const fidelityBit = { nanoseconds: 1, xattrs: 2, devices: 4, owners: 8, holes: 16 } as const;

export type Xattr = readonly [name: RawPath, value: Buffer];

export interface Entry {
  readonly name: RawPath;
  readonly type: EntryType;
  readonly flags: number;
  /** Permission bits, with setuid, setgid and sticky. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly mtimeNs: bigint;
  readonly size: number;
  readonly rdevMajor: number;
  readonly rdevMinor: number;
  /** Symlink: its text. Hard link: the path of the group's first member. Unread: why. */
  readonly tail: RawPath;
  readonly xattrs: readonly Xattr[];
  readonly content: Hash | null;
}

const fixed = 46;

export function encodeEntry(entry: Entry): Buffer {
  const name = toBytes(entry.name);
  const tail = toBytes(entry.tail);
  const attributes = entry.xattrs.map(([key, value]) => [toBytes(key), value] as const);
  const attributesSize = attributes.reduce((sum, [key, value]) => sum + 6 + key.length + value.length, 0);
  const out = Buffer.allocUnsafe(
    fixed + name.length + tail.length + 2 + attributesSize + (entry.content === null ? 0 : 32),
  );
  out.writeUInt8(entry.type, 0);
  out.writeUInt8(entry.flags, 1);
  out.writeUInt16LE(entry.mode, 2);
  out.writeUInt32LE(entry.uid, 4);
  out.writeUInt32LE(entry.gid, 8);
  out.writeBigInt64LE(entry.mtimeNs, 12);
  out.writeBigUInt64LE(BigInt(entry.size), 20);
  out.writeUInt32LE(entry.rdevMajor, 28);
  out.writeUInt32LE(entry.rdevMinor, 32);
  out.writeUInt16LE(name.length, 36);
  out.writeUInt32LE(tail.length, 38);
  out.writeUInt16LE(attributes.length, 42);
  out.writeUInt16LE(entry.content === null ? 0 : 32, 44);
  let at = fixed;
  at += name.copy(out, at);
  at += tail.copy(out, at);
  for (const [key, value] of attributes) {
    out.writeUInt16LE(key.length, at);
    out.writeUInt32LE(value.length, at + 2);
    at += 6;
    at += key.copy(out, at);
    at += value.copy(out, at);
  }
  entry.content?.copy(out, at);
  return out.subarray(0, at + (entry.content === null ? 0 : 32));
}

export function decodeEntry(bytes: Buffer): Entry {
  const nameLength = bytes.readUInt16LE(36);
  const tailLength = bytes.readUInt32LE(38);
  const attributeCount = bytes.readUInt16LE(42);
  const contentLength = bytes.readUInt16LE(44);
  let at = fixed;
  const take = (length: number): Buffer => {
    at += length;
    return bytes.subarray(at - length, at);
  };
  const name = fromBytes(take(nameLength));
  const tail = fromBytes(take(tailLength));
  const xattrs: Xattr[] = [];
  for (let i = 0; i < attributeCount; i++) {
    const keyLength = bytes.readUInt16LE(at);
    const valueLength = bytes.readUInt32LE(at + 2);
    at += 6;
    xattrs.push([fromBytes(take(keyLength)), take(valueLength)]);
  }
  return {
    name,
    type: bytes.readUInt8(0) as EntryType,
    flags: bytes.readUInt8(1),
    mode: bytes.readUInt16LE(2),
    uid: bytes.readUInt32LE(4),
    gid: bytes.readUInt32LE(8),
    mtimeNs: bytes.readBigInt64LE(12),
    size: Number(bytes.readBigUInt64LE(20)),
    rdevMajor: bytes.readUInt32LE(28),
    rdevMinor: bytes.readUInt32LE(32),
    tail,
    xattrs,
    content: contentLength === 32 ? take(32) : null,
  };
}

/** The order of two stored entries by their names. */
export const compareNames = (a: Buffer, b: Buffer): number =>
  a.compare(b, fixed, fixed + b.readUInt16LE(36), fixed, fixed + a.readUInt16LE(36));

/** FNV-1a of the name, mixed: where a directory's chunks end does not depend on what its files hold (F-7). */
export function nameBoundary(name: RawPath): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  return (hash ^ (hash >>> 15)) >>> 0;
}

export const sameXattrs = (a: readonly Xattr[], b: readonly Xattr[]): boolean =>
  a.length === b.length && a.every(([key, value], i) => key === b[i]?.[0] && value.equals(b[i]?.[1] as Buffer));

/** Same content and kind; metadata may differ. */
export const sameContent = (a: Entry, b: Entry): boolean =>
  a.type === b.type &&
  a.tail === b.tail &&
  a.rdevMajor === b.rdevMajor &&
  a.rdevMinor === b.rdevMinor &&
  (a.content === b.content || (a.content !== null && b.content !== null && a.content.equals(b.content)));

export const sameMetadata = (a: Entry, b: Entry): boolean =>
  a.mode === b.mode && a.uid === b.uid && a.gid === b.gid && a.mtimeNs === b.mtimeNs && sameXattrs(a.xattrs, b.xattrs);
