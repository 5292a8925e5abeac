// A scanned tree in memory: what the next scan compares with, in about 200 bytes an entry. Immutable once built; unchanged directories are shared between scans.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sha256.hpp"
#include "statx.hpp"

namespace agentrewind {

/** docs/format.md, Files. `gone` is no type of the format: an entry that vanished while it was read. */
enum class Type : uint8_t { gone, file, directory, symlink, hardLink, fifo, characterDevice, blockDevice, socket, unread };

constexpr uint8_t flagBlocks = 1;
constexpr uint8_t flagTorn = 4;

/** What few entries have. */
struct Extra {
  /** Symlink: its text. Hard link: the path of the group's first member. Unread: why. */
  std::string tail;
  /** Encoded as in an entry. */
  std::string xattrs;
  uint16_t xattrCount = 0;
};

struct Directory;

struct Node {
  std::string name;
  std::shared_ptr<const Extra> extra;
  std::shared_ptr<const Directory> children;
  Sha256 content{};
  Stat stat;
  Type type = Type::gone;
  uint8_t flags = 0;
  bool hasContent = false;
  /** False while a change could hide behind equal times: made in the clock tick of the reading, or through a shared mapping. */
  bool settled = false;

  std::string_view tail() const { return extra ? std::string_view(extra->tail) : std::string_view(); }
};

struct Directory {
  /** Sorted by the names' bytes. */
  std::vector<Node> entries;
  /** The name of the stored sequence of entries. */
  Sha256 hash{};
  /** Of this directory and all below it: entries, and bytes of their files. */
  uint64_t totalEntries = 0;
  uint64_t totalBytes = 0;
  /** Something here or below must be visited by every scan: not settled, unread, left alone and told, or of several names. */
  bool restless = false;

  /** Null when there is none. */
  const Node* find(std::string_view name) const;
  /** Once `entries` is complete. */
  void summarize();
};

Type typeOf(uint32_t mode);

/** Appends the entry's bytes (F-8 to F-12). */
void encodeEntry(const Node& node, std::string& out);

/** Decides where a directory's chunks end (F-7). */
uint32_t nameBoundary(std::string_view name);

/** Follows `path` from the root's node; null when there is no such entry. */
const Node* findNode(const Node& root, std::string_view path);

}  // namespace agentrewind
