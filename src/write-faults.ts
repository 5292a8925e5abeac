// Lets a crash test fail the Nth change of a file as a full or broken disk would. Costs one comparison when nothing is armed.

/** `fsync` and `fdatasync` are changes too: they are where a disk reports what it could not keep. */
export type Change = "open" | "write" | "truncate" | "fsync" | "rename" | "link" | "remove" | "make" | "metadata";

let kind: string | undefined;
let left = 0;
let halved = false;

/**
 * "ENOSPC:3" or "EIO:3" fails the third change from now on; "SHORT:3" writes half of it, if it is a write, and the next one finds the disk full.
 * Undefined: none. Returns whether what was armed before has failed something.
 */
export function armWriteFault(fault: string | undefined): boolean {
  const reached = kind !== undefined && left <= 0;
  const [name, nth = "1"] = fault?.split(":") ?? [];
  kind = name;
  left = Number(nth);
  halved = false;
  return reached;
}

armWriteFault(process.env.AGENTREWIND_WRITE_FAULT);

/** Called before each change. Returns true when only half of the bytes shall be written. @throws what the disk would */
export function beforeChange(change: Change): boolean {
  if (kind === undefined) return false;
  left--;
  if (left > 0 || left < -1) return false;
  if (left === 0 && kind === "SHORT" && change === "write") {
    halved = true;
    return true;
  }
  if (left === 0) throw systemError(kind === "EIO" ? "EIO" : "ENOSPC", change);
  if (halved) throw systemError("ENOSPC", change);
  return false;
}

function systemError(code: string, syscall: string): Error {
  const meaning = code === "EIO" ? "i/o error" : "no space left on device";
  return Object.assign(new Error(`${code}: ${meaning}, ${syscall}`), { code, syscall });
}
