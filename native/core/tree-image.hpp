// A scanned tree as bytes, so that the next process need not read every file again. Private to one build: anything that does not fit is refused.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "result.hpp"
#include "tree.hpp"

namespace agentrewind {

/** Writes the image at `offset` of the file, a piece at a time. Returns its size. */
Result<uint64_t> saveTree(const Node& root, int fd, int64_t offset);

/** Null when the bytes are not whole or another version's. Entries that changed at `unsettledFromNs` or later will be read again. */
std::shared_ptr<const Node> loadTree(std::string_view image, int64_t unsettledFromNs);

}  // namespace agentrewind
