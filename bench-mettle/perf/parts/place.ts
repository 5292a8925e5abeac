// A sandbox for one bench, with a store of its own.
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRewind, type Rewind } from "agentrewind";

export async function openPlace(inspector: "auto" | "ebpf"): Promise<{ rewind: Rewind; end(): Promise<void> }> {
  const base = mkdtempSync(join(realpathSync(tmpdir()), "agentrewind-bench-"));
  const workspace = join(base, "workspace");
  mkdirSync(workspace);
  const rewind = await openRewind({ workspace, store: join(base, "store"), environment: "sandbox", inspector });
  return {
    rewind,
    async end() {
      await rewind.close();
      rmSync(base, { recursive: true, force: true });
    },
  };
}
