// The composition root of gc: the store's own work, with what knows how a directory is stored.
import { removeLeftOverAt } from "./bundle/arrivals.ts";
import { snapshotKind } from "./environment/directory/reach.ts";
import { isRewindError } from "./errors.ts";
import { loadNative } from "./native.ts";
import { askHolder } from "./store/control.ts";
import { type Collected, collect, type GcOptions } from "./store/gc.ts";
import type { Layout } from "./store/layout.ts";

/** @throws GC_RUNNING, STORE_CORRUPT, DISK_FULL, and the signal's reason */
export async function collectStore(
  layout: Layout,
  options: Omit<GcOptions, "layout" | "snapshots" | "punchHole">,
): Promise<Collected> {
  await removeLeftOverAt(layout.root);
  return collect({ layout, snapshots: snapshotKind, punchHole: loadNative().native?.punchHole ?? null, ...options });
}

const sealMs = 2_000;

/** False when the holder does not do it soon: its packs are left alone this time. */
export async function askHolderToSeal(locks: string, environment: string): Promise<boolean> {
  const asked = askHolder(locks, environment, { command: "seal", arguments: {} }).then(
    (answer) => answer?.ok === true,
    () => false,
  );
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), sealMs);
  });
  try {
    return await Promise.race([asked, late]);
  } finally {
    clearTimeout(timer);
  }
}

/** What a gc gave back; null when another one runs. */
export async function unlessRunning(gc: Promise<Collected>): Promise<Collected | null> {
  try {
    return await gc;
  } catch (error) {
    if (isRewindError(error, "GC_RUNNING")) return null;
    throw error;
  }
}
