#include "tree.hpp"

#include <endian.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>

namespace agentrewind {
namespace {

constexpr size_t fixedSize = 46;

template <typename T>
void put(char*& at, T value) {
  std::memcpy(at, &value, sizeof(value));
  at += sizeof(value);
}

void put16(char*& at, size_t value) { put(at, htole16(static_cast<uint16_t>(value))); }
void put32(char*& at, uint64_t value) { put(at, htole32(static_cast<uint32_t>(value))); }
void put64(char*& at, uint64_t value) { put(at, htole64(value)); }

}  // namespace

const Node* Directory::find(std::string_view name) const {
  const auto found = std::lower_bound(entries.begin(), entries.end(), name,
                                      [](const Node& node, std::string_view wanted) { return node.name < wanted; });
  return found != entries.end() && found->name == name ? &*found : nullptr;
}

void Directory::summarize() {
  totalEntries = entries.size();
  for (const Node& node : entries) {
    if (node.type == Type::file) totalBytes += node.stat.size;
    switch (node.type) {
      case Type::directory:
        totalEntries += node.children->totalEntries;
        totalBytes += node.children->totalBytes;
        restless = restless || node.children->restless || !node.settled;
        break;
      case Type::file:
      case Type::symlink:
      case Type::fifo: restless = restless || !node.settled || node.stat.nlink > 1; break;
      default: restless = true;
    }
  }
}

Type typeOf(uint32_t mode) {
  switch (mode & S_IFMT) {
    case S_IFREG: return Type::file;
    case S_IFDIR: return Type::directory;
    case S_IFLNK: return Type::symlink;
    case S_IFIFO: return Type::fifo;
    case S_IFCHR: return Type::characterDevice;
    case S_IFBLK: return Type::blockDevice;
    default: return Type::socket;
  }
}

void encodeEntry(const Node& node, std::string& out) {
  // A hard link's metadata is its group's.
  const bool bare = node.type == Type::hardLink;
  const bool device = node.type == Type::characterDevice || node.type == Type::blockDevice || node.type == Type::fifo;
  const std::string_view tail = node.tail();
  const std::string_view xattrs = node.extra && !bare ? std::string_view(node.extra->xattrs) : std::string_view();
  const Stat& stat = node.stat;
  char fixed[fixedSize];
  char* at = fixed;
  put(at, static_cast<uint8_t>(node.type));
  put(at, node.flags);
  put16(at, bare ? 0 : stat.mode & 07777);
  put32(at, bare ? 0 : stat.uid);
  put32(at, bare ? 0 : stat.gid);
  put64(at, bare ? 0 : static_cast<uint64_t>(stat.mtimeNs));
  put64(at, node.type == Type::file ? stat.size : 0);
  put32(at, device ? stat.rdevMajor : 0);
  put32(at, device ? stat.rdevMinor : 0);
  put16(at, node.name.size());
  put32(at, tail.size());
  put16(at, xattrs.empty() ? 0 : node.extra->xattrCount);
  put16(at, node.hasContent ? node.content.size() : 0);
  out.append(fixed, sizeof(fixed));
  out.append(node.name).append(tail).append(xattrs);
  if (node.hasContent) out.append(reinterpret_cast<const char*>(node.content.data()), node.content.size());
}

uint32_t nameBoundary(std::string_view name) {
  // FNV-1a, mixed.
  uint32_t hash = 0x811c9dc5;
  for (const char byte : name) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x01000193;
  return hash ^ (hash >> 15);
}

const Node* findNode(const Node& root, std::string_view path) {
  const Node* node = &root;
  while (!path.empty()) {
    if (!node->children) return nullptr;
    const size_t slash = path.find('/');
    node = node->children->find(path.substr(0, slash));
    if (node == nullptr || slash == std::string_view::npos) return node;
    path.remove_prefix(slash + 1);
  }
  return node;
}

}  // namespace agentrewind
