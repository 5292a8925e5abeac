// A store in a temporary folder, for tests of its parts.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { openStore, type Store } from "../../src/store/store.ts";

export function temporaryStore(): { path: string; store: Store } {
  const path = mkdtempSync(join(tmpdir(), "arw-store-"));
  const store = openStore(path);
  onTestFinished(() => {
    if (store.sql.open) store.close();
    rmSync(path, { recursive: true, force: true });
  });
  return { path, store };
}
