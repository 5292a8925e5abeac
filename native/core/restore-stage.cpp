#include "restore-stage.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "hole-map.hpp"
#include "restore-metadata.hpp"
#include "sha256.hpp"
#include "write-faults.hpp"

namespace agentrewind {
namespace {

Outcome damaged(int code, const char* syscall) { return failure(FailureKind::damaged, Errno{code, syscall}); }

Outcome readBlock(const Block& block, uint8_t* bytes) {
  if (block.length > BlockBuffer::size) return damaged(0, "");
  for (size_t done = 0; done < block.length;) {
    const ssize_t n = pread(block.pack, bytes + done, block.length - done, static_cast<off_t>(block.offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return damaged(errno, "pread");
    if (n == 0) return damaged(ENODATA, "pread");
    done += static_cast<size_t>(n);
  }
  Sha256 digest;
  if (!sha256(bytes, block.length, digest)) return failure(FailureKind::unstaged, Errno{ENOSYS, "sha256"});
  if (std::memcmp(digest.data(), block.name.data(), digest.size()) != 0) return damaged(0, "");
  return std::nullopt;
}

Outcome writeAll(int fd, const uint8_t* bytes, size_t length, uint64_t position) {
  for (size_t done = 0; done < length;) {
    const ssize_t n = writing(length - done, [&](size_t most) {
      return pwrite(fd, bytes + done, most, static_cast<off_t>(position + done));
    });
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failure(FailureKind::unstaged, lastError("pwrite"));
    done += static_cast<size_t>(n);
  }
  return std::nullopt;
}

bool isZero(const uint8_t* bytes, size_t length) {
  return length == 0 || (bytes[0] == 0 && std::memcmp(bytes, bytes + 1, length - 1) == 0);
}

/** The data of the pages lies end to end in `bytes`; `size` is the file's. */
Outcome writePages(int fd, const Block& block, const uint8_t* bytes, uint64_t size) {
  const size_t whole = static_cast<size_t>(std::min<uint64_t>(BlockBuffer::size, size - std::min(size, block.position)));
  const auto isData = [&](size_t at) { return (block.pages >> (at / pageSize) & 1) != 0; };
  size_t done = 0;
  for (size_t at = 0; at < whole; at += pageSize) {
    const size_t from = at;
    while (at < whole && isData(at)) at += pageSize;
    const size_t length = std::min(at, whole) - from;
    if (length > block.length - done) return damaged(0, "");
    if (length > 0) {
      Outcome written = writeAll(fd, bytes + done, length, block.position + from);
      if (written) return written;
    }
    done += length;
  }
  return done == block.length ? std::nullopt : damaged(0, "");
}

/** Leaves out the pages that are zero. */
Outcome writeSparse(int fd, const uint8_t* bytes, size_t length, uint64_t position) {
  const auto pageAt = [&](size_t at) { return std::min(pageSize, length - at); };
  for (size_t at = 0; at < length;) {
    size_t end = at;
    while (end < length && !isZero(bytes + end, pageAt(end))) end += pageAt(end);
    if (end > at) {
      Outcome written = writeAll(fd, bytes + at, end - at, position + at);
      if (written) return written;
    }
    at = end;
    while (at < length && isZero(bytes + at, pageAt(at))) at += pageAt(at);
  }
  return std::nullopt;
}

Outcome stageFile(const Location& location, const Job& job, BlockBuffer& buffer) {
  Result<UniqueFd> file = openStaged(location, job);
  if (!file) return failure(FailureKind::unstaged, file.error());
  const int fd = file.value().get();
  Outcome written = writeBlocks(fd, job, 0, job.blocks.size(), buffer);
  if (written) return written;
  return finishStaged(fd, location, job);
}

/** A new entry whose metadata was refused goes again. */
Outcome keepOrDiscard(const Location& location, const Outcome& outcome) {
  if (outcome && outcome->kind != FailureKind::owner) unlinkat(location.parent(), location.name(), 0);
  return outcome;
}

}  // namespace

uint8_t* BlockBuffer::data() {
  if (!bytes_) bytes_.reset(new uint8_t[size]);
  return bytes_.get();
}

Result<UniqueFd> openStaged(const Location& location, const Job& job) {
  constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  UniqueFd fd(changing([&] { return openat(location.parent(), location.name(), flags, 0600); }));
  if (fd.get() < 0) return lastError("openat");
  // Before any content: some file systems fill gaps when a file grows by writing behind its end.
  if ((job.entry->inBlocks || job.entry->sparse) &&
      changing([&] { return ftruncate(fd.get(), static_cast<off_t>(job.entry->size)); }) < 0) {
    return lastError("ftruncate");
  }
  return fd;
}

Outcome writeBlocks(int fd, const Job& job, size_t first, size_t end, BlockBuffer& buffer) {
  for (size_t index = first; index < end; index++) {
    const Block& block = job.blocks[index];
    Outcome read = readBlock(block, buffer.data());
    if (read) return read;
    const bool whole = block.pages == ~uint64_t{0};
    Outcome written = !whole              ? writePages(fd, block, buffer.data(), job.entry->size)
                      : job.entry->sparse ? writeSparse(fd, buffer.data(), block.length, block.position)
                                          : writeAll(fd, buffer.data(), block.length, block.position);
    if (written) return written;
  }
  return std::nullopt;
}

Outcome finishStaged(int fd, const Location& location, const Job& job) {
  return keepOrDiscard(location, restoreMetadata(fd, *job.entry));
}

Outcome stageEntry(const Location& location, const Job& job, BlockBuffer& buffer) {
  const StoredEntry& entry = *job.entry;
  if (entry.type == EntryType::file) return stageFile(location, job, buffer);
  if (entry.type == EntryType::symlink) {
    const std::string text(entry.tail);
    if (changing([&] { return symlinkat(text.c_str(), location.parent(), location.name()); }) < 0) {
      return failure(FailureKind::unstaged, lastError("symlinkat"));
    }
  } else {
    const mode_t type = entry.type == EntryType::fifo              ? S_IFIFO
                        : entry.type == EntryType::characterDevice ? S_IFCHR
                        : entry.type == EntryType::blockDevice     ? S_IFBLK
                                                                   : 0;
    if (type == 0) return failure(FailureKind::damaged, Errno{0, ""});
    const dev_t device = type == S_IFIFO ? 0 : makedev(entry.rdevMajor, entry.rdevMinor);
    if (changing([&] { return mknodat(location.parent(), location.name(), type | 0600, device); }) < 0) {
      return failure(FailureKind::refused, lastError("mknodat"));
    }
  }
  return keepOrDiscard(location, restoreMetadata(location, entry));
}

}  // namespace agentrewind
