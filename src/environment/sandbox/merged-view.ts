// A look at folders as an overlay would show them, which nobody can write to.
import { randomBytes } from "node:crypto";
import { mkdirSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import type { Native } from "../../native.ts";
import { makeFolder } from "../../store/io.ts";
import { escaped } from "./view.ts";

const detach = 2;
const readOnly = 1;

/**
 * @param scratch host folder for mount points of ours
 * @param folders at least two, the topmost first
 */
export async function withMerged<T>(
  native: Native,
  scratch: string,
  folders: readonly string[],
  work: (view: string) => Promise<T>,
): Promise<T> {
  makeFolder(scratch, 0o700);
  const view = join(scratch, `view-${randomBytes(6).toString("hex")}`);
  mkdirSync(view, { mode: 0o700 });
  const target = Buffer.from(view);
  const overlay = Buffer.from("overlay");
  try {
    await native.mount(overlay, target, overlay, readOnly, Buffer.from(`lowerdir=${folders.map(escaped).join(":")}`));
    try {
      return await work(view);
    } finally {
      await native.unmount(target, detach);
    }
  } finally {
    rmdirSync(view);
  }
}
