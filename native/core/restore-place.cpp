// Between the look at an entry and its replacement lies one system call: what is stored to it by another process then is not seen.
#include "restore-place.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "restore-metadata.hpp"
#include "write-faults.hpp"

namespace agentrewind {
namespace {

constexpr unsigned noReplace = 1;  // RENAME_NOREPLACE

EntryType typeOf(mode_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG:
      return EntryType::file;
    case S_IFDIR:
      return EntryType::directory;
    case S_IFLNK:
      return EntryType::symlink;
    case S_IFIFO:
      return EntryType::fifo;
    case S_IFCHR:
      return EntryType::characterDevice;
    case S_IFBLK:
      return EntryType::blockDevice;
    default:
      return EntryType::socket;
  }
}

int64_t nanosecondsOf(const timespec& time) {
  int64_t total;
  if (__builtin_mul_overflow(static_cast<int64_t>(time.tv_sec), int64_t{1000000000}, &total) ||
      __builtin_add_overflow(total, static_cast<int64_t>(time.tv_nsec), &total)) {
    return time.tv_sec < 0 ? std::numeric_limits<int64_t>::min() : std::numeric_limits<int64_t>::max();
  }
  return total;
}

Outcome moved(const char* syscall) { return failure(FailureKind::moved, Errno{0, syscall}); }

enum class Found { gone, asKnown, other };

Result<Found> look(const Location& location, const std::optional<Known>& known) {
  struct stat found;
  if (fstatat(location.parent(), location.name(), &found, AT_SYMLINK_NOFOLLOW) < 0) {
    if (errno == ENOENT) return Found::gone;
    return lastError("fstatat");
  }
  if (!known || typeOf(found.st_mode) != known->type || found.st_ino != known->ino) return Found::other;
  if (nanosecondsOf(found.st_mtim) != known->mtimeNs) return Found::other;
  if (known->type == EntryType::file && static_cast<uint64_t>(found.st_size) != known->size) return Found::other;
  if (!known->shared && nanosecondsOf(found.st_ctim) != known->ctimeNs) return Found::other;
  return Found::asKnown;
}

Status renameEntry(const Location& from, const Location& to, unsigned flags) {
  return check(
      changing([&] { return syscall(SYS_renameat2, from.parent(), from.name(), to.parent(), to.name(), flags); }),
      "renameat2");
}

/** The path must be free. */
Outcome renameToFree(const Location& from, const Location& to) {
  Status renamed = renameEntry(from, to, noReplace);
  // Some file systems do not know the flag.
  if (!renamed && renamed.error().code == EINVAL) {
    struct stat found;
    if (fstatat(to.parent(), to.name(), &found, AT_SYMLINK_NOFOLLOW) == 0) return moved("fstatat");
    renamed = renameEntry(from, to, 0);
  }
  if (!renamed && renamed.error().code == EEXIST) return moved("renameat2");
  return refusal(renamed);
}

}  // namespace

Outcome removeEntry(const Location& location, const Job& job) {
  Result<Found> found = look(location, job.known);
  if (!found) return failure(FailureKind::refused, found.error());
  if (found.value() == Found::gone) return std::nullopt;
  if (found.value() == Found::other) return moved("fstatat");
  return refusal(check(changing([&] { return unlinkat(location.parent(), location.name(), 0); }), "unlinkat"));
}

Outcome removeFolder(const Location& location) {
  if (changing([&] { return unlinkat(location.parent(), location.name(), AT_REMOVEDIR); }) == 0 || errno == ENOENT) return std::nullopt;
  if (errno == ENOTDIR) return moved("unlinkat");
  return failure(FailureKind::refused, lastError("unlinkat"));
}

Outcome placeEntry(const Location& staged, const Location& location, const Job& job) {
  if (!job.known) return renameToFree(staged, location);
  Result<Found> found = look(location, job.known);
  if (!found) return failure(FailureKind::refused, found.error());
  if (found.value() == Found::gone) return renameToFree(staged, location);
  if (found.value() == Found::other) return moved("fstatat");
  return refusal(renameEntry(staged, location, 0));
}

Outcome linkEntry(const Location& first, const Location& temporary, const Location& location, const Job& job) {
  if (!job.known) {
    Status linked = check(
        changing([&] { return linkat(first.parent(), first.name(), location.parent(), location.name(), 0); }), "linkat");
    if (!linked && linked.error().code == EEXIST) return moved("linkat");
    return refusal(linked);
  }
  Status linked = check(
      changing([&] { return linkat(first.parent(), first.name(), temporary.parent(), temporary.name(), 0); }), "linkat");
  if (!linked) return refusal(linked);
  return placeEntry(temporary, location, job);
}

Outcome changeMetadata(const Location& location, const Job& job) {
  if (job.entry->type == EntryType::directory) {
    struct stat found;
    if (fstatat(location.parent(), location.name(), &found, AT_SYMLINK_NOFOLLOW) < 0) {
      return failure(FailureKind::refused, lastError("fstatat"));
    }
    if (!S_ISDIR(found.st_mode)) return moved("fstatat");
  } else {
    Result<Found> found = look(location, job.known);
    if (!found) return failure(FailureKind::refused, found.error());
    if (found.value() != Found::asKnown) return moved("fstatat");
  }
  return restoreMetadata(location, *job.entry);
}

Status removeTree(int root, std::string_view path) {
  Result<Location> location = locate(root, path);
  if (!location) {
    if (location.error().code == ENOENT) return Done{};
    return location.error();
  }
  const int parent = location.value().parent();
  const char* name = location.value().name();
  if (changing([&] { return unlinkat(parent, name, 0); }) == 0 || errno == ENOENT) return Done{};
  // Linux says EISDIR, POSIX allows EPERM.
  if (errno != EISDIR && errno != EPERM) return lastError("unlinkat");
  std::vector<std::string> names;
  {
    Result<UniqueFd> opened = openBeneath(root, path, O_RDONLY | O_DIRECTORY, 0);
    if (!opened) return opened.error();
    const int fd = opened.value().get();
    std::unique_ptr<DIR, int (*)(DIR*)> folder(fdopendir(fd), closedir);
    if (!folder) return lastError("fdopendir");
    opened.value().release();
    while (const dirent* one = readdir(folder.get())) {
      const std::string_view found(one->d_name);
      if (found == "." || found == "..") continue;
      if (unlinkat(fd, one->d_name, 0) != 0) names.emplace_back(found);
    }
  }
  // Not one open folder for each level: staged trees may be deeper than the process may open files.
  for (const std::string& one : names) {
    Status removed = removeTree(root, std::string(path) + "/" + one);
    if (!removed) return removed;
  }
  return check(changing([&] { return unlinkat(parent, name, AT_REMOVEDIR); }), "unlinkat");
}

bool isImmutable(const Location& location) {
  const auto forbids = [](int at, const char* name, int flags) {
    struct statx found;
    if (statx(at, name, flags | AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_TYPE, &found) < 0) return false;
    return (found.stx_attributes & (STATX_ATTR_IMMUTABLE | STATX_ATTR_APPEND)) != 0;
  };
  return forbids(location.parent(), location.name(), 0) || forbids(location.parent(), "", AT_EMPTY_PATH);
}

}  // namespace agentrewind
