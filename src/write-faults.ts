// Lets a crash test fail the Nth change of a file as a full or broken disk would. Costs one comparison when nothing is armed.
import { appendFileSync } from "node:fs";

/** `fsync` and `fdatasync` are changes too: they are where a disk reports what it could not keep. */
export type Change = "open" | "write" | "truncate" | "fsync" | "rename" | "link" | "remove" | "make" | "metadata";

/** "ENOSPC:3" or "EIO:3" fails the third change; "SHORT:3" writes half of it, if it is a write, and the next one finds the disk full. */
const armed = process.env.AGENTREWIND_WRITE_FAULT?.split(":");
const log = process.env.AGENTREWIND_WRITE_LOG;
let left = Number(armed?.[1] ?? 1);

/** Called before each change. Returns true when only half of the bytes shall be written. @throws what the disk would */
export function beforeChange(change: Change): boolean {
  if (log !== undefined) appendFileSync(log, `${change}\n`);
  if (armed === undefined) return false;
  left--;
  if (left > 0 || left < -1) return false;
  const short = armed[0] === "SHORT" && change === "write";
  if (left === 0 && short) return true;
  if (left === 0) throw systemError(armed[0] === "EIO" ? "EIO" : "ENOSPC", change);
  if (short) throw systemError("ENOSPC", change);
  return false;
}

function systemError(code: string, syscall: string): Error {
  const meaning = code === "EIO" ? "i/o error" : "no space left on device";
  return Object.assign(new Error(`${code}: ${meaning}, ${syscall}`), { code, syscall });
}
