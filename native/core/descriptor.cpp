// syncfs, fallocate and lseek.
#include "descriptor.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace agentrewind {
namespace {

Result<std::optional<Range>> untilEnd(int fd, int64_t offset) {
  struct stat found;
  if (fstat(fd, &found) < 0) return lastError("fstat");
  if (offset >= found.st_size) return std::optional<Range>();
  return std::optional<Range>(Range{offset, found.st_size});
}

}  // namespace

Status syncFileSystem(int fd) { return check(syncfs(fd), "syncfs"); }

Status punchHole(int fd, int64_t offset, int64_t length) {
  return check(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length), "fallocate");
}

Result<std::optional<Range>> nextData(int fd, int64_t offset) {
  const off_t start = lseek(fd, offset, SEEK_DATA);
  if (start < 0) {
    if (errno == ENXIO) return std::optional<Range>();
    if (errno == EINVAL) return untilEnd(fd, offset);
    return lastError("lseek");
  }
  const off_t end = lseek(fd, start, SEEK_HOLE);
  if (end < 0) {
    // The file was cut below `start` meanwhile.
    if (errno == ENXIO) return std::optional<Range>();
    return lastError("lseek");
  }
  return std::optional<Range>(Range{start, end});
}

}  // namespace agentrewind
