// The portable scanner's tree as bytes, for the next process.
import { createHash } from "node:crypto";
import { makeBreather } from "../../breathe.ts";
import { decodeEntry, encodeEntry } from "./entry.ts";
import type { ScannedEntry } from "./portable-scan.ts";

const version = 2;
type Row = [entry: string, dev: string, ino: string, ctimeNs: string, nlink: number, settled: 0 | 1, children: number];

const digestOf = (body: string): string => createHash("sha256").update(body).digest("hex");

/** In post-order: a directory's `children` counts the rows right before it that belong to it. */
export async function saveTree(root: ScannedEntry): Promise<Uint8Array> {
  const rows: Row[] = [];
  const breathe = makeBreather();
  const add = async (entry: ScannedEntry): Promise<void> => {
    for (const child of entry.children?.entries ?? []) await add(child);
    rows.push([
      encodeEntry(entry).toString("base64"),
      entry.dev,
      `${entry.ino}`,
      `${entry.ctimeNs}`,
      entry.nlink,
      entry.settled ? 1 : 0,
      entry.children === null ? -1 : entry.children.entries.length,
    ]);
    await breathe();
  };
  await add(root);
  const body = JSON.stringify({ version, rows });
  return Buffer.from(`${digestOf(body)}\n${body}`);
}

export function loadTree(image: Uint8Array, unsettledFromNs: bigint | null): ScannedEntry | undefined {
  try {
    const text = Buffer.from(image).toString("utf8");
    const body = text.slice(65);
    if (digestOf(body) !== text.slice(0, 64)) return undefined;
    const { version: written, rows } = JSON.parse(body) as { version: number; rows: Row[] };
    if (written !== version) return undefined;
    const stack: ScannedEntry[] = [];
    for (const [bytes, dev, ino, ctimeNs, nlink, settled, count] of rows) {
      const entry = decodeEntry(Buffer.from(bytes, "base64"));
      const children =
        count < 0 ? null : { entries: stack.splice(stack.length - count, count), hash: entry.content as Buffer };
      const known = settled === 1 && (unsettledFromNs === null || BigInt(ctimeNs) < unsettledFromNs);
      stack.push({ ...entry, dev, ino: BigInt(ino), ctimeNs: BigInt(ctimeNs), nlink, settled: known, children });
    }
    return stack[0];
  } catch {
    return undefined;
  }
}
