// Which other processes have a file open for writing, or mapped so.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace agentrewind {

/** Inode and process for each of these inodes that a visible process may write to; `inodes` is sorted. This process is not among them. */
std::vector<std::pair<uint64_t, int>> findWriters(const std::vector<uint64_t>& inodes);

}  // namespace agentrewind
