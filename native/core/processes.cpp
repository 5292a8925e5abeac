#include "processes.hpp"

#include <dirent.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "workers.hpp"

namespace agentrewind {
namespace {

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

InUse gatherFromProcesses(const std::function<void(int process, InUse& found)>& look) {
  const std::vector<int> processes = userProcesses();
  const unsigned workers = workerCount();
  std::vector<InUse> found(workers);
  // A few at a time: one process is a matter of microseconds.
  constexpr size_t atOnce = 8;
  parallelFor((processes.size() + atOnce - 1) / atOnce, workers, [&](size_t index, unsigned worker) {
    const size_t to = std::min(processes.size(), (index + 1) * atOnce);
    for (size_t i = index * atOnce; i < to; i++) look(processes[i], found[worker]);
  });
  InUse all;
  for (const InUse& some : found) {
    all.mapped.insert(all.mapped.end(), some.mapped.begin(), some.mapped.end());
    all.written.insert(all.written.end(), some.written.begin(), some.written.end());
  }
  for (std::vector<uint64_t>* values : {&all.mapped, &all.written}) {
    std::sort(values->begin(), values->end());
    values->erase(std::unique(values->begin(), values->end()), values->end());
  }
  return all;
}

}  // namespace agentrewind
