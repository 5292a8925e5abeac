// How the kernel's programs know cgroups and file systems: by numbers that stat does not always tell.
import { closeSync, openSync, readFileSync, readlinkSync, realpathSync } from "node:fs";
import { RewindError } from "../../errors.ts";
import { decodeEntries, type Native } from "../../native.ts";

const empty = Buffer.alloc(0);
/** Of /proc/self/ns/cgroup where the root that is seen is the real one. */
const firstNamespace = "cgroup:[4026531835]";
/** LEVELS of bpf/effects.h. */
const levels = 8;

interface Mounted {
  readonly device: string;
  readonly root: string;
  readonly point: string;
  readonly type: string;
}

/** The mount in which an open file lies, out of /proc/self/mountinfo. */
function mountOf(native: Native, path: string): Mounted & { readonly ino: bigint } {
  const fd = openSync(path, "r");
  try {
    const [entry] = decodeEntries(native.stat(fd, empty) ?? empty);
    const id = entry?.mountId ?? 0n;
    const line = readFileSync("/proc/self/mountinfo", "utf8")
      .split("\n")
      .find((one) => one.startsWith(`${id} `));
    const fields = line?.split(" ") ?? [];
    const [, , device, root, point] = fields;
    const type = fields[fields.indexOf("-") + 1];
    if (device === undefined || root === undefined || point === undefined || type === undefined)
      throw new RewindError("BAD_ARGUMENT", `The mount that holds ${path} is not in this process's table of mounts.`);
    return { device, root, point, type, ino: entry?.ino ?? 0n };
  } finally {
    closeSync(fd);
  }
}

export interface CgroupPlace {
  readonly number: bigint;
  /** How far below the root it lies; where that is not known, a range. */
  readonly least: number;
  readonly most: number;
}

/** @throws BAD_ARGUMENT where the folder is not a cgroup of version 2, or the root itself */
export function cgroupPlace(native: Native, folder: string): CgroupPlace {
  const { type, root, point, ino } = mountOf(native, folder);
  if (type !== "cgroup2") throw new RewindError("BAD_ARGUMENT", `${folder} is not a cgroup of version 2.`);
  const below = depth(realpathSync(folder)) - depth(point) + depth(root);
  if (below < 1) throw new RewindError("BAD_ARGUMENT", `${folder} is the root of all cgroups.`);
  const known = readlinkSync("/proc/self/ns/cgroup") === firstNamespace;
  return { number: ino, least: below, most: known ? below : below + levels - 1 };
}

const depth = (path: string): number => path.split("/").filter((part) => part !== "" && part !== "..").length;

export interface DevicePlace {
  /** The kernel's dev_t of the superblock: for a btrfs not st_dev, which differs from subvolume to subvolume. */
  readonly dev: number;
  /** The file system tells which inodes it changes. */
  readonly tells: 0 | 1;
}

export function devicePlace(native: Native, path: string): DevicePlace {
  const { device, type } = mountOf(native, path);
  const [major = 0, minor = 0] = device.split(":").map(Number);
  return { dev: major * 2 ** 20 + minor, tells: type === "ext4" ? 1 : 0 };
}
