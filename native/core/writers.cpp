#include "writers.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>

#include "mappings.hpp"

namespace agentrewind {
namespace {

using Listing = std::unique_ptr<DIR, int (*)(DIR*)>;

/** The link of a descriptor in /proc has the owner's write bit where the file is open for writing. */
bool isWritable(int folder, const char* descriptor) {
  struct stat link;
  return fstatat(folder, descriptor, &link, AT_SYMLINK_NOFOLLOW) == 0 && (link.st_mode & S_IWUSR) != 0;
}

}  // namespace

std::vector<std::pair<uint64_t, int>> findWriters(const std::vector<uint64_t>& inodes) {
  std::vector<std::pair<uint64_t, int>> found;
  const auto wanted = [&](uint64_t inode) { return std::binary_search(inodes.begin(), inodes.end(), inode); };
  const Listing processes(opendir("/proc"), closedir);
  if (inodes.empty() || !processes) return found;
  const int self = getpid();
  while (const dirent* entry = readdir(processes.get())) {
    const int process = atoi(entry->d_name);
    if (process <= 0 || process == self) continue;
    const Listing descriptors(opendir(("/proc/" + std::string(entry->d_name) + "/fd").c_str()), closedir);
    while (const dirent* one = descriptors ? readdir(descriptors.get()) : nullptr) {
      struct stat file;
      const int folder = dirfd(descriptors.get());
      if (one->d_name[0] == '.' || fstatat(folder, one->d_name, &file, 0) < 0) continue;
      if (S_ISREG(file.st_mode) && wanted(file.st_ino) && isWritable(folder, one->d_name)) {
        found.emplace_back(file.st_ino, process);
      }
    }
    for (const uint64_t inode : sharedWritableInodes(process)) {
      if (wanted(inode)) found.emplace_back(inode, process);
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace agentrewind
