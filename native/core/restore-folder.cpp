#include "restore-folder.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include "change-inode.hpp"

namespace agentrewind {
namespace {

std::string_view parentOf(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash);
}

}  // namespace

Result<Location> Folder::locate(std::string_view path) {
  const std::string_view folder = parentOf(path);
  if (folder.empty()) return agentrewind::locate(root_, path);
  if (!open_ || folder != path_) {
    forget();
    Result<UniqueFd> opened = openBeneath(root_, folder, O_PATH | O_DIRECTORY, 0);
    if (!opened) return opened.error();
    fd_ = std::move(opened.value());
    path_ = folder;
    open_ = true;
  }
  const std::string_view name = path.substr(folder.size() + 1);
  if (name.empty() || name == "." || name == ".." || name.find('\0') != std::string_view::npos)
    return Errno{EINVAL, "resolve"};
  return Location(UniqueFd(), fd_.get(), name);
}

void Folder::forget() {
  open_ = false;
  fd_ = UniqueFd();
}

bool openFolderAbove(int root, std::string_view path) {
  Result<Location> folder = locate(root, parentOf(path));
  if (!folder) return false;
  struct stat found;
  if (fstatat(folder.value().parent(), folder.value().name(), &found, AT_SYMLINK_NOFOLLOW) < 0) return false;
  if (!S_ISDIR(found.st_mode) || (found.st_mode & S_IRWXU) == S_IRWXU) return false;
  return static_cast<bool>(setMode(folder.value(), (found.st_mode & 07777) | S_IRWXU));
}

}  // namespace agentrewind
