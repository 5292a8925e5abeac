// Makes the new entries of a restore in the staging folder, whole and with their metadata.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "beneath.hpp"
#include "restore-job.hpp"
#include "restore-outcome.hpp"
#include "unique-fd.hpp"

namespace agentrewind {

/** Room for one block, of one worker. */
class BlockBuffer {
 public:
  static constexpr size_t size = 256 << 10;
  uint8_t* data();

 private:
  std::unique_ptr<uint8_t[]> bytes_;
};

/** Makes the entry at `location`. Every block is compared with its name (F-4) before it is written. */
Outcome stageEntry(const Location& location, const Job& job, BlockBuffer& buffer);

/** The same for a large file, in parts: opens it, writes blocks [first, end) from any thread, finishes it. */
Result<UniqueFd> openStaged(const Location& location, const Job& job);
Outcome writeBlocks(int fd, const Job& job, size_t first, size_t end, BlockBuffer& buffer);
Outcome finishStaged(int fd, const Location& location, const Job& job);

}  // namespace agentrewind
