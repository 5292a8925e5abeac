// Path resolution by openat2 (Linux 5.6), or one component at a time where the kernel or a filter refuses it.
#include "beneath.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cstdint>

namespace agentrewind {
namespace {

// The ABI of openat2(2), written out because older kernel headers lack it. The number is the same on all architectures.
constexpr long openat2Number = 437;
constexpr uint64_t resolveNoMagiclinks = 0x02;
constexpr uint64_t resolveNoSymlinks = 0x04;
constexpr uint64_t resolveBeneath = 0x08;
constexpr uint64_t resolveInRoot = 0x10;

struct OpenHow {
  uint64_t flags;
  uint64_t mode;
  uint64_t resolve;
};
static_assert(sizeof(OpenHow) == 24, "OPEN_HOW_SIZE_VER0");

constexpr int directoryFlags = O_PATH | O_DIRECTORY | O_CLOEXEC;

constexpr uint64_t resolveLinkFree = resolveBeneath | resolveNoSymlinks | resolveNoMagiclinks;

int openat2(int at, const char* path, int flags, mode_t mode, uint64_t resolve = resolveLinkFree) {
  const bool creates = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
  OpenHow how{static_cast<uint64_t>(static_cast<uint32_t>(flags)), creates ? mode : 0u, resolve};
  long fd;
  do {
    fd = syscall(openat2Number, at, path, &how, sizeof(how));
  } while (fd < 0 && errno == EINTR);
  return static_cast<int>(fd);
}

int openat(int at, const char* name, int flags, mode_t mode) {
  int fd;
  do {
    fd = ::openat(at, name, flags, mode);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

/** EPERM is what system call filters answer that predate the call. */
bool isRefused(int code) { return code == ENOSYS || code == EPERM; }

bool isWellFormed(std::string_view path) {
  if (path.empty()) return true;
  if (path.find('\0') != std::string_view::npos) return false;
  while (true) {
    const size_t slash = path.find('/');
    const std::string_view component = path.substr(0, slash);
    if (component.empty() || component == "." || component == "..") return false;
    if (slash == std::string_view::npos) return true;
    path.remove_prefix(slash + 1);
  }
}

/** Cuts the longest run of whole components off the front that one system call takes; empty if the first is too long. */
std::string_view takeChunk(std::string_view& rest, size_t limit) {
  size_t length = rest.size();
  if (length > limit) {
    length = rest.rfind('/', limit);
    if (length == std::string_view::npos) return {};
  }
  const std::string_view chunk = rest.substr(0, length);
  rest.remove_prefix(length < rest.size() ? length + 1 : length);
  return chunk;
}

std::string_view takeComponent(std::string_view& rest) {
  const size_t slash = rest.find('/');
  const std::string_view component = rest.substr(0, slash);
  rest.remove_prefix(slash == std::string_view::npos ? rest.size() : slash + 1);
  return component;
}

Result<UniqueFd> walkDirectories(int at, std::string_view directories) {
  UniqueFd current;
  while (!directories.empty()) {
    const std::string name(takeComponent(directories));
    UniqueFd next(openat(at, name.c_str(), directoryFlags | O_NOFOLLOW, 0));
    if (next.get() < 0) {
      const Errno error = lastError("openat");
      struct stat found;
      if (error.code != ENOTDIR || fstatat(at, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) < 0) return error;
      // As openat2 does, tell symbolic links from other files. A directory by now was something else a moment ago,
      // most likely a link: it must not pass for a missing entry.
      return S_ISLNK(found.st_mode) || S_ISDIR(found.st_mode) ? Errno{ELOOP, "openat"} : error;
    }
    current = std::move(next);
    at = current.get();
  }
  return current;
}

Result<UniqueFd> openDirectories(int root, std::string_view directories) {
  UniqueFd current;
  int at = root;
  while (!directories.empty()) {
    const std::string chunk(takeChunk(directories, PATH_MAX - 1));
    if (chunk.empty()) return Errno{ENAMETOOLONG, "openat2"};
    UniqueFd next(openat2(at, chunk.c_str(), directoryFlags, 0));
    if (next.get() < 0) {
      const Errno error = lastError("openat2");
      if (!isRefused(error.code)) return error;
      Result<UniqueFd> walked = walkDirectories(at, chunk);
      if (!walked) return walked;
      next = std::move(walked.value());
    }
    current = std::move(next);
    at = current.get();
  }
  return current;
}

}  // namespace

Result<Location> locate(int root, std::string_view path) {
  if (!isWellFormed(path)) return Errno{EINVAL, "resolve"};
  if (path.empty()) return Location(UniqueFd(), root, ".");
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return Location(UniqueFd(), root, path);
  Result<UniqueFd> parent = openDirectories(root, path.substr(0, slash));
  if (!parent) return parent.error();
  return Location(std::move(parent.value()), root, path.substr(slash + 1));
}

Result<UniqueFd> openBeneath(int root, std::string_view path, int flags, mode_t mode) {
  if (!isWellFormed(path)) return Errno{EINVAL, "resolve"};
  flags |= O_NOFOLLOW | O_CLOEXEC;
  // openat2 refuses flags that O_PATH would ignore.
  if ((flags & O_PATH) == 0) flags |= O_NOCTTY;

  if (path.size() < PATH_MAX) {
    const std::string whole(path.empty() ? std::string_view(".") : path);
    UniqueFd fd(openat2(root, whole.c_str(), flags, mode));
    if (fd.get() >= 0) return fd;
    const Errno error = lastError("openat2");
    // EPERM may also be the file's own answer (immutable, O_NOATIME); then the second way repeats it.
    if (!isRefused(error.code)) return error;
  }
  Result<Location> location = locate(root, path);
  if (!location) return location.error();
  UniqueFd fd(openat(location.value().parent(), location.value().name(), flags, mode));
  if (fd.get() < 0) return lastError("openat");
  return fd;
}

Result<UniqueFd> openInside(int root, std::string_view path, int flags, mode_t mode) {
  if (path.find('\0') != std::string_view::npos) return Errno{EINVAL, "openat2"};
  const std::string text(path.empty() ? std::string_view(".") : path);
  flags |= O_CLOEXEC;
  if ((flags & O_PATH) == 0) flags |= O_NOCTTY;
  UniqueFd fd(openat2(root, text.c_str(), flags, mode, resolveInRoot | resolveNoMagiclinks));
  if (fd.get() < 0) return lastError("openat2");
  return fd;
}

}  // namespace agentrewind
