#include "mappings.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "processes.hpp"
#include "unique-fd.hpp"

namespace agentrewind {
namespace {

// PROCMAP_QUERY (Linux 6.11): asks for one mapping by its properties instead of printing all of them. Written out because older kernel headers lack it.
struct Query {
  uint64_t size;
  uint64_t flags;
  uint64_t address;
  uint64_t start;
  uint64_t end;
  uint64_t vmaFlags;
  uint64_t pageSize;
  uint64_t offset;
  uint64_t inode;
  uint32_t devMajor;
  uint32_t devMinor;
  uint32_t nameSize;
  uint32_t buildIdSize;
  uint64_t nameAddress;
  uint64_t buildIdAddress;
};
static_assert(sizeof(Query) == 104, "struct procmap_query");
constexpr unsigned long procmapQuery = _IOWR('f', 17, Query);
constexpr uint64_t writable = 0x02;
constexpr uint64_t shared = 0x08;
constexpr uint64_t coveringOrNext = 0x10;
constexpr uint64_t fileBacked = 0x20;

/** False where the kernel has no such query. */
bool queryMappings(int maps, std::vector<uint64_t>& inodes) {
  Query query{};
  while (true) {
    query.size = sizeof(query);
    query.flags = writable | shared | coveringOrNext | fileBacked;
    if (ioctl(maps, procmapQuery, &query) < 0) return errno != ENOTTY;
    inodes.push_back(query.inode);
    query.address = query.end;
    query.nameSize = 0;
    query.buildIdSize = 0;
  }
}

void readMappings(int maps, std::vector<uint64_t>& inodes) {
  const int copy = dup(maps);
  if (copy < 0) return;
  FILE* file = fdopen(copy, "r");
  if (file == nullptr) {
    close(copy);
    return;
  }
  char* line = nullptr;
  size_t capacity = 0;
  while (getline(&line, &capacity, file) > 0) {
    char permissions[5];
    unsigned long long inode = 0;
    if (sscanf(line, "%*s %4s %*s %*s %llu", permissions, &inode) == 2 && permissions[1] == 'w' &&
        permissions[3] == 's' && inode != 0) {
      inodes.push_back(inode);
    }
  }
  free(line);
  fclose(file);
}

}  // namespace

std::vector<uint64_t> sharedWritableInodes(int process) {
  std::vector<uint64_t> inodes;
  const UniqueFd maps(open(("/proc/" + std::to_string(process) + "/maps").c_str(), O_RDONLY | O_CLOEXEC));
  if (maps.get() >= 0 && !queryMappings(maps.get(), inodes)) readMappings(maps.get(), inodes);
  return inodes;
}

std::vector<uint64_t> sharedWritableInodes() {
  return gatherFromProcesses([](int process, InUse& found) {
           const std::vector<uint64_t> mapped = sharedWritableInodes(process);
           found.mapped.insert(found.mapped.end(), mapped.begin(), mapped.end());
         })
      .mapped;
}

}  // namespace agentrewind
