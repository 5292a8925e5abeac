#include "statx.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include <cstring>
#include <limits>

namespace agentrewind {
namespace {

constexpr size_t mountIdOffset = 0x90;  // stx_mnt_id; older headers have spare room there
static_assert(sizeof(struct statx) == 256, "struct statx has a fixed size");

}  // namespace

int64_t nanoseconds(const statx_timestamp& time) {
  int64_t total;
  if (__builtin_mul_overflow(static_cast<int64_t>(time.tv_sec), int64_t{1000000000}, &total) ||
      __builtin_add_overflow(total, static_cast<int64_t>(time.tv_nsec), &total)) {
    return time.tv_sec < 0 ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
  }
  return total;
}

uint64_t mountId(const struct statx& found) {
  if ((found.stx_mask & mountIdMask) == 0) return 0;
  uint64_t id;
  std::memcpy(&id, reinterpret_cast<const char*>(&found) + mountIdOffset, sizeof(id));
  return id;
}

Result<Stat> statAt(int at, const char* name) {
  struct statx found;
  const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | (*name == '\0' ? AT_EMPTY_PATH : 0);
  if (statx(at, name, flags, STATX_BASIC_STATS | mountIdMask, &found) < 0) return lastError("statx");
  Stat stat;
  stat.ino = found.stx_ino;
  stat.size = found.stx_size;
  stat.blocks = found.stx_blocks;
  stat.mount = mountId(found);
  stat.mtimeNs = nanoseconds(found.stx_mtime);
  stat.ctimeNs = nanoseconds(found.stx_ctime);
  stat.devMajor = found.stx_dev_major;
  stat.devMinor = found.stx_dev_minor;
  stat.rdevMajor = found.stx_rdev_major;
  stat.rdevMinor = found.stx_rdev_minor;
  stat.uid = found.stx_uid;
  stat.gid = found.stx_gid;
  stat.nlink = found.stx_nlink;
  stat.mode = found.stx_mode;
  return stat;
}

bool hasOwnTime(const Stat& stat, int64_t nowNs) {
  constexpr int64_t tickNs = 20'000'000;
  constexpr int64_t secondNs = 1'000'000'000;
  return stat.ctimeNs < nowNs - (stat.ctimeNs % secondNs == 0 ? 2 * secondNs : tickNs);
}

int64_t nowNs() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000000000 + now.tv_nsec;
}

}  // namespace agentrewind
