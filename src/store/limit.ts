// The soft limit of a store: how much it takes, and when that is said.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { RewindError } from "../errors.ts";
import type { Sql } from "./database.ts";
import { allocatedBytes } from "./io.ts";
import type { Layout } from "./layout.ts";

const defaultLimit = 20 * 2 ** 30;
const units: Readonly<Record<string, number>> = { "": 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30, T: 2 ** 40 };

/** In bytes; infinite where there is none. @throws BAD_ARGUMENT for an AGENTREWIND_SOFT_LIMIT that is no size */
export function softLimitOf(given: number | undefined, env: NodeJS.ProcessEnv = process.env): number {
  const limit = given ?? parseSize(env.AGENTREWIND_SOFT_LIMIT);
  return limit === 0 ? Number.POSITIVE_INFINITY : (limit ?? defaultLimit);
}

function parseSize(text: string | undefined): number | undefined {
  if (text === undefined || text.trim() === "") return undefined;
  const match = /^(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?$/i.exec(text.trim());
  if (match !== null) return Number(match[1]) * (units[(match[2] as string).toUpperCase()] as number);
  throw new RewindError("BAD_ARGUMENT", `AGENTREWIND_SOFT_LIMIT is "${text.slice(0, 40)}", which is no size.`, {
    hint: "Write bytes or a unit, as in 500M or 20G; 0 for no limit.",
  });
}

/** Bytes that packs and catalog take of the disk; a look at each pack. */
export function storeBytes(layout: Layout): number {
  const files = [layout.catalog, ...readdirSync(layout.packs).map((name) => join(layout.packs, name))];
  return files.reduce((sum, path) => sum + allocatedBytes(path), 0);
}

const warned = new Set<string>();

/** Says once in this process that the store has grown beyond its limit. */
export function warnAbove(limit: number, sql: Sql, layout: Layout): void {
  if (limit === Number.POSITIVE_INFINITY || warned.has(layout.root)) return;
  // It is asked after every turn: no pack takes more than it is long, so most of the time none has to be looked at.
  const atMost = sql.prepare("SELECT coalesce(sum(length), 0) FROM pack").pluck().get() as number;
  if (atMost + allocatedBytes(layout.catalog) <= limit) return;
  const bytes = storeBytes(layout);
  if (bytes <= limit) return;
  warned.add(layout.root);
  process.emitWarning(limitMessage(layout.root, bytes, limit), "AgentRewindWarning");
}

export function limitMessage(store: string, bytes: number, limit: number): string {
  const size = (count: number): string =>
    count < 2 ** 30 ? `${(count / 2 ** 20).toFixed(1)} MiB` : `${(count / 2 ** 30).toFixed(1)} GiB`;
  return `The store ${store} takes ${size(bytes)}, more than its soft limit of ${size(limit)}. Run \`agentrewind prune --keep-last 100\` in its workspaces, or raise AGENTREWIND_SOFT_LIMIT.`;
}
