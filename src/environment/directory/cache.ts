// Keeps what the last scan knew between processes, so that the next one need not read every file again. Losing it costs time only.
import { createHash } from "node:crypto";
import { readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { makeBreather } from "../../breathe.ts";
import type { ObjectReader } from "../../store/objects.ts";
import { decodeEntry, encodeEntry } from "./entry.ts";
import type { ScannedEntry } from "./scan.ts";

const version = 1;
type Row = [entry: string, dev: string, ino: string, ctimeNs: string, settled: 0 | 1, children: number];

/** Written in post-order: a directory's `children` counts the rows right before it that belong to it. */
export async function saveCache(file: string, root: ScannedEntry): Promise<void> {
  const rows: Row[] = [];
  const breathe = makeBreather();
  const add = async (entry: ScannedEntry): Promise<void> => {
    for (const child of entry.children?.entries ?? []) await add(child);
    rows.push([
      encodeEntry(entry).toString("base64"),
      entry.dev,
      `${entry.ino}`,
      `${entry.ctimeNs}`,
      entry.settled ? 1 : 0,
      entry.children === null ? -1 : entry.children.entries.length,
    ]);
    await breathe();
  };
  await add(root);
  const body = JSON.stringify({ version, rows });
  const temporary = `${file}.${process.pid}`;
  try {
    writeFileSync(temporary, `${createHash("sha256").update(body).digest("hex")}\n${body}`, { mode: 0o600 });
    renameSync(temporary, file);
  } catch {
    rmSync(temporary, { force: true });
  }
}

export function loadCache(file: string, objects: ObjectReader): ScannedEntry | undefined {
  try {
    const text = readFileSync(file, "utf8");
    const body = text.slice(65);
    if (createHash("sha256").update(body).digest("hex") !== text.slice(0, 64)) return undefined;
    const { version: written, rows } = JSON.parse(body) as { version: number; rows: Row[] };
    if (written !== version) return undefined;
    const stack: ScannedEntry[] = [];
    for (const [bytes, dev, ino, ctimeNs, settled, count] of rows) {
      const entry = decodeEntry(Buffer.from(bytes, "base64"));
      if (entry.content !== null && !objects.has(entry.content)) return undefined;
      const children =
        count < 0 ? null : { entries: stack.splice(stack.length - count, count), hash: entry.content as Buffer };
      stack.push({ ...entry, dev, ino: BigInt(ino), ctimeNs: BigInt(ctimeNs), settled: settled === 1, children });
    }
    return stack[0];
  } catch {
    return undefined;
  }
}
