#include "same-content.hpp"

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#include <cstring>
#include <optional>
#include <vector>

#include "entry.hpp"
#include "unique-fd.hpp"

namespace agentrewind {
namespace {

struct Extent {
  uint64_t logical;
  uint64_t physical;
  uint64_t length;

  bool operator==(const Extent& other) const {
    return logical == other.logical && physical == other.physical && length == other.length;
  }
};

/** Where the file's bytes lie; nothing where the file system does not tell it for sure. */
std::optional<std::vector<Extent>> extentsOf(int fd) {
  constexpr unsigned count = 256;
  constexpr uint32_t unsure = FIEMAP_EXTENT_UNKNOWN | FIEMAP_EXTENT_DELALLOC | FIEMAP_EXTENT_ENCODED |
                              FIEMAP_EXTENT_NOT_ALIGNED | FIEMAP_EXTENT_DATA_INLINE | FIEMAP_EXTENT_UNWRITTEN;
  std::vector<uint64_t> memory((sizeof(fiemap) + count * sizeof(fiemap_extent)) / sizeof(uint64_t) + 1);
  auto* map = reinterpret_cast<fiemap*>(memory.data());
  std::vector<Extent> extents;
  uint64_t start = 0;
  while (true) {
    std::memset(map, 0, sizeof(*map));
    map->fm_start = start;
    map->fm_length = FIEMAP_MAX_OFFSET - start;
    map->fm_extent_count = count;
    if (ioctl(fd, FS_IOC_FIEMAP, map) < 0) return std::nullopt;
    if (map->fm_mapped_extents == 0) return extents;
    for (unsigned i = 0; i < map->fm_mapped_extents; i++) {
      const fiemap_extent& found = map->fm_extents[i];
      if ((found.fe_flags & unsure) != 0) return std::nullopt;
      extents.push_back({found.fe_logical, found.fe_physical, found.fe_length});
      if ((found.fe_flags & FIEMAP_EXTENT_LAST) != 0) return extents;
    }
    start = extents.back().logical + extents.back().length;
  }
}

Result<size_t> readUp(int fd, char* buffer, size_t size) {
  size_t done = 0;
  while (done < size) {
    const ssize_t got = read(fd, buffer + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return lastError("read");
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  return done;
}

}  // namespace

Result<bool> sameFileContent(int fromFolder, int toFolder, const char* name) {
  constexpr int flags = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  UniqueFd from(openat(fromFolder, name, flags));
  if (from.get() < 0) return lastError("openat");
  UniqueFd to(openat(toFolder, name, flags));
  if (to.get() < 0) return lastError("openat");
  if (const auto one = extentsOf(from.get())) {
    const auto other = extentsOf(to.get());
    if (other && *one == *other) return true;
  }
  constexpr size_t piece = 256 << 10;
  std::vector<char> memory(2 * piece);
  while (true) {
    Result<size_t> one = readUp(from.get(), memory.data(), piece);
    if (!one) return one.error();
    Result<size_t> other = readUp(to.get(), memory.data() + piece, piece);
    if (!other) return other.error();
    if (one.value() != other.value() || std::memcmp(memory.data(), memory.data() + piece, one.value()) != 0) return false;
    if (one.value() < piece) return true;
  }
}

Result<bool> sameLinkText(int fromFolder, int toFolder, const char* name) {
  Result<std::string> from = readLink(fromFolder, name);
  if (!from) return from.error();
  Result<std::string> to = readLink(toFolder, name);
  if (!to) return to.error();
  return from.value() == to.value();
}

}  // namespace agentrewind
