// The *at family of system calls on resolved locations.
#include "change-name.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <string>

#include "beneath.hpp"
#include "change-inode.hpp"
#include "write-faults.hpp"

namespace agentrewind {

Status makeDirectory(int root, std::string_view path, mode_t mode) {
  Result<Location> location = locate(root, path);
  if (!location) return location.error();
  Status made = check(
      changing([&] { return mkdirat(location.value().parent(), location.value().name(), mode & 0777); }), "mkdirat");
  if (!made) return made;
  return setMode(location.value(), mode);
}

Status makeNode(int root, std::string_view path, mode_t mode, unsigned major, unsigned minor) {
  const mode_t type = mode & S_IFMT;
  // mknodat would take type 0 for a regular file.
  if (type != S_IFIFO && type != S_IFSOCK && type != S_IFCHR && type != S_IFBLK) return Errno{EINVAL, "mknodat"};
  Result<Location> location = locate(root, path);
  if (!location) return location.error();
  const dev_t device = type == S_IFCHR || type == S_IFBLK ? makedev(major, minor) : 0;
  Status made =
      check(mknodat(location.value().parent(), location.value().name(), type | (mode & 0777), device), "mknodat");
  if (!made) return made;
  return setMode(location.value(), mode & 07777);
}

Status makeSymlink(int root, std::string_view target, std::string_view path) {
  if (target.find('\0') != std::string_view::npos) return Errno{EINVAL, "symlinkat"};
  Result<Location> location = locate(root, path);
  if (!location) return location.error();
  const std::string terminated(target);
  return check(symlinkat(terminated.c_str(), location.value().parent(), location.value().name()), "symlinkat");
}

Status makeLink(int root, std::string_view from, std::string_view to) {
  Result<Location> source = locate(root, from);
  if (!source) return source.error();
  Result<Location> target = locate(root, to);
  if (!target) return target.error();
  return check(linkat(source.value().parent(), source.value().name(), target.value().parent(), target.value().name(), 0),
               "linkat");
}

Status unlink(int root, std::string_view path) {
  Result<Location> location = locate(root, path);
  if (!location) return location.error();
  return check(unlinkat(location.value().parent(), location.value().name(), 0), "unlinkat");
}

Status removeDirectory(int root, std::string_view path) {
  Result<Location> location = locate(root, path);
  if (!location) return location.error();
  return check(unlinkat(location.value().parent(), location.value().name(), AT_REMOVEDIR), "unlinkat");
}

Status rename(int root, std::string_view from, std::string_view to, unsigned flags) {
  Result<Location> source = locate(root, from);
  if (!source) return source.error();
  Result<Location> target = locate(root, to);
  if (!target) return target.error();
  return check(syscall(SYS_renameat2, source.value().parent(), source.value().name(), target.value().parent(),
                       target.value().name(), flags),
               "renameat2");
}

}  // namespace agentrewind
