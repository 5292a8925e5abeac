// Files of the machine below a sandbox that its processes have open or mapped: CRIU compares their sizes only, and takes another content for the same.
import { createHash } from "node:crypto";
import { closeSync, constants, fstatSync } from "node:fs";
import { join } from "node:path";
import type { Native } from "../../native.ts";
import type { RawPath } from "../directory/names.ts";
import type { Program } from "../environment.ts";
import { readFile } from "./layers/read-all.ts";
import { absentAsNull, type Lower, openLower } from "./lower.ts";
import { readImage } from "./processes/images.ts";
import { file } from "./processes/messages.ts";

/** A folder of the host, as what it is seen inside. */
export interface Below {
  readonly path: string;
  readonly lower: string;
  /** Of the overlay. */
  readonly name: string;
}

/** What a sandbox has of its own, or has anew. */
const own = ["/proc", "/sys", "/dev", "/tmp", "/run/agentrewind"];

/** Absolute paths of regular files and folders, as CRIU names them. */
export async function openFiles(images: string): Promise<string[]> {
  const files = (await readImage(file, join(images, "files.img"))) ?? [];
  const names = files.flatMap(({ reg }) => (reg?.name === undefined ? [] : [reg.name]));
  return [...new Set(names)].filter((name) => name.startsWith("/")).sort();
}

/** The overlay through which a path is seen; undefined for what a sandbox has of its own. */
export function overlayOf<T extends Pick<Below, "path">>(overlays: readonly T[], path: string): T | undefined {
  const isBelow = (folder: string): boolean => path === folder || path.startsWith(folder === "/" ? "/" : `${folder}/`);
  const found = overlays.filter((one) => isBelow(one.path)).sort((a, b) => b.path.length - a.path.length)[0];
  return found?.path === "/" && own.some(isBelow) ? undefined : found;
}

export const belowOf = (overlay: Pick<Below, "path">, path: string): string =>
  path.slice(overlay.path === "/" ? 1 : overlay.path.length + 1);

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
      const overlay = overlayOf(overlays, path);
      if (overlay === undefined) continue;
      const lower = lowers.get(overlay.lower) ?? openLower(native, overlay.lower);
      lowers.set(overlay.lower, lower);
      const program = await digestOf(lower, belowOf(overlay, path));
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
