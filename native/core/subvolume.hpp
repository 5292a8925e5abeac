// Subvolumes of a btrfs: made, captured, removed, and what is known of them.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "result.hpp"

namespace agentrewind {

struct SubvolumeInfo {
  uint64_t id = 0;
  /** The transaction that last changed its tree; in memory it moves when a transaction is committed. */
  uint64_t generation = 0;
  /** The transaction that last changed an inode of it. A snapshot inherits it, and taking one does not move it. */
  uint64_t changed = 0;
  /** The transaction that made it. */
  uint64_t made = 0;
  bool readOnly = false;
};

/** `folder` is an open directory of the file system, `name` one component that is not there yet. */
Status makeSubvolume(int folder, std::string_view name);

/** The source's dirty pages are written first. On the device, like all that the source held, when it returns. */
Status makeSnapshot(int source, int folder, std::string_view name, bool readOnly);

/** With everything below it, subvolumes that somebody made inside included. Its room comes back later. */
Status removeSubvolume(int folder, std::string_view name);

/** ENOTTY where the directory is on another file system, EINVAL where it is not a subvolume's root. */
Result<SubvolumeInfo> subvolumeInfo(int fd);

/** Waits until this transaction of the directory's file system is on its device. */
Status waitForTransaction(int fd, uint64_t transaction);

struct ChangedInodes {
  /** In ascending order. */
  std::vector<uint64_t> inodes;
  /** Of the device, written for files in the time. */
  uint64_t bytes = 0;
};

/** What was changed in the subvolume after `transaction`; an inode that was removed is told by the folder that named it. Reads only the parts of its tree that were written since. */
Result<ChangedInodes> changedInodes(int fd, uint64_t transaction);

/** A subvolume inside of another: no snapshot of the outer one holds it. */
struct InnerSubvolume {
  /** Of the folder that names it, below the outer one; "" for the outer one itself. */
  std::string folder;
  std::string name;
};
Result<std::vector<InnerSubvolume>> innerSubvolumes(int fd);

}  // namespace agentrewind
