// A sandbox for one bench, with a store of its own, that can be left and opened again as it was.
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRewind, type Rewind } from "agentrewind";

export interface Place {
  open(): Promise<Rewind>;
  /** Removes it; what was opened must be closed. */
  remove(): void;
}

export function makePlace(inspector: "auto" | "ebpf"): Place {
  const base = mkdtempSync(join(realpathSync(tmpdir()), "agentrewind-bench-"));
  const workspace = join(base, "workspace");
  mkdirSync(workspace);
  return {
    open: () => openRewind({ workspace, store: join(base, "store"), environment: "sandbox", inspector }),
    remove: () => rmSync(base, { recursive: true, force: true }),
  };
}
