// chmod, chown and utimens without following.
#include "change-inode.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>

namespace agentrewind {
namespace {

constexpr long fchmodat2Number = 452;  // Linux 6.6, the same on all architectures

/** The way before fchmodat2: a handle that does not follow, then its magic link. */
Status setModeThroughHandle(const Location& location, mode_t mode) {
  UniqueFd handle(openat(location.parent(), location.name(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (handle.get() < 0) return lastError("openat");
  struct stat found;
  if (fstatat(handle.get(), "", &found, AT_EMPTY_PATH) < 0) return lastError("fstatat");
  // Some file systems would change the link and report an error all the same.
  if (S_ISLNK(found.st_mode)) return Errno{EOPNOTSUPP, "chmod"};
  const std::string link = "/proc/self/fd/" + std::to_string(handle.get());
  return check(chmod(link.c_str(), mode), "chmod");
}

}  // namespace

timespec toTimespec(int64_t nanoseconds) {
  constexpr int64_t second = 1000000000;
  timespec time;
  time.tv_sec = nanoseconds / second;
  time.tv_nsec = nanoseconds % second;
  if (time.tv_nsec < 0) {
    time.tv_sec -= 1;
    time.tv_nsec += second;
  }
  return time;
}

Status setMode(const Location& location, mode_t mode) {
  Status changed =
      check(syscall(fchmodat2Number, location.parent(), location.name(), mode, AT_SYMLINK_NOFOLLOW), "fchmodat2");
  // EPERM may be a filter's answer or the file's own; the second way repeats the latter.
  if (!changed && (changed.error().code == ENOSYS || changed.error().code == EPERM)) {
    return setModeThroughHandle(location, mode);
  }
  return changed;
}

Status setMode(int root, std::string_view path, mode_t mode) {
  Result<Location> location = locate(root, path);
  if (!location) return location.error();
  return setMode(location.value(), mode);
}

Status setOwner(int root, std::string_view path, uid_t uid, gid_t gid) {
  Result<Location> location = locate(root, path);
  if (!location) return location.error();
  return check(fchownat(location.value().parent(), location.value().name(), uid, gid, AT_SYMLINK_NOFOLLOW),
               "fchownat");
}

Status setTimes(const Location& location, std::optional<int64_t> atimeNs, int64_t mtimeNs) {
  timespec times[2] = {{0, UTIME_OMIT}, toTimespec(mtimeNs)};
  if (atimeNs) times[0] = toTimespec(*atimeNs);
  return check(utimensat(location.parent(), location.name(), times, AT_SYMLINK_NOFOLLOW), "utimensat");
}

Status setTimes(int root, std::string_view path, std::optional<int64_t> atimeNs, int64_t mtimeNs) {
  Result<Location> location = locate(root, path);
  if (!location) return location.error();
  return setTimes(location.value(), atimeNs, mtimeNs);
}

}  // namespace agentrewind
