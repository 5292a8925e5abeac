// The kernel's table of mounts, /proc/self/mountinfo.
import { readFileSync } from "node:fs";

export interface MountLine {
  /** Absolute path. */
  readonly point: string;
  readonly type: string;
  /** The device, or what the file system calls its source. */
  readonly source: string;
  /** Of this mount: "noatime", … */
  readonly mountOptions: readonly string[];
  /** Of the file system: "ro" when it writes nothing any more, … */
  readonly options: readonly string[];
}

/** In the order in which they were mounted; what comes later lies on top. */
export function mountTable(mountinfo = readFileSync("/proc/self/mountinfo", "utf8")): MountLine[] {
  return mountinfo
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const fields = line.split(" ");
      // Optional fields come before the hyphen.
      const end = fields.indexOf("-");
      return {
        point: unescape8(fields[4] ?? "/"),
        type: fields[end + 1] ?? "",
        source: unescape8(fields[end + 2] ?? ""),
        mountOptions: (fields[5] ?? "").split(","),
        options: (fields[end + 3] ?? "").split(","),
      };
    });
}

/** Octal escapes of the kernel's tables. */
const unescape8 = (text: string): string =>
  text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));

/** The topmost mount at exactly this path (absolute, without links). */
export const mountAt = (path: string, table = mountTable()): MountLine | undefined =>
  table.findLast(({ point }) => point === path);

/** Where cgroup v2 is mounted, also beside the hierarchies of version 1; undefined where it is not. */
export const cgroup2Mount = (table = mountTable()): string | undefined =>
  table.find(({ type }) => type === "cgroup2")?.point;

/** Where the hierarchy of version 1 with this controller is mounted. */
export const cgroup1Mount = (controller: string, table = mountTable()): string | undefined =>
  table.find(({ type, options }) => type === "cgroup" && options.includes(controller))?.point;
