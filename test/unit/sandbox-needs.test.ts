// What doctor reads out of /proc for a sandbox.
import { expect, test } from "vitest";
import { cgroup2Mount, missingCapabilities } from "../../src/environment/sandbox/needs.ts";

test("cgroup v2 is found wherever it is mounted", () => {
  const beside = [
    "30 22 0:27 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755",
    "34 30 0:31 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory",
    "40 30 0:37 / /sys/fs/cgroup/my\\040own rw,relatime shared:9 - cgroup2 cgroup2 rw",
  ];
  expect(cgroup2Mount(beside.join("\n"))).toBe("/sys/fs/cgroup/my own");
  expect(cgroup2Mount(beside.slice(0, 2).join("\n"))).toBeNull();
});

test("missing capabilities have their names", () => {
  expect(missingCapabilities((1n << 41n) - 1n)).toEqual([]);
  expect(missingCapabilities(((1n << 41n) - 1n) ^ (1n << 21n) ^ (1n << 40n))).toEqual([
    "CAP_SYS_ADMIN",
    "CAP_CHECKPOINT_RESTORE",
  ]);
});
