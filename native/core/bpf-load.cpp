// How the programs come into the kernel, and what is read there without a call.
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "bpf-call.hpp"
#include "bpf-effects.hpp"

namespace agentrewind {
namespace {

/** What a kernel without a file system of that kind does not have. */
constexpr const char* optional = "on_ext4_inode";

template <typename Value>
Value* mapped(int map, size_t count, int protection) {
  void* found = mmap(nullptr, count * sizeof(Value), protection, MAP_SHARED, map, 0);
  return found == MAP_FAILED ? nullptr : static_cast<Value*>(found);
}

std::string because(const char* what) {
  const std::string error = strerror(errno);
  const std::string said = BpfComplaints::line();
  return std::string(what) + " (" + error + (said.empty() ? "" : "; " + said) + ")";
}

}  // namespace

std::unique_ptr<BpfEffects> BpfEffects::open(const std::string& object, const BpfLimits& limits, std::string& reason) {
  const BpfLibrary* library = BpfLibrary::get(reason);
  if (library == nullptr) return nullptr;
  const BpfComplaints complaints;
  for (const bool withOptional : {true, false}) {
    std::unique_ptr<BpfEffects> made(new BpfEffects(*library));
    if (!made->load(object, limits, withOptional, reason)) continue;
    made->seesExt4_ = withOptional;
    if (made->findMaps(reason) && made->attach(reason)) return made;
    return nullptr;
  }
  return nullptr;
}

bool BpfEffects::load(const std::string& object, const BpfLimits& limits, bool withOptional, std::string& reason) {
  const bpf_object_open_opts options{sizeof(options), "effects"};
  object_ = library_.openMemory(object.data(), object.size(), &options);
  if (object_ == nullptr) {
    reason = because("the object with the programs cannot be read");
    return false;
  }
  for (bpf_program* one = nullptr; (one = library_.nextProgram(object_, one)) != nullptr;)
    if (!withOptional && strcmp(library_.programName(one), optional) == 0) library_.setAutoload(one, false);
  const std::pair<const char*, uint32_t> sizes[] = {
      {"threads", limits.threads}, {"dirty", limits.dirty}, {"connections", limits.connections}};
  for (const auto& [name, entries] : sizes) {
    bpf_map* map = library_.findMap(object_, name);
    if (map != nullptr && entries != 0) library_.setMaxEntries(map, entries);
  }
  if (library_.load(object_) == 0) return true;
  reason = because("the kernel does not take the programs");
  return false;
}

bool BpfEffects::findMaps(std::string& reason) {
  for (const char* name : {"cgroups", "devices", "threads", "dirty", "connections", ".bss"}) {
    if (mapFd(name) >= 0) continue;
    reason = std::string("the object with the programs has no map ") + name;
    return false;
  }
  const std::pair<const char*, size_t> sizes[] = {{".bss", sizeof(config)},
                                                  {"counters", sizeof(counters)},
                                                  {"running", sizeof(running)},
                                                  {"device_effects", sizeof(device_effects)},
                                                  {"threads", sizeof(thread)}};
  for (const auto& [name, size] : sizes) {
    Result<MapForm> form = formOf(mapFd(name));
    if (form && form.value().valueSize == size) continue;
    reason = "the object with the programs is another version's";
    return false;
  }
  counters_ = mapped<counters>(mapFd("counters"), SLOTS + 1, PROT_READ);
  running_ = mapped<running>(mapFd("running"), CPUS, PROT_READ | PROT_WRITE);
  effects_ = mapped<device_effects>(mapFd("device_effects"), DEVICES, PROT_READ);
  if (counters_ == nullptr || running_ == nullptr || effects_ == nullptr) {
    reason = because("what the programs count cannot be mapped");
    return false;
  }
  processors_ = static_cast<uint32_t>(std::clamp<long>(sysconf(_SC_NPROCESSORS_CONF), 1, CPUS));
  struct stat space;
  if (stat("/proc/self/ns/mnt", &space) == 0) mountNamespace_ = static_cast<uint32_t>(space.st_ino);
  return true;
}

bool BpfEffects::attach(std::string& reason) {
  for (bpf_program* one = nullptr; (one = library_.nextProgram(object_, one)) != nullptr;) {
    if (!library_.autoload(one)) continue;
    bpf_link* link = library_.attach(one);
    if (link == nullptr) {
      reason = because((std::string("the program ") + library_.programName(one) + " cannot be attached").c_str());
      return false;
    }
    links_.push_back(link);
  }
  return true;
}

BpfEffects::~BpfEffects() {
  for (bpf_link* link : links_) library_.destroyLink(link);
  const auto unmap = [](const void* from, size_t size) {
    if (from != nullptr) munmap(const_cast<void*>(from), size);
  };
  unmap(counters_, (SLOTS + 1) * sizeof(counters));
  unmap(running_, CPUS * sizeof(running));
  unmap(effects_, DEVICES * sizeof(device_effects));
  if (object_ != nullptr) library_.closeObject(object_);
}

int BpfEffects::mapFd(const char* name) const {
  bpf_map* map = library_.findMap(object_, name);
  return map == nullptr ? -1 : library_.mapFd(map);
}

Result<std::vector<MapForm>> BpfEffects::maps() const {
  std::vector<MapForm> found;
  for (bpf_map* one = nullptr; (one = library_.nextMap(object_, one)) != nullptr;) {
    Result<MapForm> form = formOf(library_.mapFd(one));
    if (!form) return form.error();
    found.push_back(form.value());
  }
  return found;
}

std::vector<std::pair<std::string, std::string>> BpfEffects::programs() const {
  std::vector<std::pair<std::string, std::string>> found;
  for (bpf_program* one = nullptr; (one = library_.nextProgram(object_, one)) != nullptr;)
    found.emplace_back(library_.programName(one), library_.programSection(one));
  return found;
}

Result<uint64_t> BpfEffects::losses() const {
  uint64_t sum = dropped_;
  for (bpf_program* one = nullptr; (one = library_.nextProgram(object_, one)) != nullptr;) {
    if (!library_.autoload(one)) continue;
    Result<uint64_t> missed = missedRuns(library_.programFd(one));
    if (!missed) return missed.error();
    sum += missed.value();
  }
  return sum;
}

}  // namespace agentrewind
