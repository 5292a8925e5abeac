// One directory entry as it is stored (docs/format.md, Files). The views are into the bytes that were given.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace agentrewind {

enum class EntryType : uint8_t {
  file = 1,
  directory = 2,
  symlink = 3,
  hardLink = 4,
  fifo = 5,
  characterDevice = 6,
  blockDevice = 7,
  socket = 8,
  unread = 9,
};

struct StoredEntry {
  EntryType type;
  /** The content is a sequence of blocks. */
  bool inBlocks;
  /** Of an older format: pages of zeros become holes. */
  bool sparse;
  uint16_t mode;
  uint32_t uid;
  uint32_t gid;
  int64_t mtimeNs;
  uint64_t size;
  uint32_t rdevMajor;
  uint32_t rdevMinor;
  std::string_view tail;
  /** Sorted by name. */
  std::vector<std::pair<std::string_view, std::string_view>> xattrs;
};

/** Nothing where the bytes are cut or their lengths do not fit. */
std::optional<StoredEntry> decodeEntry(std::string_view bytes);

}  // namespace agentrewind
