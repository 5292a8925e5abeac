// Which files some process maps shared and writable: a store through such a mapping moves no time that stat shows.
#pragma once

#include <cstdint>
#include <vector>

namespace agentrewind {

/**
 * Inode numbers, sorted, of all processes whose mappings this one may see. Without devices: on btrfs and overlay the kernel names another one there than in stat, and
 * a file too many is only read once too often.
 */
std::vector<uint64_t> sharedWritableInodes();
/** Of one process; as they come. */
std::vector<uint64_t> sharedWritableInodes(int process);

}  // namespace agentrewind
