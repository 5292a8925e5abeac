#include "bpf-call.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>

#include "unique-fd.hpp"

namespace agentrewind {
namespace {

uint64_t address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

bpf_attr none() {
  bpf_attr made;
  memset(&made, 0, sizeof(made));
  return made;
}

long call(bpf_cmd command, bpf_attr& attr) { return syscall(SYS_bpf, command, &attr, sizeof(attr)); }

template <typename Info>
Result<Info> infoOf(int fd) {
  Info found;
  memset(&found, 0, sizeof(found));
  bpf_attr attr = none();
  attr.info.bpf_fd = static_cast<uint32_t>(fd);
  attr.info.info = address(&found);
  attr.info.info_len = sizeof(found);
  if (call(BPF_OBJ_GET_INFO_BY_FD, attr) < 0) return lastError("bpf");
  return found;
}

}  // namespace

Status updateMap(int map, const void* key, const void* value) {
  bpf_attr attr = none();
  attr.map_fd = static_cast<uint32_t>(map);
  attr.key = address(key);
  attr.value = address(value);
  return check(call(BPF_MAP_UPDATE_ELEM, attr), "bpf");
}

Status deleteFromMap(int map, const void* key) {
  bpf_attr attr = none();
  attr.map_fd = static_cast<uint32_t>(map);
  attr.key = address(key);
  if (call(BPF_MAP_DELETE_ELEM, attr) < 0 && errno != ENOENT) return lastError("bpf");
  return Done{};
}

Result<MapForm> formOf(int map) {
  Result<bpf_map_info> info = infoOf<bpf_map_info>(map);
  if (!info) return info.error();
  const bpf_map_info& seen = info.value();
  return MapForm{std::string(seen.name, strnlen(seen.name, BPF_OBJ_NAME_LEN)), seen.type, seen.key_size, seen.value_size,
                 seen.max_entries, seen.map_flags};
}

Status eachEntry(int map, uint32_t keySize, uint32_t valueSize, bool removes,
                 const std::function<void(const uint8_t*, const uint8_t*)>& entry) {
  uint32_t room = 1024;
  std::vector<uint8_t> keys(room * keySize);
  std::vector<uint8_t> values(room * valueSize);
  // A hash's place is the number of a bucket.
  uint32_t place = 0;
  for (bool first = true;;) {
    uint32_t next = 0;
    bpf_attr attr = none();
    attr.batch.in_batch = first ? 0 : address(&place);
    attr.batch.out_batch = address(&next);
    attr.batch.keys = address(keys.data());
    attr.batch.values = address(values.data());
    attr.batch.count = room;
    attr.batch.map_fd = static_cast<uint32_t>(map);
    const long done = call(removes ? BPF_MAP_LOOKUP_AND_DELETE_BATCH : BPF_MAP_LOOKUP_BATCH, attr);
    const bool end = done < 0 && errno == ENOENT;
    if (done < 0 && errno == EINTR) continue;
    if (done < 0 && errno == ENOSPC) {
      // One bucket holds more than there is room for.
      room *= 2;
      keys.resize(room * keySize);
      values.resize(room * valueSize);
      continue;
    }
    if (done < 0 && !end) return lastError("bpf");
    for (uint32_t i = 0; i < attr.batch.count; i++) entry(&keys[i * keySize], &values[i * valueSize]);
    if (end) return Done{};
    place = next;
    first = false;
  }
}

Result<uint64_t> missedRuns(int program) {
  Result<bpf_prog_info> info = infoOf<bpf_prog_info>(program);
  if (!info) return info.error();
  return static_cast<uint64_t>(info.value().recursion_misses);
}

Result<std::vector<LoadedProgram>> loadedPrograms() {
  std::vector<LoadedProgram> found;
  for (uint32_t id = 0;;) {
    bpf_attr attr = none();
    attr.start_id = id;
    if (call(BPF_PROG_GET_NEXT_ID, attr) < 0) {
      if (errno == ENOENT) return found;
      return lastError("bpf");
    }
    id = attr.next_id;
    bpf_attr open = none();
    open.prog_id = id;
    const UniqueFd fd(static_cast<int>(call(BPF_PROG_GET_FD_BY_ID, open)));
    // Gone meanwhile.
    if (fd.get() < 0) continue;
    Result<bpf_prog_info> info = infoOf<bpf_prog_info>(fd.get());
    if (!info) return info.error();
    found.push_back({id, std::string(info.value().name, strnlen(info.value().name, BPF_OBJ_NAME_LEN))});
  }
}

Status tryProgram() {
  bpf_insn code[2];
  memset(code, 0, sizeof(code));
  code[0].code = BPF_ALU64 | BPF_MOV | BPF_K;
  code[1].code = BPF_JMP | BPF_EXIT;
  bpf_attr attr = none();
  attr.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT;
  attr.insns = address(code);
  attr.insn_cnt = 2;
  attr.license = address("GPL");
  const UniqueFd fd(static_cast<int>(call(BPF_PROG_LOAD, attr)));
  if (fd.get() < 0) return lastError("bpf");
  return Done{};
}

}  // namespace agentrewind
