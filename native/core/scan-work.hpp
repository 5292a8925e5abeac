// A scan under way: one work item a directory, and what all of its threads share.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "scan.hpp"
#include "xattr.hpp"

namespace agentrewind {

struct DirectoryWork {
  std::string path;
  /** What the last scan found here; null when it knew no such directory. */
  std::shared_ptr<const Directory> previous;
  /** No name came or went since the last scan, so that the directory is not listed. */
  bool namesKnown = false;
  /** `entries` would equal the previous ones, and is left empty. */
  bool reuse = true;
  std::vector<Node> entries;

  struct Child {
    size_t index;
    std::unique_ptr<DirectoryWork> work;
  };
  std::vector<Child> children;

  struct Linked {
    size_t index;
    Stat stat;
    /** The entry is new or changed. */
    bool fresh;
  };
  /** Entries whose inode has several names. */
  std::vector<Linked> linked;
  /** Indices of files, links and nodes whose content must be read; then `reuse` is false. */
  std::vector<size_t> reads;
  /** Main names of databases that are read with their companions; none of their files is in `reads`. */
  std::vector<std::string> groups;
  /** Entries that came after the listing and belong to what was read. */
  std::vector<Node> late;

  /** The directory's own entry changed, so its attributes are read while it is open. */
  bool readXattrs = false;
  std::shared_ptr<const Extra> extra;
  /** Why the directory could not be read. */
  int failure = 0;

  const std::vector<Node>& present() const { return reuse && previous ? previous->entries : entries; }
  /** Makes `entries` this scan's own, with the first `count` of the previous ones. */
  void own(size_t count);
  std::string pathOf(std::string_view name) const;
};

class ScanState {
 public:
  ScanState(int root, const Changes* changes, const ScanOptions& options, ScanHost& host,
            const std::atomic<bool>& aborted)
      : root(root), options(options), host(host), changes_(changes), aborted_(aborted) {}

  const int root;
  const ScanOptions& options;
  ScanHost& host;
  /** The root's own. What is mounted below it is not the workspace's. */
  Stat rootStat;
  bool isMount(const Stat& stat) const { return stat.mount != rootStat.mount; }
  /** A directory whose own times did not move has the names that it had. */
  bool timesTellNames = false;
  /** Inodes that must be read whatever their times say: somebody maps them shared and writable. Sorted. */
  std::vector<uint64_t> mapped;
  std::atomic<uint64_t> entries{0};
  std::atomic<uint64_t> bytes{0};

  bool isMapped(const Stat& stat) const;
  /** Whether stat must be asked about an entry that the last scan had. */
  bool looksAt(const Node& before) const;
  /** Finds the directories of the last scan in or below which a watcher saw a change. */
  void findNoise(const Directory& previous);
  /** Nothing in or below this directory of the last scan needs a look. */
  bool isQuiet(const Directory& previous) const;
  /** How many threads a walk is worth. */
  unsigned walkers() const;
  /** The entry is not as the last scan had it. */
  void changed(const Node& before, const Stat& now);
  void problem(std::string path, std::string reason);
  /** Directories are read by several threads at once. */
  void addLate(DirectoryWork& work, Node node);
  /** The first failure stops all threads. */
  void fail(ScanError::Where where, Errno error, std::string path);
  bool stopped();

  bool failed = false;
  ScanError error{ScanError::Where::aborted, {0, ""}, ""};
  std::vector<ScanProblem> problems;
  std::vector<uint64_t> unseen;

 private:
  bool isNamed(uint64_t inode) const;
  bool trusts() const { return changes_ != nullptr && !changes_->judge; }
  bool hasNoise(const Directory& directory);

  const Changes* const changes_;
  std::unordered_set<const Directory*> noisy_;
  const std::atomic<bool>& aborted_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
};

/** Lists all directories below `top` and compares what stat tells with the last scan. */
void walk(ScanState& state, DirectoryWork& top);

/** Reads what the walk found changed, and settles which name of a hard link's group is the first. */
void resolveLinks(ScanState& state, DirectoryWork& top, std::vector<std::vector<std::string>>& groups);
void readContents(ScanState& state, DirectoryWork& top);

/** Stores the trees that changed. Null when the scan failed. */
std::shared_ptr<const Directory> buildTrees(ScanState& state, Sink& sink, DirectoryWork& top);

/** An entry's error is its own when it can be said of it alone: it is stored as unread with this reason. Empty: it vanished. */
bool isUnreadable(int code, std::string& reason);

/** What a snapshot says of an entry that could not be read. */
void makeUnread(Node& node, std::string reason);

/** The attributes of an open descriptor, as an entry holds them; null when there are none. */
Result<std::shared_ptr<const Extra>> readXattrs(int fd);
std::shared_ptr<const Extra> encodeXattrs(const Xattrs& xattrs);

}  // namespace agentrewind
