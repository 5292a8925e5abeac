// Watches a whole file system through fanotify, so that a scan need not ask about what did not change. Needs root.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "file-system.hpp"
#include "scan.hpp"
#include "unique-fd.hpp"

namespace agentrewind {

/**
 * The kernel tells of every write, truncation, change of metadata and change of names on the file system, by whatever name or mount it was made. It does not
 * tell of stores through mappings (the scan samples them), of what loop devices write (looked up), of Linux AIO and of overlays whose upper layer lies in the
 * directory: while there are such, nothing is complete.
 */
class Watch {
 public:
  /** Begins to watch the file system of `root`. Null: `reason` says why it cannot. */
  static std::unique_ptr<Watch> open(int root, std::string& reason);

  /** Adds what changed since the last call. False when something may be missing. */
  bool take(Changes& changes);

 private:
  struct Mounts {
    /** Lines of /proc/self/mountinfo about what is mounted in the directory and above it. */
    std::string around;
    /** An overlay has its upper layer in the directory. */
    bool upperInside = false;
  };

  Watch(UniqueFd events, UniqueFd mountinfo, UniqueFd aio, FileSystem kind, uint64_t device, std::string root)
      : events_(std::move(events)), mountinfo_(std::move(mountinfo)), aio_(std::move(aio)), kind_(kind),
        device_(device), root_(std::move(root)) {}

  static Mounts readMounts(const std::string& root);

  bool readEvents(Changes& changes);
  bool aioInUse() const;
  /** Any of the namespace. */
  bool mountsMoved() const;
  void addLoops(Changes& changes) const;

  const UniqueFd events_;
  const UniqueFd mountinfo_;
  const UniqueFd aio_;
  const FileSystem kind_;
  const uint64_t device_;
  const std::string root_;
  Mounts mounts_;
};

}  // namespace agentrewind
