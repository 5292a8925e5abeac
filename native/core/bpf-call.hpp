// bpf(2): maps and programs by their descriptors.
#pragma once

#include <linux/bpf.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "result.hpp"

namespace agentrewind {

Status updateMap(int map, const void* key, const void* value);
/** It is no failure that there is no such entry. */
Status deleteFromMap(int map, const void* key);
struct MapForm {
  std::string name;
  uint32_t type, keySize, valueSize, entries, flags;
};
Result<MapForm> formOf(int map);
/** All entries of a hash; with `removes` each goes as it is read. `entry` gets key and value. */
Status eachEntry(int map, uint32_t keySize, uint32_t valueSize, bool removes,
                 const std::function<void(const uint8_t* key, const uint8_t* value)>& entry);

/** How often the kernel left the program out because it was already running on the processor. */
Result<uint64_t> missedRuns(int program);

struct LoadedProgram {
  uint32_t id;
  std::string name;
};
/** All of the machine. */
Result<std::vector<LoadedProgram>> loadedPrograms();

/** Loads a program that does nothing. */
Status tryProgram();

}  // namespace agentrewind
