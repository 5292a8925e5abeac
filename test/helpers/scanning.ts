// A scanner with a store of its own, for tests that look at scans themselves.
import { join } from "node:path";
import { openScanner } from "../../src/environment/directory/open-scanner.ts";
import type { Posix } from "../../src/environment/directory/posix.ts";
import { openNativePosix } from "../../src/environment/directory/posix-native.ts";
import { openPortablePosix } from "../../src/environment/directory/posix-portable.ts";
import type { Scan, Scanner } from "../../src/environment/directory/scanner.ts";
import { readSnapshot } from "../../src/environment/directory/tree.ts";
import { loadNative } from "../../src/native.ts";
import { openStore } from "../../src/store/store.ts";
import type { Place } from "./workspace.ts";

export interface Scanned extends Scan {
  readonly written: number;
  /** Name of the root's sequence of entries. */
  readonly tree: string;
}

export interface Bench {
  readonly scanner: Scanner;
  scan(signal?: AbortSignal): Promise<Scanned>;
}

export interface BenchOptions {
  readonly excluded?: ((path: string) => boolean) | null;
  readonly watches?: boolean;
}

const open: (() => void)[] = [];

/** For `afterEach`. */
export function closeBenches(): void {
  for (const end of open.splice(0)) end();
}

export function bench(
  place: Place,
  way: "native" | "portable",
  { excluded = null, watches = false }: BenchOptions = {},
): Bench {
  const store = openStore(join(place.base, `store-${way}-${open.length}`));
  const { objects } = store.open("e1");
  const { native } = loadNative();
  const posix: Posix =
    way === "native" && native !== null ? openNativePosix(place.workspace, native) : openPortablePosix(place.workspace);
  const scanner = openScanner(posix, { root: place.workspace, stage: ".stage", excluded, watches });
  open.push(() => {
    scanner.close();
    posix.close();
    store.close();
  });
  return {
    scanner,
    async scan(signal) {
      const batch = objects.batch();
      try {
        const result = await scanner.scan({ posix, batch, signal });
        const written = await batch.commit();
        scanner.keep();
        const root = readSnapshot(objects, result.snapshot.toString("hex")).root;
        return { ...result, written, tree: (root.content as Buffer).toString("hex") };
      } catch (error) {
        batch.discard();
        throw error;
      }
    },
  };
}
