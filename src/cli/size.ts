// What a command says of a store that has grown beyond its soft limit.
import { existsSync } from "node:fs";
import { layoutOf } from "../store/layout.ts";
import { limitMessage, softLimitOf, storeBytes } from "../store/limit.ts";
import type { Global } from "./global.ts";

export function sizeWarning(global: Global): string | undefined {
  let limit: number;
  try {
    limit = softLimitOf(undefined);
  } catch (error) {
    return (error as Error).message;
  }
  const layout = layoutOf(global.store);
  if (limit === Number.POSITIVE_INFINITY || !existsSync(layout.catalog)) return undefined;
  const bytes = storeBytes(layout);
  return bytes > limit ? limitMessage(layout.root, bytes, limit) : undefined;
}
