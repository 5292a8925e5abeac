#include "scan-content.hpp"

#include <endian.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "entry.hpp"
#include "hole-map.hpp"
#include "scan-work.hpp"
#include "unique-fd.hpp"

namespace agentrewind {
namespace {

constexpr size_t blockSize = 256 << 10;
static_assert(blockSize <= Sink::largest, "a block is one object");
/** Some file systems say 0 and have content. */
constexpr size_t emptyProbe = 4096;
/** From this size on one question more is nothing beside the reading. */
constexpr uint64_t askFrom = 64 << 10;

bool isDatabase(const char* bytes, size_t size) {
  constexpr std::string_view header("SQLite format 3\0", 16);
  return size >= header.size() && std::string_view(bytes, header.size()) == header;
}

bool isZero(const char* bytes, size_t size) {
  return bytes[0] == 0 && std::memcmp(bytes, bytes + 1, size - 1) == 0;
}

UniqueFd openForReading(int directory, const char* name) {
  // O_NONBLOCK: never waits for a FIFO's writer that took the file's place.
  constexpr int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY;
  UniqueFd fd(openat(directory, name, flags | O_NOATIME));
  // Only the owner may ask to leave the time of access alone.
  if (fd.get() < 0 && errno == EPERM) return UniqueFd(openat(directory, name, flags));
  return fd;
}

Result<size_t> readUpTo(int fd, char* bytes, size_t wanted, uint64_t offset) {
  size_t length = 0;
  while (length < wanted) {
    const ssize_t got = pread(fd, bytes + length, wanted - length, static_cast<off_t>(offset + length));
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

/** How the holes of a file become known. Most files have none, and a file without pages of zeros has none in any case. */
enum class Holes { none, mapped, whereZero };

/** A block in memory: its pages that are data, end to end. */
struct BlockRead {
  /** Of the file. */
  size_t length = 0;
  /** Of the data. */
  size_t stored = 0;
  uint64_t pages = 0;

  bool isWhole() const { return pages == allPages(length); }
};

size_t lengthOfPage(size_t at, size_t length) { return std::min(pageSize, length - at); }

class BlockReader {
 public:
  BlockReader(int fd, const Stat& stat) : fd_(fd), map_(fd) {
    // What has as many blocks as its size takes may still have holes: attributes and reserved room count as blocks too.
    if (stat.size < askFrom && stat.blocks * 512 >= stat.size) {
      holes_ = Holes::whereZero;
    } else if (!map_.isDense(stat.size)) {
      holes_ = Holes::mapped;
      // Read ahead, reserved pages that nobody has written would become data.
      posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    }
  }

  Result<BlockRead> read(uint64_t offset, size_t wanted, char* bytes) {
    BlockRead block;
    if (holes_ == Holes::mapped) {
      block.length = wanted;
      block.pages = map_.dataPages(offset, wanted);
      return readPages(offset, bytes, block);
    }
    Result<size_t> length = readUpTo(fd_, bytes, wanted, offset);
    if (!length) return length.error();
    block.length = block.stored = length.value();
    block.pages = allPages(block.length);
    if (holes_ == Holes::whereZero && block.length == wanted) dropHoles(offset, bytes, block);
    return block;
  }

 private:
  /** What is missing since the file was cut is zeros; its size tells that it changed. */
  Result<BlockRead> readPages(uint64_t offset, char* bytes, BlockRead block) const {
    for (size_t at = 0; at < block.length;) {
      size_t end = at;
      while (end < block.length && isData(block, end)) end += lengthOfPage(end, block.length);
      if (end > at) {
        Result<size_t> got = readUpTo(fd_, bytes + block.stored, end - at, offset + at);
        if (!got) return got.error();
        std::memset(bytes + block.stored + got.value(), 0, end - at - got.value());
        block.stored += end - at;
      }
      at = end;
      while (at < block.length && !isData(block, at)) at += lengthOfPage(at, block.length);
    }
    return block;
  }

  void dropHoles(uint64_t offset, char* bytes, BlockRead& block) {
    uint64_t zeros = 0;
    for (size_t at = 0; at < block.length; at += pageSize) {
      if (isZero(bytes + at, lengthOfPage(at, block.length))) zeros |= uint64_t{1} << (at / pageSize);
    }
    if (zeros == 0) return;
    block.pages &= map_.dataPages(offset, block.length) | ~zeros;
    block.stored = 0;
    for (size_t at = 0; at < block.length; at += pageSize) {
      if (!isData(block, at)) continue;
      std::memmove(bytes + block.stored, bytes + at, lengthOfPage(at, block.length));
      block.stored += lengthOfPage(at, block.length);
    }
  }

  static bool isData(const BlockRead& block, size_t at) { return (block.pages >> (at / pageSize) & 1) != 0; }

  const int fd_;
  HoleMap map_;
  Holes holes_ = Holes::none;
};

Status addHole(SequenceWriter& blocks) { return blocks.add(std::string_view("\0", 1), 1); }

Status addBlock(SequenceWriter& blocks, const BlockRead& block, const Sha256& name) {
  char item[41];
  item[0] = block.isWhole() ? 1 : 2;
  std::memcpy(item + 1, name.data(), name.size());
  const uint64_t pages = htole64(block.pages);
  std::memcpy(item + 33, &pages, sizeof(pages));
  uint32_t boundary;
  std::memcpy(&boundary, name.data(), sizeof(boundary));
  return blocks.add(std::string_view(item, block.isWhole() ? 33 : 41), le32toh(boundary));
}

/** False when `reading` says why not. The size that was read is left in `size`. */
bool readBlocks(int fd, const Stat& stat, Sink& sink, Node& node, uint64_t& size, Reading& reading) {
  const StoreFailure storeFailed{reading};
  const uint64_t expected = stat.size;
  BlockReader reader(fd, stat);
  SequenceWriter blocks(sink);
  size_t count = 0;
  bool single = false;
  // What a growing file has gained meanwhile is not read: its size tells, and it is read again.
  while (size < expected || count == 0) {
    const size_t wanted = expected == 0 ? emptyProbe : static_cast<size_t>(std::min<uint64_t>(blockSize, expected - size));
    Result<char*> room = sink.room(wanted);
    if (!room) return storeFailed(room.error());
    Result<BlockRead> read = reader.read(size, wanted, room.value());
    if (!read) {
      reading.failure = read.error().code;
      return false;
    }
    const BlockRead& block = read.value();
    if (block.length == 0 && count > 0) break;
    size += block.length;
    if (count == 0) reading.database = isDatabase(room.value(), block.stored);
    Status added = Done{};
    if (block.pages == 0 && !block.isWhole()) {
      added = addHole(blocks);
    } else {
      Result<Sha256> name = sink.take(block.stored);
      if (!name) return storeFailed(name.error());
      if (count == 0) node.content = name.value();
      single = count == 0 && block.isWhole();
      if (!single || expected > blockSize) added = addBlock(blocks, block, name.value());
    }
    if (!added) return storeFailed(added.error());
    count++;
    if (block.length < wanted || block.length < blockSize) break;
  }
  if (single && count == 1) return true;
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
  node.flags = 0;
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
