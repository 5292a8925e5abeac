// readdir, sort, statx.
#include "listing.hpp"

#include <dirent.h>
#include <fcntl.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "beneath.hpp"
#include "entry.hpp"

namespace agentrewind {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

}  // namespace

Result<std::string> readDirectory(int root, std::string_view path) {
  Result<UniqueFd> opened = openBeneath(root, path, O_RDONLY | O_DIRECTORY, 0);
  if (!opened) return opened.error();
  const int fd = opened.value().get();
  std::unique_ptr<DIR, CloseDirectory> directory(fdopendir(fd));
  if (!directory) return lastError("fdopendir");
  opened.value().release();  // closedir closes it

  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* entry = readdir(directory.get());
    if (entry == nullptr) {
      if (errno != 0) return lastError("getdents64");
      break;
    }
    const std::string_view name(entry->d_name);
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());

  std::string records;
  records.reserve(names.size() * (sizeof(EntryRecord) + 24));
  for (const std::string& name : names) {
    Status status = appendRecord(fd, name.c_str(), name, records);
    if (!status && status.error().code != ENOENT) return status.error();
  }
  return records;
}

}  // namespace agentrewind
