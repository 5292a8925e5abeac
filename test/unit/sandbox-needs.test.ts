// What doctor reads out of /proc for a sandbox.
import { expect, test } from "vitest";
import { cgroup1Mount, cgroup2Mount, mountTable } from "../../src/environment/sandbox/mount-table.ts";
import { missingCapabilities } from "../../src/environment/sandbox/needs.ts";

test("control groups are found wherever they are mounted", () => {
  const beside = [
    "30 22 0:27 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755",
    "34 30 0:31 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory",
    "40 30 0:37 / /sys/fs/cgroup/my\\040own rw,relatime shared:9 - cgroup2 cgroup2 rw",
  ];
  const table = mountTable(beside.join("\n"));
  expect(cgroup2Mount(table)).toBe("/sys/fs/cgroup/my own");
  expect(cgroup2Mount(table.slice(0, 2))).toBeUndefined();
  expect(cgroup1Mount("memory", table)).toBe("/sys/fs/cgroup/memory");
  expect(cgroup1Mount("pids", table)).toBeUndefined();
});

test("missing capabilities have their names", () => {
  expect(missingCapabilities((1n << 41n) - 1n)).toEqual([]);
  expect(missingCapabilities(((1n << 41n) - 1n) ^ (1n << 21n) ^ (1n << 40n))).toEqual([
    "CAP_SYS_ADMIN",
    "CAP_CHECKPOINT_RESTORE",
  ]);
});
