// How the processes of this machine are seen.
import { existsSync } from "node:fs";
import { seeByProc } from "./see-proc.ts";
import { seeByPs } from "./see-ps.ts";
import type { Seeing } from "./seeing.ts";

/** `AGENTREWIND_PROC=off`: as on a system without /proc. */
export const openSeeing = (): Seeing =>
  process.env.AGENTREWIND_PROC !== "off" && existsSync("/proc/self/environ") ? seeByProc() : seeByPs();
