// Watches a whole file system through fanotify, so that a scan need not ask about what did not change. Needs root.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "file-system.hpp"
#include "scan.hpp"
#include "unique-fd.hpp"

namespace agentrewind {

/**
 * The kernel tells of every write, truncation, change of metadata and change of names on the file system, by whatever name or mount it was made. It does not
 * tell of stores through mappings: what is mapped or open for writing at a scan is looked at, the end of either is told. Nor of what loop devices write (looked
 * up), of Linux AIO and of overlays whose upper layer lies in the directory: while there are such, nothing is complete.
 */
class Watch {
 public:
  /** Begins to watch the file system of `root`. Null: `reason` says why it cannot. */
  static std::unique_ptr<Watch> open(int root, std::string& reason);
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;
  ~Watch();

  /** Whether it is this directory's file system that is watched. */
  bool covers(const Stat& root) const { return deviceOf(root) == device_; }
  /** Adds what raises no event while it lasts. Before `take`: what ends behind this look is told by the events. */
  void look(Changes& changes) const;
  /** Adds what was told since the last call. False when something may be missing. */
  bool take(Changes& changes);

 private:
  struct Mounts {
    /** Lines of /proc/self/mountinfo about what is mounted in the directory and above it. */
    std::string around;
    /** An overlay has its upper layer in the directory. */
    bool upperInside = false;
  };

  Watch(UniqueFd events, UniqueFd mountinfo, UniqueFd aio, UniqueFd stop, FileSystem kind, uint64_t device,
        std::string root);

  static uint64_t deviceOf(const Stat& stat) { return static_cast<uint64_t>(stat.devMajor) << 32 | stat.devMinor; }
  static Mounts readMounts(const std::string& root);

  /** Takes events out of the kernel's queue, which is short, while nobody scans. */
  void collect();
  /** False when some were lost. The caller holds the lock. */
  bool readEvents();
  bool aioInUse() const;
  /** Any of the namespace. */
  bool mountsMoved() const;
  void addLoops(Changes& changes) const;

  const UniqueFd events_;
  const UniqueFd mountinfo_;
  const UniqueFd aio_;
  const UniqueFd stop_;
  const FileSystem kind_;
  const uint64_t device_;
  const std::string root_;
  Mounts mounts_;
  std::mutex mutex_;
  Changes collected_;
  bool lost_ = false;
  std::thread collector_;
};

}  // namespace agentrewind
