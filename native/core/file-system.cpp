#include "file-system.hpp"

#include <sys/statfs.h>

namespace agentrewind {

FileSystem fileSystemOf(int fd) {
  struct statfs found;
  if (fstatfs(fd, &found) < 0) return FileSystem::other;
  const auto kind = static_cast<FileSystem>(static_cast<uint32_t>(found.f_type));
  switch (kind) {
    case FileSystem::ext:
    case FileSystem::btrfs:
    case FileSystem::xfs:
    case FileSystem::tmpfs:
    case FileSystem::f2fs:
    case FileSystem::overlay: return kind;
    default: return FileSystem::other;
  }
}

}  // namespace agentrewind
