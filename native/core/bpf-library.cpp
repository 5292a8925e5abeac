#include "bpf-library.hpp"

#include <dlfcn.h>

#include <cstdio>

namespace agentrewind {
namespace {

thread_local std::string* complaints = nullptr;

template <typename Function>
bool find(void* library, const char* name, Function& function, std::string& reason) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) reason = std::string("libbpf.so.1 has no ") + name;
  return function != nullptr;
}

bool fill(void* library, BpfLibrary& made, std::string& reason) {
  return find(library, "bpf_object__open_mem", made.openMemory, reason) &&
         find(library, "bpf_object__load", made.load, reason) &&
         find(library, "bpf_object__close", made.closeObject, reason) &&
         find(library, "bpf_object__next_program", made.nextProgram, reason) &&
         find(library, "bpf_program__name", made.programName, reason) &&
         find(library, "bpf_program__section_name", made.programSection, reason) &&
         find(library, "bpf_program__fd", made.programFd, reason) &&
         find(library, "bpf_program__set_autoload", made.setAutoload, reason) &&
         find(library, "bpf_program__autoload", made.autoload, reason) &&
         find(library, "bpf_program__attach", made.attach, reason) &&
         find(library, "bpf_link__destroy", made.destroyLink, reason) &&
         find(library, "bpf_object__find_map_by_name", made.findMap, reason) &&
         find(library, "bpf_object__next_map", made.nextMap, reason) &&
         find(library, "bpf_map__fd", made.mapFd, reason) &&
         find(library, "bpf_map__set_max_entries", made.setMaxEntries, reason) &&
         find(library, "libbpf_set_print", made.setPrint, reason);
}

struct Loaded {
  BpfLibrary library{};
  bool there = false;
  std::string reason;

  Loaded() {
    // Never unloaded: threads may be in it until the process ends.
    void* handle = dlopen("libbpf.so.1", RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      reason = "libbpf.so.1 is not installed (package libbpf1 or libbpf)";
      return;
    }
    there = fill(handle, library, reason);
    if (there) library.setPrint(BpfComplaints::print);
  }
};

}  // namespace

const BpfLibrary* BpfLibrary::get(std::string& reason) {
  static const Loaded loaded;
  if (!loaded.there) reason = loaded.reason;
  return loaded.there ? &loaded.library : nullptr;
}

BpfComplaints::BpfComplaints() { complaints = new std::string; }

BpfComplaints::~BpfComplaints() {
  delete complaints;
  complaints = nullptr;
}

std::string BpfComplaints::line() {
  if (complaints == nullptr) return {};
  std::string text = *complaints;
  for (char& one : text)
    if (one == '\n') one = ' ';
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

int BpfComplaints::print(int level, const char* format, va_list arguments) {
  // LIBBPF_WARN. A verifier's log is long; what failed is told behind it.
  if (level != 0 || complaints == nullptr) return 0;
  char text[512];
  const int length = vsnprintf(text, sizeof(text), format, arguments);
  constexpr size_t most = 600;
  *complaints += text;
  if (complaints->size() > most) complaints->erase(0, complaints->size() - most);
  return length;
}

}  // namespace agentrewind
