#include "mounting.hpp"

#include <sys/file.h>
#include <sys/mount.h>

namespace agentrewind {

Status mountAt(const std::string& source, const std::string& target, const std::string& kind, unsigned long flags,
               const std::string& data) {
  const auto orNull = [](const std::string& text) { return text.empty() ? nullptr : text.c_str(); };
  return check(mount(orNull(source), target.c_str(), orNull(kind), flags, orNull(data)), "mount");
}

Status unmountAt(const std::string& target, int flags) { return check(umount2(target.c_str(), flags), "umount"); }

Result<bool> lockFile(int fd, LockKind kind) {
  const int how = kind == LockKind::none ? LOCK_UN : (kind == LockKind::shared ? LOCK_SH : LOCK_EX) | LOCK_NB;
  while (flock(fd, how) < 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno != EINTR) return lastError("flock");
  }
  return true;
}

}  // namespace agentrewind
