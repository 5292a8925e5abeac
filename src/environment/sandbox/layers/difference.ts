// Decodes what the addon tells of two trees (native/core/tree-difference.hpp).
import { makeBreather } from "../../../breathe.ts";
import { type LayerDifference, type LayerEntry, workSuffix } from "./layers.ts";

const types: readonly LayerEntry["type"][] = ["file", "directory", "symlink", "whiteout", "other"];
const field = { pathLength: 4, metadataOnly: 8, from: 12, to: 52, path: 92 } as const;

export function decodeSide(records: Buffer, at: number): LayerEntry | null {
  const type = types[records.readUInt8(at) - 1];
  if (type === undefined) return null;
  return {
    type,
    opaque: records.readUInt8(at + 1) === 1,
    mode: records.readUInt32LE(at + 4),
    uid: records.readUInt32LE(at + 8),
    gid: records.readUInt32LE(at + 12),
    size: Number(records.readBigUInt64LE(at + 16)),
    mtimeNs: records.readBigInt64LE(at + 24),
    inode: records.readBigUInt64LE(at + 32),
  };
}

export async function* decodeDifferences(records: Buffer): AsyncGenerator<LayerDifference> {
  const breathe = makeBreather();
  for (let at = 0; at < records.length; ) {
    const length = records.readUInt32LE(at);
    const pathEnd = at + field.path + records.readUInt32LE(at + field.pathLength);
    if (pathEnd > at + length || at + length > records.length) throw new RangeError(`damaged record at byte ${at}`);
    const path = records.toString("latin1", at + field.path, pathEnd);
    if (path !== "" && !isScratch(path)) {
      yield {
        path,
        before: decodeSide(records, at + field.from),
        after: decodeSide(records, at + field.to),
        differs: records.readUInt8(at + field.metadataOnly) === 1 ? "metadata" : "content",
      };
    }
    at += length;
    const pause = breathe();
    if (pause !== undefined) await pause;
  }
}

/** Nothing differs but the workdirs of overlays, and what `besides` is true of. */
export async function areSame(records: Buffer, besides?: (one: LayerDifference) => boolean): Promise<boolean> {
  for (let at = 0; at < records.length; at += records.readUInt32LE(at)) {
    const pathEnd = at + field.path + records.readUInt32LE(at + field.pathLength);
    const path = records.toString("latin1", at + field.path, pathEnd);
    // "" is the live folder itself, which no difference tells of.
    if (!isScratch(path) && (besides === undefined || path === "")) return false;
  }
  for await (const one of decodeDifferences(records)) if (besides?.(one) !== true) return false;
  return true;
}

/** An overlay's workdir, or in it. */
export const isScratch = (path: string): boolean => (path.split("/", 1)[0] as string).endsWith(workSuffix);
