// What this machine can do. A test that needs something says so; what AGENTREWIND_REQUIRE names may not be missing.
import { spawnSync } from "node:child_process";
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { probeEbpf } from "../src/inspector/ebpf/probe.ts";
import { loadNative } from "../src/native.ts";
import { python, pythonPath } from "./helpers/python.ts";
import { tools } from "./helpers/tools.ts";

const required = new Set((process.env.AGENTREWIND_REQUIRE ?? "").split(",").filter((name) => name !== ""));

const isRoot = process.getuid?.() === 0;

const present = {
  native: () => loadNative().native !== null,
  root: () => isRoot,
  /** Changes of a file system can be watched. */
  watcher: () => tryInFolder((folder) => probeWatch(folder)),
  /** May mount a tmpfs. */
  tmpfs: () => isRoot && process.platform === "linux",
  fuse: () => isRoot && existsSync("/dev/fuse"),
  loop: () => isRoot && existsSync("/dev/loop-control"),
  /** May make and mount a btrfs, or an XFS. */
  btrfs: () => isRoot && existsSync("/dev/loop-control") && knows("btrfs") && tools().mkfsBtrfs.tool !== null,
  xfs: () => isRoot && existsSync("/dev/loop-control") && spawnSync("mkfs.xfs", ["-V"]).status === 0,
  /** Dumps processes and brings them back. */
  criu: () => tools().criu.tool !== null,
  overlay: () => isRoot && knows("overlay"),
  cgroup2: () => isRoot && /^(?:\S+ ){6}.*- cgroup2 /m.test(readFileSync("/proc/self/mountinfo", "utf8")),
  /** The kernel takes programs that watch effects. */
  ebpf: () => probeEbpf().status === "available",
  /** May make namespaces of processes, mounts, IPC and names. */
  namespaces: () =>
    isRoot && spawnSync("unshare", ["--mount", "--pid", "--ipc", "--uts", "--fork", "true"]).status === 0,
  /** A C compiler. */
  compiler: () => spawnSync("cc", ["--version"]).status === 0,
  /** A compiler for the kernel's programs. */
  clang: () => spawnSync(process.env.CLANG ?? "clang", ["--version"]).status === 0,
  python: () => pythonPath() !== null,
  /** Packages can be had from the archive of Debian or Ubuntu. */
  archive: () =>
    isRoot &&
    tryInFolder((folder) => {
      const apart = [
        "-o",
        `Dir::State::lists=${folder}`,
        "-o",
        "Acquire::Retries=2",
        "-o",
        "Acquire::http::Timeout=10",
      ];
      if (spawnSync("apt-get", ["-qq", ...apart, "update"], { timeout: 60_000 }).status !== 0) throw new Error("none");
    }),
  /** Temporary files can be made immutable. */
  immutable: () => isRoot && pythonPath() !== null && tryInFolder((folder) => setAndClear(folder)),
  /** Temporary files take trusted attributes, ACLs and file capabilities. */
  attributes: () =>
    isRoot &&
    pythonPath() !== null &&
    tryInFolder((folder) => {
      python("inode.py", "setxattr", folder, "trusted.try", "00");
      python("inode.py", "setxattr", folder, "user.try", "00");
    }),
};

const knows = (fileSystem: string): boolean =>
  readFileSync("/proc/filesystems", "utf8").split(/\s+/).includes(fileSystem);

function probeWatch(folder: string): void {
  const { native } = loadNative();
  const fd = openSync(folder, "r");
  try {
    if (native === null || native.probeWatch(fd) !== null) throw new Error("no watcher");
  } finally {
    closeSync(fd);
  }
}

function setAndClear(folder: string): void {
  python("inode.py", "flags", "+i", folder);
  python("inode.py", "flags", "-i", folder);
}

function tryInFolder(attempt: (folder: string) => void): boolean {
  const folder = mkdtempSync(join(tmpdir(), "agentrewind-try-"));
  try {
    attempt(folder);
    return true;
  } catch {
    return false;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

export type Capability = keyof typeof present;

const known = new Map<Capability, boolean>();

function has(name: Capability): boolean {
  const found = known.get(name) ?? present[name]();
  known.set(name, found);
  return found;
}

/** True where the test must be skipped. Fails where the machine is known to have the capability. */
export function lacking(...needed: Capability[]): boolean {
  const missing = needed.filter((name) => !has(name));
  const forbidden = missing.filter((name) => required.has(name));
  if (forbidden.length > 0)
    throw new Error(`AGENTREWIND_REQUIRE names ${forbidden.join(", ")}, which this machine does not offer`);
  return missing.length > 0;
}
