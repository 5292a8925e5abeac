// Numbered points at which a crash test ends the process for real; the same as in src/faults.ts, which a test compares.
#pragma once

#include <string_view>

namespace agentrewind {

/** Name and number of every point. One that is hit here is not hit by TypeScript in the same process: each side counts for itself. */
#define AGENTREWIND_FAULT_POINTS(X) \
  X(objectsWritten, 1, "objects.written") \
  X(objectsCommitted, 2, "objects.committed") \
  X(checkpointBeforeCommit, 3, "checkpoint.before-commit") \
  X(checkpointCommitted, 4, "checkpoint.committed") \
  X(durablePacksSynced, 5, "durable.packs-synced") \
  X(durableCommitted, 6, "durable.committed") \
  X(rewindSafety, 7, "rewind.safety") \
  X(rewindIntent, 8, "rewind.intent") \
  X(restorePlanned, 9, "restore.planned") \
  X(restoreStagedOne, 10, "restore.staged-one") \
  X(restoreStaged, 11, "restore.staged") \
  X(restoreRemovedOne, 12, "restore.removed-one") \
  X(restorePlacedOne, 13, "restore.placed-one") \
  X(restoreMetadataOne, 14, "restore.metadata-one") \
  X(restoreApplied, 15, "restore.applied") \
  X(restoreCleaned, 16, "restore.cleaned") \
  X(rewindRestored, 17, "rewind.restored") \
  X(rewindCommitted, 18, "rewind.committed") \
  X(recoveryRestored, 19, "recovery.restored") \
  X(scanWalked, 20, "scan.walked") \
  X(scanWritten, 21, "scan.written") \
  X(packCreated, 40, "pack.created") \
  X(pruneSlice, 41, "prune.slice") \
  X(pruneDone, 42, "prune.done") \
  X(gcMarked, 43, "gc.marked") \
  X(gcCondemned, 44, "gc.condemned") \
  X(gcWaited, 45, "gc.waited") \
  X(gcDeleted, 46, "gc.deleted") \
  X(gcPackCopied, 47, "gc.pack-copied") \
  X(gcRowsMoved, 48, "gc.rows-moved") \
  X(gcPackDropped, 49, "gc.pack-dropped") \
  X(gcPackUnlinked, 50, "gc.pack-unlinked") \
  X(gcPagesCut, 51, "gc.pages-cut") \
  X(gcRangeFreed, 52, "gc.range-freed") \
  X(forkJournaled, 60, "fork.journaled") \
  X(forkMade, 61, "fork.made") \
  X(forkPlacedOne, 62, "fork.placed-one") \
  X(forkCommitted, 63, "fork.committed") \
  X(branchEnded, 64, "branch.ended") \
  X(branchRemoved, 65, "branch.removed") \
  X(effectRecorded, 70, "effect.recorded") \
  X(effectCalled, 71, "effect.called") \
  X(effectCompleted, 72, "effect.completed") \
  X(effectCompensating, 73, "effect.compensating") \
  X(effectCompensated, 74, "effect.compensated") \
  X(verifyRestored, 75, "verify.restored") \
  X(verifyPassed, 76, "verify.passed") \
  X(verifyFailed, 77, "verify.failed") \
  X(layersImageMade, 90, "layers.image-made") \
  X(layersImagePlaced, 91, "layers.image-placed") \
  X(layersAttached, 92, "layers.attached") \
  X(layersMounted, 93, "layers.mounted") \
  X(layersUnmounted, 94, "layers.unmounted") \
  X(layersSnapshotMade, 95, "layers.snapshot-made") \
  X(layersResetMade, 96, "layers.reset-made") \
  X(layersResetDone, 97, "layers.reset-done") \
  X(layersDropped, 98, "layers.dropped") \
  X(layersForked, 99, "layers.forked") \
  X(lifeGroupMade, 100, "life.group-made") \
  X(lifeBegun, 101, "life.begun") \
  X(lifeRestored, 102, "life.restored") \
  X(lifeEnded, 103, "life.ended") \
  X(imageBegun, 104, "image.begun") \
  X(imageFrozen, 105, "image.frozen") \
  X(imageCommitted, 106, "image.committed") \
  X(sandboxParked, 107, "sandbox.parked") \
  X(sandboxTakenUp, 108, "sandbox.taken-up") \
  X(applyKept, 110, "apply.kept") \
  X(applyPlaced, 111, "apply.placed") \
  X(exportWritten, 120, "export.written") \
  X(exportPlaced, 121, "export.placed") \
  X(importVerified, 122, "import.verified") \
  X(importObjectsWritten, 123, "import.objects-written") \
  X(importStateLanded, 124, "import.state-landed") \
  X(importImagesLanded, 125, "import.images-landed") \
  X(importFolderJournaled, 126, "import.folder-journaled") \
  X(importFolderPlaced, 127, "import.folder-placed") \
  X(importCommitted, 128, "import.committed") \
  X(importDone, 129, "import.done")

enum class FaultPoint : unsigned {
#define AGENTREWIND_FAULT_NUMBER(name, number, text) name = number,
  AGENTREWIND_FAULT_POINTS(AGENTREWIND_FAULT_NUMBER)
#undef AGENTREWIND_FAULT_NUMBER
};

/** Ends the process with SIGKILL if AGENTREWIND_FAULT names this point ("point" or "point:N" for the Nth time, over all threads). */
void fault(FaultPoint point);

}  // namespace agentrewind
