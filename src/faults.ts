// Numbered points at which a crash test ends the process for real. A point costs one comparison when nothing is armed.
import { appendFileSync } from "node:fs";

/** Every step of the store's and the environment's writes, as in native/core/faults.hpp; a point that a crash test never reaches fails that test. */
export const faultPoints = {
  "objects.written": 1,
  "objects.committed": 2,
  "checkpoint.before-commit": 3,
  "checkpoint.committed": 4,
  "durable.packs-synced": 5,
  "durable.committed": 6,
  "rewind.safety": 7,
  "rewind.intent": 8,
  "restore.planned": 9,
  "restore.staged-one": 10,
  "restore.staged": 11,
  "restore.removed-one": 12,
  "restore.placed-one": 13,
  "restore.metadata-one": 14,
  "restore.applied": 15,
  "restore.cleaned": 16,
  "rewind.restored": 17,
  "rewind.committed": 18,
  "recovery.restored": 19,
  "scan.walked": 20,
  "scan.written": 21,
  "pack.created": 40,
  "prune.slice": 41,
  "prune.done": 42,
  "gc.marked": 43,
  "gc.condemned": 44,
  "gc.waited": 45,
  "gc.deleted": 46,
  "gc.pack-copied": 47,
  "gc.rows-moved": 48,
  "gc.pack-dropped": 49,
  "gc.pack-unlinked": 50,
  "gc.pages-cut": 51,
  "gc.range-freed": 52,
  "fork.journaled": 60,
  "fork.made": 61,
  "fork.placed-one": 62,
  "fork.committed": 63,
  "branch.ended": 64,
  "branch.removed": 65,
  "effect.recorded": 70,
  "effect.called": 71,
  "effect.completed": 72,
  "effect.compensating": 73,
  "effect.compensated": 74,
  "verify.restored": 75,
  "verify.passed": 76,
  "verify.failed": 77,
  "layers.image-made": 90,
  "layers.image-placed": 91,
  "layers.attached": 92,
  "layers.mounted": 93,
  "layers.unmounted": 94,
  "layers.snapshot-made": 95,
  "layers.reset-made": 96,
  "layers.reset-done": 97,
  "layers.dropped": 98,
  "layers.forked": 99,
  "export.written": 110,
  "export.placed": 111,
  "import.verified": 112,
  "import.objects-written": 113,
  "import.state-landed": 114,
  "import.images-landed": 115,
  "import.folder-journaled": 116,
  "import.folder-placed": 117,
  "import.committed": 118,
  "import.done": 119,
} as const;

export type FaultPoint = keyof typeof faultPoints;

const armed = process.env.AGENTREWIND_FAULT?.split(":");
const log = process.env.AGENTREWIND_FAULT_LOG;
let left = Number(armed?.[1] ?? 1);

/** Ends the process with SIGKILL if AGENTREWIND_FAULT names this point ("point" or "point:N" for the Nth time). */
export function fault(point: FaultPoint): void {
  if (log !== undefined) appendFileSync(log, `${point}\n`);
  if (armed !== undefined && armed[0] === point && --left === 0) process.kill(process.pid, "SIGKILL");
}
