// Packs that stay although part of them is dead: the room of what is dead goes back to the disk without a copy (F-39).
import { closeSync } from "node:fs";
import { join } from "node:path";
import type { Breathe } from "../breathe.ts";
import { systemCode } from "../errors.ts";
import { fault } from "../faults.ts";
import { objectRows } from "./census.ts";
import type { Sql } from "./database.ts";
import { allocatedBytes, freeRange, openForWriting, type PunchHole } from "./io.ts";
import type { Layout } from "./layout.ts";
import type { Pack } from "./rewrite.ts";
import { syncLog } from "./store.ts";

const pageSize = 4096;
/** Dead bytes of a pack that are worth the work. */
const deadWanted = 1 << 20;
/** Packs that are looked at together: 64 KiB for each. */
const packsAtOnce = 128;

/** Packs of which much is dead and still on the disk, besides those that are rewritten. */
export function packsWithDeadRanges(
  sql: Sql,
  layout: Layout,
  reachedBytes: ReadonlyMap<number, number>,
  besides: readonly Pack[],
): Pack[] {
  const others = new Set(besides.map((pack) => pack.id));
  const packs = sql.prepare("SELECT id, name, environment, length, sealed FROM pack ORDER BY id").all() as Pack[];
  return packs.filter(
    (pack) => !others.has(pack.id) && deadBytes(layout, pack, reachedBytes.get(pack.id) ?? 0) >= deadWanted,
  );
}

export function deadBytes(layout: Layout, pack: Pick<Pack, "name">, reached: number): number {
  return allocatedBytes(join(layout.packs, pack.name)) - reached;
}

/** Of sealed packs whose dead rows are gone and were waited for (F-33). False where the file system cannot. @throws what the disk says */
export async function freeDeadRanges(
  sql: Sql,
  layout: Layout,
  packs: readonly Pack[],
  punchHole: PunchHole,
  breathe: Breathe,
): Promise<boolean> {
  for (let at = 0; at < packs.length; at += packsAtOnce) {
    const some = packs.slice(at, at + packsAtOnce);
    const pages = await pagesInUse(sql, some, breathe);
    // After a power loss no row may name what is gone.
    await syncLog(layout.catalog);
    for (const pack of some) {
      if (!(await freePages(join(layout.packs, pack.name), pages.get(pack.id) as Uint8Array, punchHole, breathe)))
        return false;
    }
  }
  return true;
}

/** For each pack: which of its pages hold bytes that a row names. The first holds the magic bytes. */
async function pagesInUse(sql: Sql, packs: readonly Pack[], breathe: Breathe): Promise<Map<number, Uint8Array>> {
  const pages = new Map(
    packs.map((pack) => [pack.id, new Uint8Array(Math.ceil(pack.length / pageSize)).fill(1, 0, 1)]),
  );
  for await (const { pack, offset, length } of objectRows(sql, breathe)) {
    pages.get(pack)?.fill(1, Math.floor(offset / pageSize), Math.ceil((offset + length) / pageSize));
  }
  return pages;
}

async function freePages(path: string, pages: Uint8Array, punchHole: PunchHole, breathe: Breathe): Promise<boolean> {
  const fd = openForWriting(path, "r+");
  try {
    for (let from = pages.indexOf(0); from >= 0; ) {
      const next = pages.indexOf(1, from);
      const end = next < 0 ? pages.length : next;
      freeRange(punchHole, fd, from * pageSize, (end - from) * pageSize);
      fault("gc.range-freed");
      await breathe();
      from = pages.indexOf(0, end);
    }
    return true;
  } catch (error) {
    if (["EOPNOTSUPP", "ENOTSUP", "ENOSYS"].includes(systemCode(error) ?? "")) return false;
    throw error;
  } finally {
    closeSync(fd);
  }
}
