// `gc`: takes out of the store what no checkpoint needs. Of the whole store, whatever the workspace.
import { existsSync } from "node:fs";
import type { Collected } from "../store/gc.ts";
import { layoutOf, prepareLayout } from "../store/layout.ts";
import type { Paint } from "../text/paint.ts";
import { oneLine } from "../text/safe.ts";
import { bytes, plural } from "../text/words.ts";
import { askHolderToSeal, collectStore } from "../upkeep.ts";
import type { Global } from "./global.ts";
import type { Output } from "./output.ts";

export async function gc(global: Global): Promise<Output> {
  const layout = layoutOf(global.store);
  if (!existsSync(layout.catalog)) {
    return { json: null, text: () => [oneLine(`There is no store at ${global.store}, so there is nothing to do.`)] };
  }
  prepareLayout(layout);
  const collected = await collectStore(layout, {
    askToSeal: (environment) => askHolderToSeal(layout.locks, environment),
    mayBlock: true,
  });
  return { json: collected, text: (paint) => collectedLines(collected, paint) };
}

export function collectedLines(
  { objects, bytes: given, catalog, packs, leftOver, postponed }: Collected,
  paint: Paint,
): string[] {
  const parts = [
    ...(objects > 0 ? [`${plural(objects, "object")} that nothing needed`] : []),
    ...(packs.deleted > 0 ? [`${plural(packs.deleted, "pack")} deleted`] : []),
    ...(packs.rewritten > 0 ? [`${packs.rewritten} rewritten`] : []),
    ...(catalog > 0 ? [`${bytes(catalog)} of the catalog`] : []),
    ...(leftOver > 0 ? [`${plural(leftOver, "file")} of killed processes`] : []),
  ];
  const details = parts.length === 0 ? "" : ` (${parts.join(", ")})`;
  return [
    given === 0 && parts.length === 0 ? "Nothing to give back." : `Gave back ${bytes(given + catalog)}${details}.`,
    ...postponed.map((why) => paint("yellow", `Left for later: ${oneLine(why)}.`)),
  ];
}
