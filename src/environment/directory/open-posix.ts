// Chooses the addon where it is there, Node alone where not.
import { loadNative } from "../../native.ts";
import type { Posix } from "./posix.ts";
import { openNativePosix } from "./posix-native.ts";
import { openPortablePosix } from "./posix-portable.ts";

/** Opens the directory at `root`. */
export function openPosix(root: string): Posix {
  const { native } = loadNative();
  return native === null ? openPortablePosix(root) : openNativePosix(root, native);
}
