// Objects on their way into a pack: gathered, named, looked up in the store in one go, and written where the store gives room.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "result.hpp"
#include "sha256.hpp"

namespace agentrewind {

/** The store's side. May be called from several threads at once. */
class Store {
 public:
  virtual ~Store() = default;
  /**
   * Room for the objects of these names and lengths: the pack's descriptor, and each one's offset, -1 where the store has it. Those that are not -1 lie
   * end to end.
   */
  virtual Status reserve(const std::vector<Sha256>& names, const std::vector<uint32_t>& lengths, int& pack,
                         std::vector<int64_t>& offsets) = 0;
};

/** One thread's. What was added is in the pack only after `flush`. */
class Sink {
 public:
  explicit Sink(Store& store) : store_(store) {}

  /** `size` free bytes, at most `largest`; valid until the next call. */
  Result<char*> room(size_t size);
  /** The first `size` bytes of that room become an object. */
  Result<Sha256> take(size_t size);
  /** Copies the bytes, however many. */
  Result<Sha256> put(std::string_view bytes);
  Status flush();

  static constexpr size_t largest = 256 << 10;

 private:
  static constexpr size_t capacity = 4 << 20;
  static constexpr size_t objectsAtOnce = 256;

  Status write(int pack, const std::vector<int64_t>& offsets);

  Store& store_;
  std::unique_ptr<char[]> bytes_;
  size_t size_ = 0;
  size_t used_ = 0;
  std::vector<Sha256> names_;
  std::vector<uint32_t> lengths_;
};

/** Writes all of it, whatever the kernel takes at once. */
Status writeFully(int fd, const char* bytes, size_t size, int64_t offset);

}  // namespace agentrewind
