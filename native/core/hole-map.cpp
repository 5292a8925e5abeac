#include "hole-map.hpp"

#include <errno.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

namespace agentrewind {
namespace {

constexpr uint64_t unknownEnd = std::numeric_limits<uint64_t>::max();

}  // namespace

bool HoleMap::isDense(uint64_t size) {
  if (size == 0) return true;
  ask(0);
  return isData_ && end_ >= size;
}

uint64_t HoleMap::dataPages(uint64_t offset, size_t length) {
  const uint64_t end = offset + length;
  uint64_t pages = 0;
  for (uint64_t at = offset; at < end; at = std::min(end_, end)) {
    if (at >= end_) ask(at);
    if (!isData_) continue;
    const size_t from = static_cast<size_t>(at - offset) / pageSize;
    pages |= allPages(static_cast<size_t>(std::min(end_, end) - offset)) & ~uint64_t{0} << from;
  }
  return pages;
}

void HoleMap::ask(uint64_t at) {
  const off_t hole = lseek(fd_, static_cast<off_t>(at), SEEK_HOLE);
  isData_ = hole < 0 || static_cast<uint64_t>(hole) > at;
  if (isData_) {
    end_ = hole < 0 ? unknownEnd : static_cast<uint64_t>(hole);
    return;
  }
  const off_t data = lseek(fd_, static_cast<off_t>(at), SEEK_DATA);
  // ENXIO: only a hole follows.
  if (data < 0) {
    isData_ = errno != ENXIO;
    end_ = unknownEnd;
    return;
  }
  // Between the two questions the hole may have been filled.
  isData_ = static_cast<uint64_t>(data) <= at;
  end_ = isData_ ? at + 1 : static_cast<uint64_t>(data);
}

}  // namespace agentrewind
