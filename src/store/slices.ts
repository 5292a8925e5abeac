// Long changes of the catalog in short transactions, with pauses in which others who write get their turn.
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { type FaultPoint, fault } from "../faults.ts";
import type { Sql } from "./database.ts";
import type { LogKeeper } from "./log-keeper.ts";

const sliceMs = 2;

export interface Catalog {
  readonly sql: Sql;
  readonly keeper: LogKeeper;
}

/** One transaction, in which `work` goes on until `isOver`; the write lock is then free for as long as it was held. */
export async function writeSlice<T>(
  { sql, keeper }: Catalog,
  behind: FaultPoint,
  work: (isOver: () => boolean) => T,
): Promise<T> {
  let start = 0;
  const result = sql
    .transaction(() => {
      start = performance.now();
      return work(() => performance.now() - start > sliceMs);
    })
    .immediate();
  fault(behind);
  keeper.poke();
  await sleep(Math.max(1, performance.now() - start));
  return result;
}
