// What of a store is alive, and what gc could give back. Looks only.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { makeBreather } from "../breathe.ts";
import { Census } from "./census.ts";
import type { Sql } from "./database.ts";
import { deadBytes, packsWithDeadRanges } from "./dead-ranges.ts";
import { allocatedBytes } from "./io.ts";
import type { Layout } from "./layout.ts";
import type { ObjectReader } from "./objects.ts";
import type { Kind } from "./reach.ts";
import { packsToGiveBack } from "./rewrite.ts";
import { markReachable } from "./roots.ts";

export interface Survey {
  /** Packs and their bytes on the disk. */
  readonly packs: number;
  readonly packBytes: number;
  /** Bytes of objects that a checkpoint needs. */
  readonly liveBytes: number;
  /** What gc would give back now, about. */
  readonly reclaimableBytes: number;
  /** Files among the packs that no row names. */
  readonly orphans: readonly string[];
}

/** @throws the reason of the signal; STORE_CORRUPT */
export async function survey(
  sql: Sql,
  layout: Layout,
  objects: ObjectReader,
  snapshots: Kind,
  signal?: AbortSignal,
): Promise<Survey> {
  const breathe = makeBreather(signal);
  const census = await Census.take(sql, breathe);
  await markReachable(sql, objects, census, snapshots, breathe);
  const live = await census.reachedBytes(breathe);
  const names = new Set(sql.prepare("SELECT name FROM pack").pluck().all() as string[]);
  const files = readdirSync(layout.packs).map((name) => ({ name, bytes: allocatedBytes(join(layout.packs, name)) }));
  const orphans = files.filter(({ name }) => !names.has(name));
  const sum = (numbers: Iterable<number>): number => [...numbers].reduce((all, one) => all + one, 0);
  const thin = packsToGiveBack(sql, live, 0.5);
  const dead = [...thin, ...packsWithDeadRanges(sql, layout, live, thin)].map((pack) =>
    deadBytes(layout, pack, live.get(pack.id) ?? 0),
  );
  return {
    packs: names.size,
    packBytes: sum(files.map(({ bytes }) => bytes)),
    liveBytes: sum(live.values()),
    reclaimableBytes: Math.max(0, sum(dead)) + sum(orphans.map(({ bytes }) => bytes)),
    orphans: orphans.map(({ name }) => name),
  };
}
