#include "stored-entry.hpp"

#include "bytes.hpp"

namespace agentrewind {

std::optional<StoredEntry> decodeEntry(std::string_view bytes) {
  constexpr uint8_t blocksFlag = 1;
  constexpr uint8_t sparseFlag = 2;
  ByteReader reader(bytes);
  StoredEntry entry;
  entry.type = static_cast<EntryType>(reader.u8());
  const uint8_t flags = reader.u8();
  entry.inBlocks = (flags & blocksFlag) != 0;
  entry.sparse = (flags & sparseFlag) != 0;
  entry.mode = reader.u16();
  entry.uid = reader.u32();
  entry.gid = reader.u32();
  entry.mtimeNs = reader.i64();
  entry.size = reader.u64();
  entry.rdevMajor = reader.u32();
  entry.rdevMinor = reader.u32();
  const uint16_t nameLength = reader.u16();
  const uint32_t tailLength = reader.u32();
  const uint16_t xattrCount = reader.u16();
  reader.u16();
  reader.take(nameLength);
  entry.tail = reader.take(tailLength);
  for (uint16_t i = 0; i < xattrCount && reader.ok(); i++) {
    const uint16_t keyLength = reader.u16();
    const uint32_t valueLength = reader.u32();
    const std::string_view key = reader.take(keyLength);
    entry.xattrs.emplace_back(key, reader.take(valueLength));
  }
  if (!reader.ok()) return std::nullopt;
  return entry;
}

}  // namespace agentrewind
