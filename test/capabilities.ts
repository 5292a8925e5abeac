// What this machine can do. A test that needs something says so; what AGENTREWIND_REQUIRE names may not be missing.
import { loadNative } from "../src/native.ts";

const required = new Set((process.env.AGENTREWIND_REQUIRE ?? "").split(",").filter((name) => name !== ""));

const present = {
  native: loadNative().native !== null,
  root: process.getuid?.() === 0,
  /** May mount a tmpfs. */
  tmpfs: process.getuid?.() === 0 && process.platform === "linux",
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
