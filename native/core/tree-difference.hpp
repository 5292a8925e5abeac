// What differs between two trees that stand still, as two snapshots of the layers of a sandbox.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "result.hpp"

namespace agentrewind {

/** What is known to have changed between the two, by inode numbers; each in ascending order. */
struct KnownChanges {
  std::vector<uint64_t> inodes;
  /** Folders below which one of them lies, in the tree where it has changed. */
  std::vector<uint64_t> folders;
};

/** Nothing where there are too many for it to be worth while. */
Result<std::optional<std::vector<uint64_t>>> foldersAbove(int fd, const std::vector<uint64_t>& inodes);

/**
 * Records, little endian, parents before children (decoded by src/environment/sandbox/layers/difference.ts, which knows these offsets): length of the
 * record and of the path (4 bytes each), 1 when only metadata differs (1), 3 spare, two sides of 40 bytes, the path and zeros up to a multiple of 8. A side: type (1, 0 when it is not there), opaque (1), 2 spare,
 * mode, owner, group (4 each), size, mtime in nanoseconds, inode (8 each). Below a folder that only one side has, all is told. The empty path is the roots themselves.
 *
 * Without `known`, an inode whose number, size and times are the same on both sides is taken for unchanged.
 */
Result<std::string> compareTrees(int from, int to, const std::optional<KnownChanges>& known);

/** One side as above, of the entry at `path`; empty when there is none. */
Result<std::string> lookAt(int root, const std::string& path);

}  // namespace agentrewind
