// The l*xattr calls take a path only, so the resolved parent is named through /proc.
#include "xattr.hpp"

#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>

#include "beneath.hpp"

namespace agentrewind {
namespace {

std::string procPath(const Location& location) {
  return "/proc/self/fd/" + std::to_string(location.parent()) + "/" + location.name();
}

/** Without /proc every entry would seem to be missing. */
Errno xattrError(const char* syscall) {
  const Errno error = lastError(syscall);
  if (error.code == ENOENT && access("/proc/self/fd", F_OK) != 0) return Errno{ENOSYS, syscall};
  return error;
}

/** Calls `read(buffer, size)` until the buffer holds the whole answer, which may grow meanwhile. */
template <typename Read>
Result<std::string> readAll(const char* syscall, Read read) {
  std::string buffer(1024, '\0');
  while (true) {
    ssize_t length = read(buffer.data(), buffer.size());
    if (length >= 0) {
      buffer.resize(static_cast<size_t>(length));
      return buffer;
    }
    if (errno != ERANGE) return xattrError(syscall);
    length = read(nullptr, 0);
    if (length < 0) return xattrError(syscall);
    buffer.resize(std::max(static_cast<size_t>(length), buffer.size()) + 64);
  }
}

bool isTerminatable(std::string_view name) { return name.find('\0') == std::string_view::npos; }

/** `list(buffer, size)` and `get(name, buffer, size)` are one family of the calls. */
template <typename List, typename Get>
Result<Xattrs> collect(const char* listName, List list, const char* getName, Get get) {
  Result<std::string> names = readAll(listName, list);
  if (!names) {
    if (names.error().code == ENOTSUP) return Xattrs{};
    return names.error();
  }
  Xattrs xattrs;
  std::string_view rest(names.value());
  while (!rest.empty()) {
    std::string name(rest.substr(0, rest.find('\0')));
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    Result<std::string> value =
        readAll(getName, [&](char* buffer, size_t size) { return get(name.c_str(), buffer, size); });
    if (!value) {
      if (value.error().code == ENODATA) continue;  // removed since it was listed
      return value.error();
    }
    xattrs.emplace_back(std::move(name), std::move(value.value()));
  }
  std::sort(xattrs.begin(), xattrs.end());
  return xattrs;
}

}  // namespace

Result<Xattrs> getXattrs(int root, std::string_view path) {
  Result<Location> location = locate(root, path);
  if (!location) return location.error();
  const std::string file = procPath(location.value());
  return collect(
      "llistxattr", [&](char* buffer, size_t size) { return llistxattr(file.c_str(), buffer, size); },
      "lgetxattr",
      [&](const char* name, char* buffer, size_t size) { return lgetxattr(file.c_str(), name, buffer, size); });
}

Result<Xattrs> getXattrs(int fd) {
  return collect(
      "flistxattr", [&](char* buffer, size_t size) { return flistxattr(fd, buffer, size); }, "fgetxattr",
      [&](const char* name, char* buffer, size_t size) { return fgetxattr(fd, name, buffer, size); });
}

Status setXattr(int root, std::string_view path, std::string_view name, std::string_view value) {
  if (!isTerminatable(name)) return Errno{EINVAL, "lsetxattr"};
  Result<Location> location = locate(root, path);
  if (!location) return location.error();
  const std::string file = procPath(location.value());
  if (lsetxattr(file.c_str(), std::string(name).c_str(), value.data(), value.size(), 0) < 0) {
    return xattrError("lsetxattr");
  }
  return Done{};
}

Status removeXattr(int root, std::string_view path, std::string_view name) {
  if (!isTerminatable(name)) return Errno{EINVAL, "lremovexattr"};
  Result<Location> location = locate(root, path);
  if (!location) return location.error();
  const std::string file = procPath(location.value());
  if (lremovexattr(file.c_str(), std::string(name).c_str()) < 0) return xattrError("lremovexattr");
  return Done{};
}

}  // namespace agentrewind
