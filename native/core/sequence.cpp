#include "sequence.hpp"

#include <endian.h>

#include <cstring>

namespace agentrewind {
namespace {

constexpr uint32_t leafMask = 63;
constexpr uint32_t nodeMask = 31;
constexpr size_t chunkLimit = 512;

uint32_t firstWord(const Sha256& name) {
  uint32_t word;
  std::memcpy(&word, name.data(), sizeof(word));
  return le32toh(word);
}

}  // namespace

Status SequenceWriter::add(std::string_view item, uint32_t boundary) {
  const uint32_t length = htole32(static_cast<uint32_t>(item.size()));
  leaf_.append(reinterpret_cast<const char*>(&length), sizeof(length)).append(item);
  items_++;
  return (boundary & leafMask) == 0 || items_ == chunkLimit ? endLeaf() : Status(Done{});
}

Status SequenceWriter::endLeaf() {
  Result<Sha256> name = sink_.put(leaf_);
  if (!name) return name.error();
  level_.push_back({name.value(), items_});
  leaf_.resize(1);
  items_ = 0;
  return Done{};
}

Result<Sha256> SequenceWriter::finish() {
  if (items_ > 0 || level_.empty()) {
    Status ended = endLeaf();
    if (!ended) return ended.error();
  }
  while (level_.size() > 1) {
    Result<std::vector<Child>> above = raise(level_);
    if (!above) return above.error();
    level_ = std::move(above.value());
  }
  return level_[0].name;
}

Result<std::vector<SequenceWriter::Child>> SequenceWriter::raise(const std::vector<Child>& children) {
  std::vector<Child> parents;
  std::string node(1, '\2');
  size_t inNode = 0;
  uint64_t count = 0;
  for (size_t i = 0; i < children.size(); i++) {
    const Child& child = children[i];
    const uint64_t below = htole64(child.count);
    node.append(reinterpret_cast<const char*>(child.name.data()), child.name.size());
    node.append(reinterpret_cast<const char*>(&below), sizeof(below));
    inNode++;
    count += child.count;
    const bool atBoundary = (firstWord(child.name) & nodeMask) == 0 && inNode > 1;
    if (i + 1 < children.size() && !atBoundary && inNode < chunkLimit) continue;
    Result<Sha256> name = sink_.put(node);
    if (!name) return name.error();
    parents.push_back({name.value(), count});
    node.resize(1);
    inNode = 0;
    count = 0;
  }
  return parents;
}

}  // namespace agentrewind
