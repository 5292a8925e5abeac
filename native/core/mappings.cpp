#include "mappings.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

#include "unique-fd.hpp"
#include "workers.hpp"

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

/** The kernel's own threads, which map nothing, are the children of process 2 where it can be seen. Sorted. */
std::vector<int> kernelThreads() {
  std::vector<int> threads;
  constexpr unsigned long kernelThread = 0x00200000;  // PF_KTHREAD
  std::ifstream stat("/proc/2/stat");
  std::string text;
  unsigned long flags = 0;
  if (!std::getline(stat, text) || text.rfind(')') == std::string::npos) return threads;
  if (sscanf(text.c_str() + text.rfind(')') + 1, " %*c %*d %*d %*d %*d %*d %lu", &flags) != 1) return threads;
  if ((flags & kernelThread) == 0) return threads;
  std::ifstream children("/proc/2/task/2/children");
  for (int thread; children >> thread;) threads.push_back(thread);
  std::sort(threads.begin(), threads.end());
  return threads;
}

std::vector<int> userProcesses() {
  std::vector<int> processes;
  const std::vector<int> kernel = kernelThreads();
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(opendir("/proc"), closedir);
  while (const dirent* entry = listing ? readdir(listing.get()) : nullptr) {
    const int process = atoi(entry->d_name);
    if (process > 0 && !std::binary_search(kernel.begin(), kernel.end(), process)) processes.push_back(process);
  }
  return processes;
}

}  // namespace

std::vector<uint64_t> sharedWritableInodes(int process) {
  std::vector<uint64_t> inodes;
  const UniqueFd maps(open(("/proc/" + std::to_string(process) + "/maps").c_str(), O_RDONLY | O_CLOEXEC));
  if (maps.get() >= 0 && !queryMappings(maps.get(), inodes)) readMappings(maps.get(), inodes);
  return inodes;
}

std::vector<uint64_t> sharedWritableInodes() {
  const std::vector<int> processes = userProcesses();
  const unsigned workers = workerCount();
  std::vector<std::vector<uint64_t>> found(workers);
  // A few at a time: one process is a matter of microseconds.
  constexpr size_t atOnce = 32;
  parallelFor((processes.size() + atOnce - 1) / atOnce, workers, [&](size_t index, unsigned worker) {
    const size_t to = std::min(processes.size(), (index + 1) * atOnce);
    for (size_t i = index * atOnce; i < to; i++) {
      const std::vector<uint64_t> inodes = sharedWritableInodes(processes[i]);
      found[worker].insert(found[worker].end(), inodes.begin(), inodes.end());
    }
  });
  std::vector<uint64_t> inodes;
  for (const std::vector<uint64_t>& some : found) inodes.insert(inodes.end(), some.begin(), some.end());
  std::sort(inodes.begin(), inodes.end());
  inodes.erase(std::unique(inodes.begin(), inodes.end()), inodes.end());
  return inodes;
}

}  // namespace agentrewind
