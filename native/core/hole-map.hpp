// Where a file's data lies, in pages, as the file system tells it (F-9).
#pragma once

#include <cstddef>
#include <cstdint>

namespace agentrewind {

constexpr size_t pageSize = 4096;

/** One bit for each page of the first `length` bytes of a block, which has at most 64 pages. */
constexpr uint64_t allPages(size_t length) {
  const size_t count = (length + pageSize - 1) / pageSize;
  return count == 0 ? 0 : ~uint64_t{0} >> (64 - count);
}

/** Asked from the beginning of a file to its end: each stretch costs one or two system calls, a file without holes one. */
class HoleMap {
 public:
  explicit HoleMap(int fd) : fd_(fd) {}

  /** Asked first: no hole in the first `size` bytes. */
  bool isDense(uint64_t size);

  /** Which pages of the `length` bytes at `offset`, a multiple of the page's size, hold data. A file system that does not tell has data only. */
  uint64_t dataPages(uint64_t offset, size_t length);

 private:
  void ask(uint64_t at);

  int fd_;
  /** What was asked for last ends here. */
  uint64_t end_ = 0;
  bool isData_ = true;
};

}  // namespace agentrewind
