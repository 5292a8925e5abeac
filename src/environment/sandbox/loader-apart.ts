// CRIU runs where the sandbox's files are seen, with the host's rights: its dynamic loader must not load what a sandbox's /etc/ld.so.preload names. No switch of the loader
// keeps it from that, so a copy is used in which the name of that file is another one.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { chmod, mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

const named = Buffer.from("/etc/ld.so.preload\0");
/** As long; nothing of that name can be made. */
const nowhere = Buffer.from("/proc/self/no-such\0");

/**
 * @param loader path below `prefix`
 * @param folder where the copy lies, below `prefix`
 * @returns the copy's path below `prefix`; the loader's own where it names no such file
 */
export async function loaderApart(prefix: string, loader: string, folder: string): Promise<string> {
  const bytes = await readFile(join(prefix, loader));
  let found = false;
  for (let at = bytes.indexOf(named); at >= 0; at = bytes.indexOf(named, at)) {
    nowhere.copy(bytes, at);
    found = true;
  }
  if (!found) return loader;
  const name = join(folder, `loader-${createHash("sha256").update(bytes).digest("hex").slice(0, 16)}.so`);
  const path = join(prefix, name);
  if (isThere(path, bytes)) return name;
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const unfinished = `${path}.${process.pid}`;
  try {
    await writeFile(unfinished, bytes, { mode: 0o700, flag: "wx" });
    await chmod(unfinished, 0o755);
    await rename(unfinished, path);
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  }
  return name;
}

function isThere(path: string, bytes: Buffer): boolean {
  try {
    return readFileSync(path).equals(bytes);
  } catch {
    return false;
  }
}
