#include "open-files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <memory>
#include <string>

#include "mappings.hpp"

namespace agentrewind {
namespace {

using Listing = std::unique_ptr<DIR, int (*)(DIR*)>;

void addOpen(int process, dev_t device, std::vector<uint64_t>& inodes) {
  const Listing descriptors(opendir(("/proc/" + std::to_string(process) + "/fd").c_str()), closedir);
  while (const dirent* one = descriptors ? readdir(descriptors.get()) : nullptr) {
    if (one->d_name[0] == '.') continue;
    const int folder = dirfd(descriptors.get());
    struct stat file;
    if (fstatat(folder, one->d_name, &file, 0) < 0 || !S_ISREG(file.st_mode) || file.st_dev != device) continue;
    // The link of a descriptor has the owner's write bit where the file is open for writing.
    struct stat link;
    if (fstatat(folder, one->d_name, &link, AT_SYMLINK_NOFOLLOW) == 0 && (link.st_mode & S_IWUSR) != 0) {
      inodes.push_back(file.st_ino);
    }
  }
}

}  // namespace

InUse filesInUse(uint32_t deviceMajor, uint32_t deviceMinor) {
  const dev_t device = makedev(deviceMajor, deviceMinor);
  return gatherFromProcesses([&](int process, InUse& found) {
    const std::vector<uint64_t> mapped = sharedWritableInodes(process);
    found.mapped.insert(found.mapped.end(), mapped.begin(), mapped.end());
    addOpen(process, device, found.written);
  });
}

}  // namespace agentrewind
