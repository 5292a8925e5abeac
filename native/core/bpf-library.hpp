// libbpf, as this machine has it: found when it is first needed, so that nothing else depends on it.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <string>

struct bpf_object;
struct bpf_program;
struct bpf_link;
struct bpf_map;
/** Its beginning; libbpf goes by the size. */
struct bpf_object_open_opts {
  size_t sz;
  const char* object_name;
};

namespace agentrewind {

/** The functions of libbpf 1.x that are used; their forms do not change within it. */
struct BpfLibrary {
  bpf_object* (*openMemory)(const void* bytes, size_t size, const bpf_object_open_opts* options);
  int (*load)(bpf_object* object);
  void (*closeObject)(bpf_object* object);
  bpf_program* (*nextProgram)(const bpf_object* object, bpf_program* before);
  const char* (*programName)(const bpf_program* program);
  const char* (*programSection)(const bpf_program* program);
  int (*programFd)(const bpf_program* program);
  int (*setAutoload)(bpf_program* program, bool loads);
  bool (*autoload)(const bpf_program* program);
  bpf_link* (*attach)(const bpf_program* program);
  int (*destroyLink)(bpf_link* link);
  bpf_map* (*findMap)(const bpf_object* object, const char* name);
  bpf_map* (*nextMap)(const bpf_object* object, const bpf_map* before);
  int (*mapFd)(const bpf_map* map);
  int (*setMaxEntries)(bpf_map* map, unsigned entries);
  int (*setPrint)(int (*print)(int level, const char* format, va_list arguments));

  /** Null: `reason` says why there is none. */
  static const BpfLibrary* get(std::string& reason);
};

/** What libbpf says in this thread while it lives, its last complaints. */
class BpfComplaints {
 public:
  BpfComplaints();
  ~BpfComplaints();
  BpfComplaints(const BpfComplaints&) = delete;
  BpfComplaints& operator=(const BpfComplaints&) = delete;

  /** One line; empty where nothing was said. */
  static std::string line();
  static int print(int level, const char* format, va_list arguments);
};

}  // namespace agentrewind
