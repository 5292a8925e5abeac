// What killed owners of a store's sandboxes left on this machine: found by verify and doctor, removed by `doctor --clean`.
import { realpathSync } from "node:fs";
import { findOrphans, type Orphan } from "./environment/sandbox/orphans.ts";
import { loadNative } from "./native.ts";
import type { Finding } from "./session/verify.ts";
import { isHeld } from "./store/control.ts";
import type { Layout } from "./store/layout.ts";
import { type Lock, tryLock } from "./store/lock.ts";

/**
 * Looks only. Empty where this user could have made no sandbox.
 * @param sandboxes ids of all sandboxes of the store
 * @param own the one that this process holds
 */
export async function orphansOf(layout: Layout, sandboxes: readonly string[], own?: string): Promise<Orphan[]> {
  const idle: string[] = [];
  for (const id of sandboxes) if (id !== own && !(await isHeld(layout.locks, id))) idle.push(id);
  return found(layout, idle, sandboxes);
}

export const asFindings = (orphans: readonly Orphan[]): Finding[] =>
  orphans.map(({ path, problem }) => ({ kind: "orphan", where: path, problem }));

export interface Cleaned {
  readonly removed: readonly string[];
  readonly left: readonly { readonly path: string; readonly reason: string }[];
}

/** Removes them; sandboxes that somebody holds are left alone, and nobody can open the others meanwhile. */
export async function cleanOrphans(layout: Layout, sandboxes: readonly string[]): Promise<Cleaned> {
  const locks = new Map<string, Lock>();
  const removed: string[] = [];
  const left: Cleaned["left"][number][] = [];
  try {
    for (const id of sandboxes) {
      const lock = tryLock(layout.locks, id);
      if (lock !== undefined) locks.set(id, lock);
    }
    for (const orphan of found(layout, [...locks.keys()], sandboxes)) {
      try {
        await orphan.remove();
        removed.push(orphan.path);
      } catch (error) {
        left.push({ path: orphan.path, reason: (error as Error).message });
      }
    }
    return { removed, left };
  } finally {
    for (const lock of locks.values()) lock.release();
  }
}

function found(layout: Layout, idle: readonly string[], all: readonly string[]): Orphan[] {
  const { native } = loadNative();
  if (native === null || process.getuid?.() !== 0 || all.length === 0) return [];
  return findOrphans({ native, store: realpathSync(layout.root), idle, isQuiet: idle.length === all.length });
}
