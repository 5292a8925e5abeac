// The coordinator's own share: an environment that knows at once that nothing changed.
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { mkdirSync, mkdtempSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { performance } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";
import { type Environment, openRewind } from "agentrewind";

/** The turn before is on the disk by then. */
const restMs = 15;

const manifest = { files: "unchanging", processes: null };
const none = { added: [], removed: [], changed: [], mode: [], type: [], renamed: [] };
const nothing = async (): Promise<never> => {
  throw new Error("this is not asked of it");
};

const unchanging: Environment = {
  kind: "unchanging",
  capabilities: {
    ...{ files: true, processes: false, fork: false, inPlace: true, freeze: true, memory: false },
    lacks: [],
  },
  probe: async () => ({ status: "available", reason: "" }),
  capture: () => ({
    captured: Promise.resolve({ manifest, problems: [], bytes: 0, captureMs: 0 }),
    durable: Promise.resolve(),
  }),
  changed: async () => "none",
  diff: async () => none,
  ...{ restore: nothing, exec: nothing, readFile: nothing, writeFile: nothing, list: nothing },
  path: () => null,
  verify: async () => [],
  close: async () => {},
};

/** Milliseconds, of each turn. */
export async function decisions(turns: number): Promise<{ decided: number[]; stored: number[] }> {
  const base = mkdtempSync(join(realpathSync(tmpdir()), "agentrewind-bench-"));
  const workspace = join(base, "workspace");
  mkdirSync(workspace);
  const rewind = await openRewind({ workspace, store: join(base, "store"), environment: unchanging });
  const found = { decided: [] as number[], stored: [] as number[] };
  let begun = 0;
  let decision = 0;
  const onSkip = (): void => {
    decision = performance.now() - begun;
  };
  subscribe("agentrewind:skip", onSkip);
  try {
    const thread = rewind.thread("bench");
    const messages: string[] = [];
    for (let turn = 0; turn < turns; turn++) {
      messages.push(`message ${turn}`);
      await sleep(restMs);
      begun = performance.now();
      const current = await thread.beginTurn({ messages });
      await current.captured;
      const ms = performance.now() - begun;
      // The first has nothing before it.
      if (turn > 0) {
        found.decided.push(decision);
        found.stored.push(ms);
      }
      await current.gate({ tools: false });
      await current.durable;
    }
    return found;
  } finally {
    unsubscribe("agentrewind:skip", onSkip);
    await rewind.close();
    rmSync(base, { recursive: true, force: true });
  }
}
