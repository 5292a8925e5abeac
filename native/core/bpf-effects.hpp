// The programs of bpf/ as they run in the kernel, and what they have seen for each watch.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../../bpf/effects.h"
#include "bpf-call.hpp"
#include "bpf-library.hpp"
#include "result.hpp"

namespace agentrewind {

/** Entries of the maps; 0 leaves what the object says. */
struct BpfLimits {
  uint32_t threads = 0;
  uint32_t dirty = 0;
  uint32_t connections = 0;
};

struct ThreadSeen {
  uint32_t tid;
  uint64_t scheduled;
  uint64_t returned;
  /** In a system call, or interrupted in one that it will enter again by itself. */
  bool waits;
};

struct InodeSeen {
  uint32_t dev;
  uint64_t ino;
  /** Bits by counter; see hostBit. */
  uint32_t classes;
};

struct ConnectionSeen {
  connection_key key;
  uint64_t count;
};

/** Not shared between threads. Nothing is pinned: all goes with the process. */
class BpfEffects {
 public:
  /** In `classes`: changed by somebody outside of the watched cgroup. */
  static constexpr uint32_t hostBit = 1u << 31;
  /** Behind the counters of the kernel: effects by others on the watched devices, and processors on which one of the watch runs now. */
  static constexpr size_t hostAt = COUNTERS;
  static constexpr size_t runningAt = COUNTERS + 1;
  static constexpr size_t readings = COUNTERS + 2;

  /** Null: `reason` says why. */
  static std::unique_ptr<BpfEffects> open(const std::string& object, const BpfLimits& limits, std::string& reason);
  BpfEffects(const BpfEffects&) = delete;
  BpfEffects& operator=(const BpfEffects&) = delete;
  ~BpfEffects();

  /** A free slot; ENOSPC where there is none. */
  Result<uint32_t> watch();
  Status unwatch(uint32_t slot);
  bool watches(uint32_t slot) const { return watches_.count(slot) > 0; }
  /** `levels`: depths below the root at which the cgroup may lie. ENOSPC beyond LEVELS different ones, EEXIST where it is watched already. */
  Status addCgroup(uint32_t slot, uint64_t number, const std::vector<uint32_t>& levels);
  /** Whoever traces tasks of others from there does not act for them. EEXIST where it is known already. */
  Status addTracers(uint32_t slot, uint64_t number);
  /** `dev` as the kernel knows the superblock. `tells`: it is an ext4. */
  Status addDevice(uint32_t slot, uint32_t dev, bool tells);

  /** Of a slot that is watched. No system call. */
  void read(uint32_t slot, uint64_t* into) const;
  Result<std::vector<ThreadSeen>> threads(uint32_t slot) const;
  /** What was seen since the last call. */
  Result<std::vector<InodeSeen>> takeDirty(uint32_t slot);
  Result<std::vector<ConnectionSeen>> takeConnections(uint32_t slot);
  /** Runs that the kernel left out, of all programs, and inodes that nobody took for too long. */
  Result<uint64_t> losses() const;
  Result<std::vector<MapForm>> maps() const;
  /** Name and section of each, also of one that the kernel has nothing for. */
  std::vector<std::pair<std::string, std::string>> programs() const;

 private:
  struct Watch {
    bool hasCgroup = false;
    uint64_t cgroup = 0;
    std::vector<uint64_t> tracers;
    std::vector<uint32_t> levels;
    std::vector<uint32_t> devices;
    uint64_t before[readings] = {};
    std::map<std::pair<uint32_t, uint64_t>, uint32_t> dirty;
    std::vector<ConnectionSeen> connections;
  };
  struct Device {
    uint32_t index;
    bool blind;
    uint32_t uses;
  };

  explicit BpfEffects(const BpfLibrary& library) : library_(library) {}
  bool load(const std::string& object, const BpfLimits& limits, bool withOptional, std::string& reason);
  bool attach(std::string& reason);
  bool findMaps(std::string& reason);
  int mapFd(const char* name) const;
  bool knows(uint64_t cgroup) const;
  void rawRead(uint32_t slot, uint64_t* into) const;
  uint64_t hostEffects(uint32_t slot) const;
  Status writeConfig();
  void keep(Watch& watch, const dirty_key& key, uint32_t bits);

  const BpfLibrary& library_;
  bpf_object* object_ = nullptr;
  std::vector<bpf_link*> links_;
  bool seesExt4_ = false;
  const counters* counters_ = nullptr;
  running* running_ = nullptr;
  const device_effects* effects_ = nullptr;
  uint32_t processors_ = 0;
  uint32_t mountNamespace_ = 0;
  uint32_t owners_ = 1;
  uint64_t dropped_ = 0;
  std::map<uint32_t, Watch> watches_;
  std::map<uint32_t, uint32_t> levels_;
  std::map<uint32_t, Device> devices_;
};

}  // namespace agentrewind
