#include "stamps.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "entry.hpp"
#include "listing.hpp"

namespace agentrewind {
namespace {

/** FNV-1a. */
uint64_t mix(uint64_t hash, uint64_t value) {
  for (int shift = 0; shift < 64; shift += 8) hash = (hash ^ (value >> shift & 0xff)) * 0x100000001b3;
  return hash;
}

uint64_t stampOf(const EntryRecord& entry) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const uint64_t part : {entry.ino, uint64_t{entry.mode}, uint64_t{entry.uid}, uint64_t{entry.gid}}) hash = mix(hash, part);
  if (S_ISDIR(entry.mode)) return hash;
  for (const uint64_t part : {entry.size, static_cast<uint64_t>(entry.mtimeNs), static_cast<uint64_t>(entry.ctimeNs)}) hash = mix(hash, part);
  return hash;
}

template <typename T>
void append(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

bool isGone(const Errno& error) {
  return error.code == ENOENT || error.code == ENOTDIR || error.code == EACCES || error.code == ELOOP || error.code == ESTALE;
}

uint64_t deviceOf(const EntryRecord& entry) { return uint64_t{entry.devMajor} << 32 | entry.devMinor; }

}  // namespace

Result<std::string> stampTree(int root, std::string_view path) {
  static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are written as they lie in memory");
  std::string out;
  const auto put = [&](std::string_view at, const EntryRecord& entry) {
    append(out, static_cast<uint32_t>(at.size()));
    out += at;
    append(out, stampOf(entry));
  };
  EntryRecord top;
  Result<std::string> first = statEntry(root, path);
  if (!first && isGone(first.error())) return out;
  if (!first) return first.error();
  std::memcpy(&top, first.value().data(), sizeof top);
  put(path, top);
  std::vector<std::string> waiting;
  if (S_ISDIR(top.mode)) waiting.emplace_back(path);
  while (!waiting.empty()) {
    const std::string folder = std::move(waiting.back());
    waiting.pop_back();
    Result<std::string> listed = readDirectory(root, folder);
    if (!listed && isGone(listed.error())) continue;
    if (!listed) return listed.error();
    const size_t next = waiting.size();
    for (size_t at = 0; at < listed.value().size();) {
      EntryRecord entry;
      std::memcpy(&entry, listed.value().data() + at, sizeof entry);
      std::string name = folder.empty() ? "" : folder + "/";
      name.append(listed.value(), at + sizeof entry, entry.nameLength);
      at += entry.recordLength;
      put(name, entry);
      if (S_ISDIR(entry.mode) && deviceOf(entry) == deviceOf(top)) waiting.push_back(std::move(name));
    }
    std::reverse(waiting.begin() + static_cast<long>(next), waiting.end());
  }
  return out;
}

}  // namespace agentrewind
