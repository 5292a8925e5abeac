#include "scan-content.hpp"

#include <endian.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "entry.hpp"
#include "scan-work.hpp"
#include "unique-fd.hpp"

namespace agentrewind {
namespace {

constexpr size_t blockSize = 256 << 10;
static_assert(blockSize <= Sink::largest, "a block is one object");
/** Some file systems say 0 and have content. */
constexpr size_t emptyProbe = 4096;
/** Less than this is the file system's rounding or inlining, not a hole. */
constexpr uint64_t sparseFrom = 65536;

bool isDatabase(const char* bytes, size_t size) {
  constexpr std::string_view header("SQLite format 3\0", 16);
  return size >= header.size() && std::string_view(bytes, header.size()) == header;
}

bool isZero(const char* bytes, size_t size) {
  return size > 0 && bytes[0] == 0 && std::memcmp(bytes, bytes + 1, size - 1) == 0;
}

UniqueFd openForReading(int directory, const char* name) {
  // O_NONBLOCK: never waits for a FIFO's writer that took the file's place.
  constexpr int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
  UniqueFd fd(openat(directory, name, flags | O_NOATIME));
  // Only the owner may ask to leave the time of access alone.
  if (fd.get() < 0 && errno == EPERM) return UniqueFd(openat(directory, name, flags));
  return fd;
}

Result<size_t> readUpTo(int fd, char* bytes, size_t wanted) {
  size_t length = 0;
  while (length < wanted) {
    const ssize_t got = read(fd, bytes + length, wanted - length);
    if (got < 0) {
      if (errno == EINTR) continue;
      return lastError("read");
    }
    if (got == 0) break;
    length += static_cast<size_t>(got);
  }
  return length;
}

/** Where what happens below is the store's failure, not the file's. */
struct StoreFailure {
  Reading& reading;
  bool operator()(const Errno& error) const {
    reading.store = error;
    return false;
  }
};

/** False when `reading` says why not. The size that was read is left in `size`. */
bool readBlocks(int fd, const Stat& stat, Sink& sink, Node& node, uint64_t& size, Reading& reading) {
  const StoreFailure storeFailed{reading};
  const bool sparse = (node.flags & flagSparse) != 0;
  const uint64_t expected = stat.size;
  if (expected <= blockSize && !sparse) {
    const size_t wanted = expected == 0 ? emptyProbe : static_cast<size_t>(expected);
    Result<char*> room = sink.room(wanted);
    if (!room) return storeFailed(room.error());
    Result<size_t> length = readUpTo(fd, room.value(), wanted);
    if (!length) {
      reading.failure = length.error().code;
      return false;
    }
    size = length.value();
    reading.database = isDatabase(room.value(), size);
    Result<Sha256> name = sink.take(size);
    if (!name) return storeFailed(name.error());
    node.content = name.value();
    return true;
  }
  SequenceWriter blocks(sink);
  size_t count = 0;
  bool firstIsHole = false;
  Sha256 first{};
  // What a growing file has gained meanwhile is not read: its size tells, and it is read again.
  while (size < expected || count == 0) {
    const size_t wanted = expected == 0 ? emptyProbe : static_cast<size_t>(std::min<uint64_t>(blockSize, expected - size));
    Result<char*> room = sink.room(wanted);
    if (!room) return storeFailed(room.error());
    Result<size_t> length = readUpTo(fd, room.value(), wanted);
    if (!length) {
      reading.failure = length.error().code;
      return false;
    }
    if (length.value() == 0 && count > 0) break;
    size += length.value();
    if (count == 0) reading.database = isDatabase(room.value(), length.value());
    Status added = Done{};
    if (sparse && length.value() == blockSize && isZero(room.value(), blockSize)) {
      if (count == 0) firstIsHole = true;
      added = blocks.add(std::string_view("\0", 1), 1);
    } else {
      Result<Sha256> name = sink.take(length.value());
      if (!name) return storeFailed(name.error());
      if (count == 0) first = name.value();
      char item[33];
      item[0] = 1;
      std::memcpy(item + 1, name.value().data(), 32);
      uint32_t boundary;
      std::memcpy(&boundary, name.value().data(), sizeof(boundary));
      added = blocks.add(std::string_view(item, sizeof(item)), le32toh(boundary));
    }
    if (!added) return storeFailed(added.error());
    count++;
    if (length.value() < wanted || length.value() < blockSize) break;
  }
  if (count == 1 && !firstIsHole) {
    node.content = first;
    return true;
  }
  Result<Sha256> name = blocks.finish();
  if (!name) return storeFailed(name.error());
  node.content = name.value();
  node.flags |= flagBlocks;
  return true;
}

Reading readFile(int directory, Node& node, Sink& sink) {
  Reading reading;
  const UniqueFd fd = openForReading(directory, node.name.c_str());
  if (fd.get() < 0) {
    reading.failure = errno;
    return reading;
  }
  // In a group of hard links, or after a swap, the node may still be of another type.
  node.flags = node.stat.blocks * 512 + sparseFrom <= node.stat.size ? flagSparse : 0;
  uint64_t size = 0;
  if (!readBlocks(fd.get(), node.stat, sink, node, size, reading)) return reading;
  Result<std::shared_ptr<const Extra>> extra = readXattrs(fd.get());
  if (!extra) {
    reading.failure = extra.error().code;
    return reading;
  }
  node.extra = std::move(extra.value());
  Result<Stat> after = statAt(fd.get(), "");
  if (!after) {
    reading.failure = after.error().code;
    return reading;
  }
  reading.changed = !after.value().unchanged(node.stat) || after.value().size != size;
  if (reading.changed) node.stat = after.value();
  node.stat.size = size;
  node.hasContent = true;
  return reading;
}

Reading readLinkOrNode(int directory, Node& node) {
  Reading reading;
  Result<Xattrs> xattrs = getXattrs(directory, node.name);
  if (!xattrs) {
    reading.failure = xattrs.error().code;
    return reading;
  }
  node.extra = encodeXattrs(xattrs.value());
  if (node.type != Type::symlink) return reading;
  Result<std::string> target = readLink(directory, node.name);
  if (!target) {
    reading.failure = target.error().code == EINVAL ? ENOENT : target.error().code;
    reading.changed = target.error().code == EINVAL;
    return reading;
  }
  auto extra = node.extra ? std::make_shared<Extra>(*node.extra) : std::make_shared<Extra>();
  extra->tail = std::move(target.value());
  node.extra = std::move(extra);
  return reading;
}

}  // namespace

Reading readEntry(int directory, Node& node, Sink& sink) {
  node.extra = nullptr;
  node.hasContent = false;
  node.flags = 0;
  return node.type == Type::file ? readFile(directory, node, sink) : readLinkOrNode(directory, node);
}

}  // namespace agentrewind
