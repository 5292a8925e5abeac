// The processes that can be seen in /proc, and what is found in each of them.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace agentrewind {

/** What is found of files in processes: inodes, sorted. */
struct InUse {
  std::vector<uint64_t> mapped;
  std::vector<uint64_t> written;
};

/** Calls `look`, which adds what it finds, for each process but the kernel's own, from several threads. */
InUse gatherFromProcesses(const std::function<void(int process, InUse& found)>& look);

}  // namespace agentrewind
