// What is known about one directory entry, as a packed record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "result.hpp"

namespace agentrewind {

/**
 * Little endian, followed by the name's bytes and zeros up to a multiple of 8. Decoded by src/native.ts, which knows
 * these offsets: change both.
 */
struct EntryRecord {
  uint32_t recordLength;
  uint16_t nameLength;
  uint16_t mode;
  uint32_t uid;
  uint32_t gid;
  uint32_t nlink;
  uint32_t rdevMajor;
  uint32_t rdevMinor;
  uint32_t devMajor;
  uint32_t devMinor;
  uint32_t attributes;
  uint64_t ino;
  uint64_t size;
  uint64_t blocks;
  int64_t mtimeNs;
  int64_t ctimeNs;
  uint64_t mountId;
};
static_assert(sizeof(EntryRecord) == 88, "known to src/native.ts");
static_assert(offsetof(EntryRecord, attributes) == 36, "known to src/native.ts");
static_assert(offsetof(EntryRecord, ino) == 40, "known to src/native.ts");
static_assert(offsetof(EntryRecord, mountId) == 80, "known to src/native.ts");

/** Appends the record of `name` in the directory `at`; does not follow it. The record carries `recordName`. */
Status appendRecord(int at, const char* name, std::string_view recordName, std::string& records);

/** One record without a name. */
Result<std::string> statEntry(int root, std::string_view path);

/** The target of a symbolic link, of any length. */
Result<std::string> readLink(int root, std::string_view path);

}  // namespace agentrewind
