// What this machine can do. A test that needs something says so; what AGENTREWIND_REQUIRE names may not be missing.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { loadNative } from "../src/native.ts";

const required = new Set((process.env.AGENTREWIND_REQUIRE ?? "").split(",").filter((name) => name !== ""));

const isRoot = process.getuid?.() === 0;

const present = {
  native: loadNative().native !== null,
  root: isRoot,
  /** May mount a tmpfs. */
  tmpfs: isRoot && process.platform === "linux",
  fuse: isRoot && existsSync("/dev/fuse"),
  loop: isRoot && existsSync("/dev/loop-control"),
  /** A C compiler. */
  compiler: spawnSync("cc", ["--version"]).status === 0,
};

export type Capability = keyof typeof present;

/** True where the test must be skipped. Fails where the machine is known to have the capability. */
export function lacking(...needed: Capability[]): boolean {
  const missing = needed.filter((name) => !present[name]);
  const forbidden = missing.filter((name) => required.has(name));
  if (forbidden.length > 0)
    throw new Error(`AGENTREWIND_REQUIRE names ${forbidden.join(", ")}, which this machine does not offer`);
  return missing.length > 0;
}
