// What CRIU finds out about the kernel, asked once a boot and version and kept in a file that a sandbox shows it as /run/criu.kdat.
import { createHash, randomUUID } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { RewindError } from "../../../errors.ts";
import { criuLibrary } from "../program.ts";
import { runProgram } from "../run.ts";
import type { CriuProgram } from "./criu-channel.ts";

export type KernelCheck =
  | { readonly reason: null; readonly features: Buffer }
  | { readonly reason: string; readonly features: null };

/**
 * Lets CRIU look at the kernel. It keeps what it found in /run, where that is a tmpfs and for every CRIU of the machine: a mount namespace of its own
 * gives it an empty one, and leaves the machine as it is.
 */
export async function checkKernel(program: CriuProgram): Promise<KernelCheck> {
  const folder = await open(program.prefix, "r");
  try {
    // What the library adds counts as what the kernel can.
    const library = criuLibrary();
    const load = library === undefined ? "" : 'exec 7<"$0" && LD_PRELOAD=/proc/self/fd/7 ';
    const script = `mount -t tmpfs none /run && ${load}"$@" >&2 && cat /run/criu.kdat`;
    const { exitCode, stdout, stderr } = await runProgram(
      ["unshare", "--mount", "sh", "-c", script, library ?? "sh", ...program.command, "check"],
      { folder: folder.fd, timeoutMs: 20_000 },
    );
    if (exitCode === 0 && stdout.length > 0) return { reason: null, features: stdout };
    return { reason: complaint(stderr), features: null };
  } finally {
    await folder.close();
  }
}

/** CRIU's first error, without the place in its source. */
function complaint(stderr: string): string {
  const lines = stderr.split("\n").filter((line) => line.trim() !== "");
  const line = lines.find((one) => one.includes("Error")) ?? lines.at(-1) ?? "it ended without a word";
  return line.replace(/^.*Error \([^)]*\): /, "").trim();
}

/** Path of the file. Made anew after a boot and for another CRIU. @throws RewindError NOT_AVAILABLE */
export async function kernelFeatures(program: CriuProgram, folder = cacheFolder()): Promise<string> {
  const boot = await bootId();
  const file = join(folder, `${start}${boot}-${await keyOf(program)}`);
  if (await isThere(file)) return file;
  const { reason, features } = await checkKernel(program);
  if (reason !== null)
    throw new RewindError("NOT_AVAILABLE", `CRIU ${program.version} does not work here: ${reason}.`, {
      hint: "`agentrewind doctor` says what is missing.",
    });
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const draft = join(folder, `.${randomUUID()}`);
  try {
    await writeFile(draft, features, { mode: 0o600, flag: "wx" });
    await rename(draft, file);
  } finally {
    await rm(draft, { force: true });
  }
  // Of this boot another CRIU's may be in use.
  for (const name of await readdir(folder)) {
    if (name.startsWith(start) && !name.startsWith(start + boot)) await rm(join(folder, name), { force: true });
  }
  return file;
}

/** Whether this CRIU has found all that it needs since the machine was started. */
export async function isKernelKnown(program: CriuProgram, folder = cacheFolder()): Promise<boolean> {
  return isThere(join(folder, `${start}${await bootId()}-${await keyOf(program)}`));
}

const start = "criu-kernel-";

/** It must not be believed after a boot, so it need not survive one. */
function cacheFolder(): string {
  const [runtime = "", cache = ""] = [process.env.XDG_RUNTIME_DIR, process.env.XDG_CACHE_HOME];
  const base = [runtime, cache].find((path) => isAbsolute(path)) ?? join(homedir(), ".cache");
  return join(base, "agentrewind");
}

const bootId = async (): Promise<string> => (await readFile("/proc/sys/kernel/random/boot_id", "utf8")).trim();

async function keyOf({ prefix, command, version }: CriuProgram): Promise<string> {
  const files = [(command.at(-1) ?? "").replace("/proc/self/fd/8", prefix), criuLibrary() ?? ""];
  const about = files.map(async (file) => {
    if (file === "") return null;
    const { ino, size, mtimeMs } = await stat(file);
    return [file, ino, size, mtimeMs];
  });
  return createHash("sha256")
    .update(JSON.stringify([version, ...(await Promise.all(about))]))
    .digest("hex")
    .slice(0, 16);
}

const isThere = (file: string): Promise<boolean> =>
  stat(file).then(
    ({ size }) => size > 0,
    () => false,
  );
