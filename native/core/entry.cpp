// statx and readlinkat below the root.
#include "entry.hpp"

#include <endian.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "beneath.hpp"
#include "statx.hpp"

namespace agentrewind {
Status appendRecord(int at, const char* name, std::string_view recordName, std::string& records) {
  struct statx found;
  if (statx(at, name, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, STATX_BASIC_STATS | mountIdMask, &found) < 0) {
    return lastError("statx");
  }
  const size_t length = (sizeof(EntryRecord) + recordName.size() + 7) & ~size_t{7};
  EntryRecord record;
  record.recordLength = htole32(static_cast<uint32_t>(length));
  record.nameLength = htole16(static_cast<uint16_t>(recordName.size()));
  record.mode = htole16(found.stx_mode);
  record.uid = htole32(found.stx_uid);
  record.gid = htole32(found.stx_gid);
  record.nlink = htole32(found.stx_nlink);
  record.rdevMajor = htole32(found.stx_rdev_major);
  record.rdevMinor = htole32(found.stx_rdev_minor);
  record.devMajor = htole32(found.stx_dev_major);
  record.devMinor = htole32(found.stx_dev_minor);
  record.attributes = htole32(static_cast<uint32_t>(found.stx_attributes));
  record.ino = htole64(found.stx_ino);
  record.size = htole64(found.stx_size);
  record.blocks = htole64(found.stx_blocks);
  record.mtimeNs = static_cast<int64_t>(htole64(static_cast<uint64_t>(nanoseconds(found.stx_mtime))));
  record.ctimeNs = static_cast<int64_t>(htole64(static_cast<uint64_t>(nanoseconds(found.stx_ctime))));
  record.mountId = htole64(mountId(found));

  const size_t start = records.size();
  records.append(reinterpret_cast<const char*>(&record), sizeof(record));
  records.append(recordName);
  records.resize(start + length, '\0');
  return Done{};
}

Result<std::string> statEntry(int root, std::string_view path) {
  Result<Location> location = locate(root, path);
  if (!location) return location.error();
  std::string record;
  Status status = appendRecord(location.value().parent(), location.value().name(), {}, record);
  if (!status) return status.error();
  return record;
}

Result<std::string> readLink(int root, std::string_view path) {
  Result<Location> location = locate(root, path);
  if (!location) return location.error();
  std::string target(256, '\0');
  while (true) {
    const ssize_t length =
        readlinkat(location.value().parent(), location.value().name(), target.data(), target.size());
    if (length < 0) return lastError("readlinkat");
    // A full buffer may be a truncated target.
    if (static_cast<size_t>(length) < target.size()) {
      target.resize(static_cast<size_t>(length));
      return target;
    }
    target.resize(target.size() * 4);
  }
}

}  // namespace agentrewind
