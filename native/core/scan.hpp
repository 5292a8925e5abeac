// Scans a directory into stored trees from several threads, reading only what changed since the scan before (src/environment/directory/scanner.ts is the face).
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "result.hpp"
#include "sink.hpp"
#include "tree.hpp"

namespace agentrewind {

/** The caller's side of a scan. May be called from several threads at once. */
class ScanHost : public Store {
 public:
  /** True for each of these new names in the directory that is left out of snapshots and out of sight. */
  virtual Result<std::vector<bool>> excluded(const std::string& directory, const std::vector<std::string_view>& names) = 0;
};

struct ScanOptions {
  /** The name in the root that is never part of a snapshot. */
  std::string stage;
  /** Bits of src/environment/directory/entry.ts. */
  uint8_t fidelity = 0;
  bool asksExcluded = false;
};

/** What a watcher saw of a directory since the scan before. */
struct Changes {
  /** Sorted. All entries of these inodes may have changed, and nothing else. */
  std::vector<uint64_t> inodes;
  /** Sorted. These must be read whatever their times say. */
  std::vector<uint64_t> unstamped;
  /** Sorted. What somebody maps shared and writable. */
  std::vector<uint64_t> mapped;
  /** Everything is looked at all the same, and what the watcher should have seen is told. */
  bool judge = false;
};

struct ScanProblem {
  std::string path;
  std::string reason;
};

/** What stopped a scan. */
struct ScanError {
  enum class Where { workspace, store, aborted };
  Where where;
  Errno error;
  std::string path;
};

struct ScanResult {
  std::shared_ptr<const Node> root;
  Sha256 snapshot{};
  std::vector<ScanProblem> problems;
  /** Paths of inodes with several names in the workspace, the first in front. */
  std::vector<std::vector<std::string>> groups;
  uint64_t entries = 0;
  uint64_t bytes = 0;
  /** Inodes that changed and that the watcher did not name, where it was judged. */
  std::vector<uint64_t> unseen;
};

/**
 * Scans what is below the descriptor `root`, with `changes` only what they name; null: nobody watched. False: `error` says why, and nothing of the result
 * counts.
 */
bool scan(int root, const std::shared_ptr<const Node>& previous, const Changes* changes, const ScanOptions& options,
          ScanHost& host, const std::atomic<bool>& aborted, ScanResult& result, ScanError& error);

}  // namespace agentrewind
