// Files of the machine below a sandbox that its processes have open or mapped: CRIU compares their sizes only, and takes another content for the same.
import { createHash } from "node:crypto";
import { closeSync, constants, fstatSync } from "node:fs";
import { join } from "node:path";
import type { Native } from "../../native.ts";
import type { RawPath } from "../directory/names.ts";
import type { Program } from "../environment.ts";
import { readFile } from "./layers/read-all.ts";
import { absentAsNull, type Lower, openLower } from "./lower.ts";
import { isOwn, overlayOf } from "./mount-plan.ts";
import { readImage } from "./processes/images.ts";
import { file } from "./processes/messages.ts";
import { lowersOf, type Overlay } from "./view.ts";

/** An overlay without what was kept of the host. */
export type Below = Pick<Overlay, "path" | "lower"> & Partial<Pick<Overlay, "kept">>;

/** Absolute paths of regular files and folders, as CRIU names them. */
export async function openFiles(images: string): Promise<string[]> {
  const files = (await readImage(file, join(images, "files.img"))) ?? [];
  const names = files.flatMap(({ reg }) => (reg?.name === undefined ? [] : [reg.name]));
  return [...new Set(names)].filter((name) => name.startsWith("/")).sort();
}

/** What the host has at these paths; what it does not have is left out. */
export async function programsAt(
  native: Native,
  overlays: readonly Below[],
  paths: readonly string[],
): Promise<Program[]> {
  const lowers = new Map<string, Lower>();
  const found: Program[] = [];
  try {
    for (const path of paths) {
      const { overlay, below } = overlayOf(overlays, path);
      if (isOwn(path, overlay)) continue;
      const lower = lowers.get(overlay.lower) ?? openLower(native, lowersOf(overlay));
      lowers.set(overlay.lower, lower);
      const program = await digestOf(lower, below);
      if (program !== undefined) found.push({ path, ...program });
    }
  } finally {
    for (const lower of lowers.values()) lower.close();
  }
  return found;
}

async function digestOf(lower: Lower, path: string): Promise<Omit<Program, "path"> | undefined> {
  const raw: RawPath = Buffer.from(path).toString("latin1");
  if (lower.look(raw)?.type !== "file") return undefined;
  const fd = absentAsNull(() => lower.open(raw));
  if (fd === null) return undefined;
  try {
    if ((fstatSync(fd).mode & constants.S_IFMT) !== constants.S_IFREG) return undefined;
    const digest = createHash("sha256");
    let size = 0;
    for await (const piece of readFile(fd)) {
      digest.update(piece);
      size += piece.length;
    }
    return { size, digest: digest.digest("hex") };
  } finally {
    closeSync(fd);
  }
}
