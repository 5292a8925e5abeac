#include "restore-run.hpp"

#include <algorithm>
#include <atomic>
#include <memory>

#include "change-name.hpp"
#include "faults.hpp"
#include "restore-folder.hpp"
#include "restore-place.hpp"
#include "restore-stage.hpp"
#include "workers.hpp"

namespace agentrewind {
namespace {

/** So many jobs that follow each other, mostly in one folder, are of one thread: two in a folder wait for its lock. */
constexpr size_t chunkSize = 16;
/** A file of more blocks is written by all threads together. */
constexpr size_t largeFrom = 64;
constexpr size_t blocksAtOnce = 16;

struct Worker {
  explicit Worker(int root) : folder(root), other(root), third(root) {}
  Folder folder;
  Folder other;
  Folder third;
  BlockBuffer buffer;
  std::vector<FailedJob> failed;
};

bool isLarge(const Job& job) { return job.operation == Operation::stage && job.blocks.size() > largeFrom; }

bool endsStaging(const Outcome& outcome) {
  return outcome && (outcome->kind == FailureKind::unstaged || outcome->kind == FailureKind::damaged);
}

/** An error on the way to the entry: outside of staging somebody has changed the tree meanwhile. */
Outcome lost(const Job& job, const Errno& error) {
  const bool stages = job.operation == Operation::stage;
  if (!stages && (error.code == ENOENT || error.code == ENOTDIR || error.code == ELOOP)) {
    return failure(FailureKind::moved, error);
  }
  return failure(stages ? FailureKind::unstaged : FailureKind::refused, error);
}

Outcome runAt(const Location& location, const Job& job, Worker& worker) {
  switch (job.operation) {
    case Operation::stage:
      return stageEntry(location, job, worker.buffer);
    case Operation::remove:
      return removeEntry(location, job);
    case Operation::removeDirectory:
      return removeFolder(location);
    case Operation::setMetadata:
      return changeMetadata(location, job);
    case Operation::place: {
      Result<Location> staged = worker.other.locate(job.from);
      if (!staged) return failure(FailureKind::refused, staged.error());
      return placeEntry(staged.value(), location, job);
    }
    case Operation::link: {
      Result<Location> first = worker.other.locate(job.from);
      if (!first) return lost(job, first.error());
      Result<Location> temporary = worker.third.locate(job.temporary);
      if (!temporary) return failure(FailureKind::refused, temporary.error());
      return linkEntry(first.value(), temporary.value(), location, job);
    }
    case Operation::makeDirectory:
    case Operation::removeTree:
      break;
  }
  return failure(FailureKind::refused, Errno{EINVAL, "restore"});
}

Outcome runOnce(int root, const Job& job, Worker& worker) {
  if (job.operation == Operation::removeTree) return refusal(removeTree(root, job.path));
  if (job.operation == Operation::makeDirectory) {
    Status made = makeDirectory(root, job.path, 0700);
    return made ? Outcome() : failure(FailureKind::unstaged, made.error());
  }
  Result<Location> location = worker.folder.locate(job.path);
  if (!location) return lost(job, location.error());
  Outcome outcome = runAt(location.value(), job, worker);
  if (outcome && outcome->kind == FailureKind::refused) {
    if (outcome->error.code == ENOENT || outcome->error.code == ENOTDIR || outcome->error.code == ELOOP) {
      outcome->kind = FailureKind::moved;
    } else if (outcome->error.code == EPERM && isImmutable(location.value())) {
      outcome->kind = FailureKind::immutable;
    }
  }
  return outcome;
}

/** A folder without permissions is opened for its owner while we work in it; its own mode comes back with its metadata. */
Outcome run(int root, const Job& job, Worker& worker) {
  Outcome outcome = runOnce(root, job, worker);
  if (!outcome || outcome->error.code != EACCES || outcome->kind != FailureKind::refused) return outcome;
  if (!openFolderAbove(root, job.path)) return outcome;
  worker.folder.forget();
  return runOnce(root, job, worker);
}

void hit(const Job& job) {
  switch (job.operation) {
    case Operation::stage:
      return fault(FaultPoint::restoreStagedOne);
    case Operation::remove:
    case Operation::removeDirectory:
      return fault(FaultPoint::restoreRemovedOne);
    case Operation::place:
    case Operation::link:
      return fault(FaultPoint::restorePlacedOne);
    case Operation::setMetadata:
      return fault(FaultPoint::restoreMetadataOne);
    case Operation::makeDirectory:
    case Operation::removeTree:
      return;
  }
}

Outcome stageLarge(const Job& job, std::vector<std::unique_ptr<Worker>>& workers) {
  Result<Location> location = workers[0]->folder.locate(job.path);
  if (!location) return failure(FailureKind::unstaged, location.error());
  Result<UniqueFd> file = openStaged(location.value(), job);
  if (!file) return failure(FailureKind::unstaged, file.error());
  const int fd = file.value().get();
  const size_t parts = (job.blocks.size() + blocksAtOnce - 1) / blocksAtOnce;
  std::vector<Outcome> outcomes(parts);
  std::atomic<bool> failed{false};
  parallelFor(parts, static_cast<unsigned>(workers.size()), [&](size_t part, unsigned worker) {
    if (failed) return;
    const size_t first = part * blocksAtOnce;
    const size_t end = std::min(first + blocksAtOnce, job.blocks.size());
    outcomes[part] = writeBlocks(fd, job, first, end, workers[worker]->buffer);
    if (outcomes[part]) failed = true;
  });
  for (const Outcome& outcome : outcomes) {
    if (outcome) return outcome;
  }
  return finishStaged(fd, location.value(), job);
}

}  // namespace

std::vector<FailedJob> runJobs(int root, const std::vector<Job>& jobs) {
  const size_t chunks = (jobs.size() + chunkSize - 1) / chunkSize;
  std::vector<std::unique_ptr<Worker>> workers;
  for (unsigned i = 0; i < workerCount(); i++) workers.push_back(std::make_unique<Worker>(root));
  std::atomic<bool> stopped{false};
  const auto finish = [&](size_t index, const Outcome& outcome, Worker& worker) {
    if (outcome) worker.failed.push_back({index, *outcome});
    if (endsStaging(outcome)) stopped = true;
    hit(jobs[index]);
  };
  parallelFor(chunks, static_cast<unsigned>(workers.size()), [&](size_t chunk, unsigned worker) {
    const size_t end = std::min((chunk + 1) * chunkSize, jobs.size());
    for (size_t index = chunk * chunkSize; index < end && !stopped; index++) {
      if (isLarge(jobs[index])) continue;
      finish(index, run(root, jobs[index], *workers[worker]), *workers[worker]);
    }
  });
  for (size_t index = 0; index < jobs.size() && !stopped; index++) {
    if (isLarge(jobs[index])) finish(index, stageLarge(jobs[index], workers), *workers[0]);
  }
  std::vector<FailedJob> failed;
  for (const auto& worker : workers) failed.insert(failed.end(), worker->failed.begin(), worker->failed.end());
  std::sort(failed.begin(), failed.end(), [](const auto& a, const auto& b) { return a.index < b.index; });
  return failed;
}

}  // namespace agentrewind
