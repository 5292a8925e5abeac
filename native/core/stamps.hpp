// What a stat tells of everything in a directory, short enough to be kept: whether somebody changed any of it.
#pragma once

#include <string>
#include <string_view>

#include "result.hpp"

namespace agentrewind {

/**
 * For each entry at and below `path` on its own file system: u32 length of its path below `root`, the path, u64 stamp; little endian, folders before what they
 * hold, names in the order of their bytes. Equal stamps: the same inode with the same type, mode, owner, size and times, of folders without size and times. What
 * vanishes meanwhile or cannot be read is left out; no entries where nothing is at `path`.
 */
Result<std::string> stampTree(int root, std::string_view path);

}  // namespace agentrewind
