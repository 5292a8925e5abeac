// Changing the owner clears set-id bits and file capabilities, so it comes first; changing anything moves no time but that of change.
#include "restore-metadata.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "change-inode.hpp"
#include "xattr.hpp"
#include "write-faults.hpp"

namespace agentrewind {
namespace {

bool sameXattrs(const Xattrs& present, const StoredEntry& entry) {
  return std::equal(present.begin(), present.end(), entry.xattrs.begin(), entry.xattrs.end(),
                    [](const auto& one, const auto& other) {
                      return one.first == other.first && one.second == other.second;
                    });
}

Status restoreXattrs(const Location& location, const Xattrs& present, const StoredEntry& entry) {
  for (const auto& one : present) {
    const bool wanted = std::any_of(entry.xattrs.begin(), entry.xattrs.end(),
                                    [&](const auto& other) { return other.first == one.first; });
    if (wanted) continue;
    Status removed = removeXattr(location, one.first);
    if (!removed) return removed;
  }
  for (const auto& [name, value] : entry.xattrs) {
    Status set = setXattr(location, name, value);
    if (!set) return set;
  }
  return Done{};
}

/** What a new file has got from the folder's default ACL or a security module is removed unless it is wanted. */
Status restoreXattrs(int fd, const StoredEntry& entry) {
  std::string names(1024, '\0');
  ssize_t length = flistxattr(fd, names.data(), names.size());
  while (length < 0 && errno == ERANGE) {
    names.resize(names.size() * 4);
    length = flistxattr(fd, names.data(), names.size());
  }
  if (length < 0 && errno != ENOTSUP) return lastError("flistxattr");
  std::string_view rest(names.data(), length < 0 ? 0 : static_cast<size_t>(length));
  while (!rest.empty()) {
    const std::string name(rest.substr(0, rest.find('\0')));
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    const bool wanted = std::any_of(entry.xattrs.begin(), entry.xattrs.end(),
                                    [&](const auto& one) { return one.first == name; });
    if (!wanted && fremovexattr(fd, name.c_str()) < 0) return lastError("fremovexattr");
  }
  for (const auto& [name, value] : entry.xattrs) {
    if (changing([&] { return fsetxattr(fd, std::string(name).c_str(), value.data(), value.size(), 0); }) < 0) return lastError("fsetxattr");
  }
  return Done{};
}

constexpr uid_t sameId = static_cast<uid_t>(-1);

/** Who may not give a file away may still give it to a group of their own. */
template <typename Change>
Outcome restoreOwner(const struct stat& found, const StoredEntry& entry, bool& touched, Change change) {
  if (found.st_uid == entry.uid && found.st_gid == entry.gid) return std::nullopt;
  if (changing([&] { return change(entry.uid, entry.gid); }) == 0) {
    touched = true;
    return std::nullopt;
  }
  const Errno error = lastError("chown");
  // EINVAL: the id has no meaning in this user namespace.
  if (error.code != EPERM && error.code != EINVAL) return failure(FailureKind::refused, error);
  if (found.st_uid != entry.uid && found.st_gid != entry.gid &&
      changing([&] { return change(sameId, entry.gid); }) == 0) {
    touched = true;
  }
  return failure(FailureKind::owner, error);
}

}  // namespace

Outcome restoreMetadata(const Location& location, const StoredEntry& entry) {
  struct stat found;
  if (fstatat(location.parent(), location.name(), &found, AT_SYMLINK_NOFOLLOW) < 0) return refusal(lastError("fstatat"));
  const bool isLink = S_ISLNK(found.st_mode);
  bool touched = (found.st_mode & 07777) != entry.mode;
  const Outcome owned = restoreOwner(found, entry, touched, [&](uid_t uid, gid_t gid) {
    return fchownat(location.parent(), location.name(), uid, gid, AT_SYMLINK_NOFOLLOW);
  });
  if (owned && owned->kind != FailureKind::owner) return owned;
  Result<Xattrs> present = getXattrs(location);
  if (!present) return refusal(present.error());
  if (!sameXattrs(present.value(), entry)) {
    touched = true;
    // An owner who may not write may not change attributes either.
    if (!isLink && (found.st_mode & S_IWUSR) == 0) {
      Status opened = setMode(location, (found.st_mode & 07777) | S_IWUSR);
      if (!opened) return refusal(opened);
    }
    Status set = restoreXattrs(location, present.value(), entry);
    if (!set) return refusal(set);
  }
  if (!isLink && touched) {
    Status set = setMode(location, entry.mode);
    if (!set) return refusal(set);
  }
  Status dated = setTimes(location, std::nullopt, entry.mtimeNs);
  return dated ? owned : refusal(dated);
}

Outcome restoreMetadata(int fd, const StoredEntry& entry) {
  struct stat found;
  if (fstat(fd, &found) < 0) return refusal(lastError("fstat"));
  bool touched = false;
  const Outcome owned =
      restoreOwner(found, entry, touched, [&](uid_t uid, gid_t gid) { return fchown(fd, uid, gid); });
  if (owned && owned->kind != FailureKind::owner) return owned;
  Status set = restoreXattrs(fd, entry);
  if (!set) return refusal(set);
  if (changing([&] { return fchmod(fd, entry.mode); }) < 0) return refusal(lastError("fchmod"));
  const timespec times[2] = {{0, UTIME_OMIT}, toTimespec(entry.mtimeNs)};
  Status dated = check(changing([&] { return futimens(fd, times); }), "futimens");
  return dated ? owned : refusal(dated);
}

}  // namespace agentrewind
