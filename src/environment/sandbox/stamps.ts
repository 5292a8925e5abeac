// Stamps of a folder (native/core/stamps.hpp): which paths somebody changed between two looks at it.
import { closeSync, constants, openSync } from "node:fs";
import { makeBreather } from "../../breathe.ts";
import type { Native } from "../../native.ts";
import { fromBytes, type RawPath, toBytes } from "../directory/names.ts";

export type Stamps = Buffer;

/** @param below path of what is looked at, below `folder` */
export async function takeStamps(native: Native, folder: string, below: RawPath): Promise<Stamps> {
  const root = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    return await native.stampTree(root, toBytes(below));
  } finally {
    closeSync(root);
  }
}

/** Paths below `folder` that came, went or changed, in the order of the newer one; those that went come last. */
export async function changedStamps(before: Stamps, after: Stamps): Promise<RawPath[]> {
  if (before.equals(after)) return [];
  const breathe = makeBreather();
  const known = new Map<RawPath, bigint>();
  for (const [path, stamp] of entries(before)) {
    known.set(path, stamp);
    const pause = breathe();
    if (pause !== undefined) await pause;
  }
  const changed: RawPath[] = [];
  for (const [path, stamp] of entries(after)) {
    if (known.get(path) !== stamp) changed.push(path);
    known.delete(path);
    const pause = breathe();
    if (pause !== undefined) await pause;
  }
  return [...changed, ...known.keys()];
}

/** `base`, with the stamps that `now` has of the paths that `isTaken` is true of. */
export function mergedStamps(base: Stamps, now: Stamps, isTaken: (path: RawPath) => boolean): Stamps {
  const kept = [...records(base)].filter(({ path }) => !isTaken(path));
  const taken = [...records(now)].filter(({ path }) => isTaken(path));
  return Buffer.concat([...kept, ...taken].map(({ bytes }) => bytes));
}

function* entries(stamps: Stamps): Generator<[RawPath, bigint]> {
  for (const { path, bytes } of records(stamps)) yield [path, bytes.readBigUInt64LE(bytes.length - 8)];
}

function* records(stamps: Stamps): Generator<{ path: RawPath; bytes: Buffer }> {
  for (let at = 0; at < stamps.length; ) {
    const length = stamps.readUInt32LE(at);
    const bytes = stamps.subarray(at, at + 12 + length);
    yield { path: fromBytes(bytes.subarray(4, 4 + length)), bytes };
    at += bytes.length;
  }
}
