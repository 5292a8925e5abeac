// Calls on an open descriptor.
#pragma once

#include <cstdint>
#include <optional>

#include "result.hpp"

namespace agentrewind {

struct Range {
  int64_t start;
  int64_t end;  // not part of it
};

/** Waits until all of the descriptor's file system is on its device. */
Status syncFileSystem(int fd);

/** Gives the range's room back to the file system; it reads as zeros then, and the file stays as long as it is. */
Status punchHole(int fd, int64_t offset, int64_t length);

/**
 * The next range at or after `offset` that is not a hole; nothing if only a hole follows or the file ends. Where the
 * file system does not know holes, all is data. Moves the descriptor's position.
 */
Result<std::optional<Range>> nextData(int fd, int64_t offset);

}  // namespace agentrewind
