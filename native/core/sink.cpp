#include "sink.hpp"

#include <unistd.h>

#include <cstring>

#include "faults.hpp"
#include "write-faults.hpp"

namespace agentrewind {

Result<char*> Sink::room(size_t size) {
  if (used_ + size > size_ || names_.size() >= objectsAtOnce) {
    Status flushed = flush();
    if (!flushed) return flushed.error();
    if (size > size_) {
      size_ = size > capacity ? size : capacity;
      bytes_.reset(new char[size_]);
    }
  }
  return bytes_.get() + used_;
}

Result<Sha256> Sink::take(size_t size) {
  Sha256 name;
  if (!sha256(bytes_.get() + used_, size, name)) return Errno{ENOSYS, "sha256"};
  names_.push_back(name);
  lengths_.push_back(static_cast<uint32_t>(size));
  used_ += size;
  return name;
}

Result<Sha256> Sink::put(std::string_view bytes) {
  Result<char*> at = room(bytes.size());
  if (!at) return at.error();
  std::memcpy(at.value(), bytes.data(), bytes.size());
  return take(bytes.size());
}

Status Sink::flush() {
  if (names_.empty()) return Done{};
  int pack = -1;
  std::vector<int64_t> offsets;
  Status done = store_.reserve(names_, lengths_, pack, offsets);
  if (done) done = write(pack, offsets);
  names_.clear();
  lengths_.clear();
  used_ = 0;
  return done;
}

Status Sink::write(int pack, const std::vector<int64_t>& offsets) {
  size_t from = 0;
  for (size_t i = 0; i < names_.size();) {
    if (offsets[i] < 0) {
      from += lengths_[i++];
      continue;
    }
    // Neighbours here are neighbours there.
    const int64_t offset = offsets[i];
    size_t size = 0;
    while (i < names_.size() && offsets[i] == offset + static_cast<int64_t>(size)) size += lengths_[i++];
    Status written = writeFully(pack, bytes_.get() + from, size, offset);
    if (!written) return written;
    fault(FaultPoint::scanWritten);
    from += size;
  }
  return Done{};
}

Status writeFully(int fd, const char* bytes, size_t size, int64_t offset) {
  while (size > 0) {
    const ssize_t written = writing(size, [&](size_t most) { return pwrite(fd, bytes, most, offset); });
    if (written < 0) {
      if (errno == EINTR) continue;
      return lastError("pwrite");
    }
    bytes += written;
    size -= static_cast<size_t>(written);
    offset += written;
  }
  return Done{};
}

}  // namespace agentrewind
