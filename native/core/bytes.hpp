// Reads little-endian numbers and stretches of bytes one after the other, never beyond the end.
#pragma once

#include <endian.h>

#include <cstdint>
#include <cstring>
#include <string_view>

namespace agentrewind {

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : rest_(bytes) {}

  /** Once false, something was cut, and what was read since is zero or empty. */
  bool ok() const { return ok_; }
  bool atEnd() const { return rest_.empty(); }

  std::string_view take(size_t length) {
    if (length > rest_.size()) {
      ok_ = false;
      rest_ = {};
      return {};
    }
    const std::string_view taken = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return taken;
  }

  uint8_t u8() { return number<uint8_t>(); }
  uint16_t u16() { return le16toh(number<uint16_t>()); }
  uint32_t u32() { return le32toh(number<uint32_t>()); }
  uint64_t u64() { return le64toh(number<uint64_t>()); }
  int64_t i64() { return static_cast<int64_t>(u64()); }

 private:
  template <typename T>
  T number() {
    T value = 0;
    const std::string_view bytes = take(sizeof(T));
    if (bytes.size() == sizeof(T)) std::memcpy(&value, bytes.data(), sizeof(T));
    return value;
  }

  std::string_view rest_;
  bool ok_ = true;
};

}  // namespace agentrewind
