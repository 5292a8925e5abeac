// Chooses how a directory is scanned.
import { NativeScanner } from "./native-scanner.ts";
import { PortableScanner } from "./portable-scanner.ts";
import type { Posix } from "./posix.ts";
import type { Scanner, ScannerOptions } from "./scanner.ts";

export function openScanner(posix: Posix, options: ScannerOptions): Scanner {
  return posix.native === null ? new PortableScanner(options) : new NativeScanner(posix.native, options);
}
