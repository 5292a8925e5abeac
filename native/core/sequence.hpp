// Writes a list as a sequence (F-7); src/store/sequence.ts is the same in TypeScript and reads it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sink.hpp"

namespace agentrewind {

class SequenceWriter {
 public:
  explicit SequenceWriter(Sink& sink) : sink_(sink), leaf_(1, '\1') {}

  Status add(std::string_view item, uint32_t boundary);
  Result<Sha256> finish();

 private:
  struct Child {
    Sha256 name;
    uint64_t count;
  };

  Status endLeaf();
  Result<std::vector<Child>> raise(const std::vector<Child>& children);

  Sink& sink_;
  std::string leaf_;
  size_t items_ = 0;
  std::vector<Child> level_;
};

}  // namespace agentrewind
