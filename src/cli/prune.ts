// `prune`: gives up checkpoints by number and age, and gives their room back.
import { RewindError } from "../errors.ts";
import { type Pruned, type PruneRequest, parseDuration } from "../session/prune.ts";
import { layoutOf } from "../store/layout.ts";
import { giveReserve } from "../store/reserve.ts";
import type { Paint } from "../text/paint.ts";
import { oneLine } from "../text/safe.ts";
import { plural } from "../text/words.ts";
import { collectedLines } from "./gc.ts";
import type { Global } from "./global.ts";
import type { Output } from "./output.ts";
import { give } from "./writer.ts";

export interface PruneOptions {
  readonly keepLast?: string;
  readonly keepWithin?: string;
  readonly dryRun?: boolean;
}

const idsShown = 12;

/** @throws BAD_ARGUMENT */
export async function prune(global: Global, options: PruneOptions): Promise<Output> {
  const request = toRequest(global, options);
  // On a full disk the store could not even be opened.
  if (request.dryRun !== true) giveReserve(layoutOf(global.store));
  const pruned = await give<Pruned>(global, {
    command: "prune",
    arguments: { ...request },
    here: (_, rewind) => rewind.prune(request),
    begins: false,
  });
  return {
    json: { ...pruned, dryRun: request.dryRun === true },
    text: (paint) => prunedLines(pruned, request.dryRun === true, paint),
  };
}

function toRequest(global: Global, { keepLast, keepWithin, dryRun }: PruneOptions): PruneRequest {
  if (keepLast === undefined && keepWithin === undefined) {
    throw new RewindError("BAD_ARGUMENT", "Nothing says what is to be kept.", {
      hint: "Give --keep-last N, --keep-within 7d, or both.",
    });
  }
  if (keepLast !== undefined && !/^\d{1,9}$/.test(keepLast)) {
    throw new RewindError("BAD_ARGUMENT", `"${keepLast}" is not a number of checkpoints.`, {
      hint: "Write a whole number, as in --keep-last 100.",
    });
  }
  if (keepWithin !== undefined) parseDuration(keepWithin);
  return {
    ...(keepLast === undefined ? {} : { keepLast: Number(keepLast) }),
    ...(keepWithin === undefined ? {} : { keepWithin }),
    ...(global.thread === undefined ? {} : { threads: [global.thread] }),
    ...(dryRun === true ? { dryRun } : {}),
  };
}

function prunedLines({ pruned, kept, gc }: Pruned, dryRun: boolean, paint: Paint): string[] {
  const names = pruned.slice(0, idsShown).map(({ thread, id }) => oneLine(`${thread}/${id}`, 60));
  const rest = pruned.length - names.length;
  const which = pruned.length === 0 ? "" : `: ${names.join(", ")}${rest > 0 ? ` and ${rest} more` : ""}`;
  return [
    `${dryRun ? "Would prune" : "Pruned"} ${plural(pruned.length, "checkpoint")}${which}. ${dryRun ? "Would keep" : "Kept"} ${kept}.`,
    ...(gc === null
      ? [dryRun ? "Nothing was changed: this was a dry run." : "Another process is cleaning up the store just now."]
      : collectedLines(gc, paint)),
  ];
}
