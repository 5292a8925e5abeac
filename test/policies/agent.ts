// A process of its own for the crash tests: replays the trace and is killed in the middle of a turn's tools, or at a fault point.
import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type OpenOptions, openRewind } from "agentrewind";
import { replay } from "../../bench-mettle/policies/replay.ts";
import { digestTree } from "../helpers/digest.ts";

const [base = "", capture = "", killAt = "0"] = process.argv.slice(2);
const workspace = join(base, "workspace");
const rewind = await openRewind({
  workspace,
  store: join(base, "store"),
  capture: JSON.parse(capture) as NonNullable<OpenOptions["capture"]>,
});
await replay(rewind, {
  onDecision: (_turn, id) => appendFileSync(join(base, "digests"), `${JSON.stringify([id, digestTree(workspace)])}\n`),
  onGate(turn) {
    if (turn !== Number(killAt)) return;
    writeFileSync(join(workspace, "half-done"), "a tool had begun");
    process.kill(process.pid, "SIGKILL");
  },
});
await rewind.close();
