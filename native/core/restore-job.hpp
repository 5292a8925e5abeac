// The steps of a restore, as src/environment/directory/jobs.ts packs them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "stored-entry.hpp"

namespace agentrewind {

enum class Operation : uint8_t {
  /** Makes a file, symbolic link or node at `path`, with its content and metadata. */
  stage = 1,
  makeDirectory = 2,
  remove = 3,
  removeDirectory = 4,
  /** Renames `from` to `path`. */
  place = 5,
  /** Makes `path` a name of `from`; `temporary` is used where something is replaced. */
  link = 6,
  setMetadata = 7,
  /** Removes `path` with all that is below it. */
  removeTree = 8,
};

/** What was known of `path` when it was captured. */
struct Known {
  uint64_t ino;
  int64_t ctimeNs;
  int64_t mtimeNs;
  uint64_t size;
  EntryType type;
  /** Another name of the inode may be changed by the same restore, which moves the time of change. */
  bool shared;
};

/** A stretch of content: where its data lies in a pack, and its name. */
struct Block {
  int32_t pack;
  uint32_t length;
  uint64_t offset;
  /** In the file. */
  uint64_t position;
  /** Which pages the data is, one bit for each; all of them: it is the whole stretch. */
  uint64_t pages;
  std::string_view name;
};

struct Job {
  Operation operation;
  std::string_view path;
  std::string_view from;
  std::string_view temporary;
  std::optional<Known> known;
  std::optional<StoredEntry> entry;
  /** Without those that are holes. */
  std::vector<Block> blocks;
};

/** Nothing where the bytes are no jobs. */
std::optional<std::vector<Job>> decodeJobs(std::string_view bytes);

}  // namespace agentrewind
