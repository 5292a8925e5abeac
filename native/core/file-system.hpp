// What is known of file systems by their kind.
#pragma once

#include <cstdint>

namespace agentrewind {

enum class FileSystem : uint32_t {
  ext = 0xEF53,
  btrfs = 0x9123683E,
  xfs = 0x58465342,
  tmpfs = 0x01021994,
  f2fs = 0xF2F52010,
  overlay = 0x794C7630,
  other = 0,
};

/** Of the open file; `other` also where it cannot be told. */
FileSystem fileSystemOf(int fd);

/** A directory's times move whenever a name in it comes or goes, whoever does it: true of local file systems, not of what a server changes. */
inline bool keepsDirectoryTimes(FileSystem kind) { return kind != FileSystem::other; }

}  // namespace agentrewind
