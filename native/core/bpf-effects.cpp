// Watches and what was seen for them. How the programs come into the kernel: bpf-load.cpp.
#include "bpf-effects.hpp"

#include <algorithm>
#include <cstring>

#include "bpf-call.hpp"

namespace agentrewind {
namespace {

/** More than that of one watch is not kept for whoever does not take it. */
constexpr size_t mostDirty = 1 << 20;

uint64_t now(const uint64_t& counter) { return __atomic_load_n(&counter, __ATOMIC_ACQUIRE); }

template <typename Key>
Key keyOf(const uint8_t* bytes) {
  Key made;
  memcpy(&made, bytes, sizeof(made));
  return made;
}

}  // namespace

Result<uint32_t> BpfEffects::watch() {
  for (uint32_t slot = 0; slot < SLOTS; slot++) {
    if (watches(slot)) continue;
    Watch& made = watches_[slot];
    owners_ = std::max(owners_, slot + 2);
    rawRead(slot, made.before);
    return slot;
  }
  return Errno{ENOSPC, "bpf"};
}

bool BpfEffects::knows(uint64_t cgroup) const {
  return std::any_of(watches_.begin(), watches_.end(), [&](const auto& one) {
    const Watch& watch = one.second;
    const bool traces = std::find(watch.tracers.begin(), watch.tracers.end(), cgroup) != watch.tracers.end();
    return traces || (watch.hasCgroup && watch.cgroup == cgroup);
  });
}

Status BpfEffects::addCgroup(uint32_t slot, uint64_t number, const std::vector<uint32_t>& levels) {
  Watch& watch = watches_.at(slot);
  if (knows(number)) return Errno{EEXIST, "bpf"};
  std::map<uint32_t, uint32_t> wanted = levels_;
  for (const uint32_t level : levels) wanted[level]++;
  if (watch.hasCgroup || wanted.size() > LEVELS) return Errno{ENOSPC, "bpf"};
  levels_ = std::move(wanted);
  watch.levels = levels;
  watch.cgroup = number;
  watch.hasCgroup = true;
  if (Status entered = updateMap(mapFd("cgroups"), &number, &slot); !entered) return entered;
  return writeConfig();
}

Status BpfEffects::addTracers(uint32_t slot, uint64_t number) {
  if (knows(number)) return Errno{EEXIST, "bpf"};
  watches_.at(slot).tracers.push_back(number);
  const uint32_t kind = TRACERS;
  return updateMap(mapFd("cgroups"), &number, &kind);
}

Status BpfEffects::addDevice(uint32_t slot, uint32_t dev, bool tells) {
  Watch& watch = watches_.at(slot);
  if (std::find(watch.devices.begin(), watch.devices.end(), dev) != watch.devices.end()) return Done{};
  auto known = devices_.find(dev);
  if (known == devices_.end()) {
    uint32_t index = 0;
    const auto used = [&](uint32_t one) {
      return std::any_of(devices_.begin(), devices_.end(), [&](const auto& each) { return each.second.index == one; });
    };
    while (index < DEVICES && used(index)) index++;
    if (index == DEVICES) return Errno{ENOSPC, "bpf"};
    known = devices_.emplace(dev, Device{index, !(tells && seesExt4_), 0}).first;
  }
  known->second.uses++;
  watch.devices.push_back(dev);
  const device entry{known->second.index, known->second.blind ? 1u : 0u};
  if (Status entered = updateMap(mapFd("devices"), &dev, &entry); !entered) return entered;
  if (Status written = writeConfig(); !written) return written;
  watch.before[hostAt] = hostEffects(slot);
  return Done{};
}

Status BpfEffects::unwatch(uint32_t slot) {
  Watch& watch = watches_.at(slot);
  Status removed = Done{};
  const auto note = [&](Status one) {
    if (!one) removed = one;
  };
  if (watch.hasCgroup) note(deleteFromMap(mapFd("cgroups"), &watch.cgroup));
  for (const uint64_t tracers : watch.tracers) note(deleteFromMap(mapFd("cgroups"), &tracers));
  for (const uint32_t level : watch.levels)
    if (--levels_[level] == 0) levels_.erase(level);
  for (const uint32_t dev : watch.devices) {
    if (--devices_.at(dev).uses > 0) continue;
    note(deleteFromMap(mapFd("devices"), &dev));
    devices_.erase(dev);
  }
  note(writeConfig());
  std::vector<uint64_t> tasks;
  note(eachEntry(mapFd("threads"), sizeof(uint64_t), sizeof(thread), false, [&](const uint8_t* key, const uint8_t* value) {
    if (keyOf<thread>(value).slot == slot) tasks.push_back(keyOf<uint64_t>(key));
  }));
  for (const uint64_t task : tasks) note(deleteFromMap(mapFd("threads"), &task));
  // The kernel no longer writes the slot; a processor that idles would keep it for long.
  for (uint32_t i = 0; i < processors_; i++) {
    uint32_t expected = slot + 1;
    __atomic_compare_exchange_n(&running_[i].owner, &expected, 0, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  }
  watches_.erase(slot);
  return removed;
}

/** Lists before their lengths. */
Status BpfEffects::writeConfig() {
  config wanted{};
  wanted.mount_namespace = mountNamespace_;
  for (const auto& [level, uses] : levels_) wanted.level[wanted.levels++] = level;
  for (const auto& [dev, one] : devices_) {
    wanted.devices |= 1u << one.index;
    if (one.blind) wanted.blind |= 1u << one.index;
  }
  const uint32_t key = 0;
  const int map = mapFd(".bss");
  config first = wanted;
  // Until the list stands, more levels than there are only cost a look.
  first.levels = LEVELS;
  if (!levels_.empty())
    if (Status written = updateMap(map, &key, &first); !written) return written;
  return updateMap(map, &key, &wanted);
}

uint64_t BpfEffects::hostEffects(uint32_t slot) const {
  uint64_t sum = 0;
  for (const uint32_t dev : watches_.at(slot).devices) {
    const device_effects& on = effects_[devices_.at(dev).index];
    for (uint32_t owner = 0; owner < owners_; owner++)
      if (owner != slot + 1) sum += now(on.by[owner]);
  }
  return sum;
}

void BpfEffects::rawRead(uint32_t slot, uint64_t* into) const {
  // One that gets a processor behind this look is counted behind it as well.
  into[runningAt] = 0;
  for (uint32_t i = 0; i < processors_; i++)
    if (__atomic_load_n(&running_[i].owner, __ATOMIC_ACQUIRE) == slot + 1) into[runningAt]++;
  const counters& seen = counters_[slot];
  // Ended before begun, so that what is under way is never too little.
  into[COUNT_ENDED] = now(seen.of[COUNT_ENDED]);
  for (uint32_t i = 0; i < COUNTERS; i++)
    if (i != COUNT_ENDED) into[i] = now(seen.of[i]);
  into[COUNT_LOST] += now(counters_[NOBODY].of[COUNT_LOST]);
  into[hostAt] = hostEffects(slot);
}

void BpfEffects::read(uint32_t slot, uint64_t* into) const {
  rawRead(slot, into);
  const uint64_t* before = watches_.at(slot).before;
  for (size_t i = 0; i < readings; i++)
    if (i != runningAt) into[i] -= before[i];
}

Result<std::vector<ThreadSeen>> BpfEffects::threads(uint32_t slot) const {
  std::vector<ThreadSeen> found;
  Status all = eachEntry(mapFd("threads"), sizeof(uint64_t), sizeof(thread), false, [&](const uint8_t*, const uint8_t* value) {
    const thread one = keyOf<thread>(value);
    if (one.slot == slot && !one.ended) found.push_back({one.tid, one.scheduled, one.returned, one.call != 0});
  });
  if (!all) return all.error();
  return found;
}

void BpfEffects::keep(Watch& watch, const dirty_key& key, uint32_t bits) {
  if (watch.dirty.size() >= mostDirty) {
    dropped_ += watch.dirty.size();
    watch.dirty.clear();
  }
  watch.dirty[{key.dev, key.ino}] |= bits;
}

Result<std::vector<InodeSeen>> BpfEffects::takeDirty(uint32_t slot) {
  Status all = eachEntry(mapFd("dirty"), sizeof(dirty_key), sizeof(uint32_t), true, [&](const uint8_t* bytes, const uint8_t*) {
    const dirty_key key = keyOf<dirty_key>(bytes);
    for (auto& [other, watch] : watches_) {
      if (key.owner == other + 1)
        keep(watch, key, 1u << key.counter);
      else if (std::find(watch.devices.begin(), watch.devices.end(), key.dev) != watch.devices.end())
        keep(watch, key, 1u << key.counter | hostBit);
    }
  });
  if (!all) return all.error();
  Watch& watch = watches_.at(slot);
  std::vector<InodeSeen> found;
  for (const auto& [at, bits] : watch.dirty) found.push_back({at.first, at.second, bits});
  watch.dirty.clear();
  return found;
}

Result<std::vector<ConnectionSeen>> BpfEffects::takeConnections(uint32_t slot) {
  Status all = eachEntry(mapFd("connections"), sizeof(connection_key), sizeof(uint64_t), true,
                         [&](const uint8_t* key, const uint8_t* value) {
                           const connection_key made = keyOf<connection_key>(key);
                           const auto watch = watches_.find(made.slot);
                           if (watch != watches_.end()) watch->second.connections.push_back({made, keyOf<uint64_t>(value)});
                         });
  if (!all) return all.error();
  return std::exchange(watches_.at(slot).connections, {});
}

}  // namespace agentrewind
