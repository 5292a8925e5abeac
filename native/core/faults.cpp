#include "faults.hpp"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>

namespace agentrewind {
namespace {

const char* nameOf(FaultPoint point) {
  switch (point) {
#define AGENTREWIND_FAULT_NAME(name, number, text) \
  case FaultPoint::name:                           \
    return text;
    AGENTREWIND_FAULT_POINTS(AGENTREWIND_FAULT_NAME)
#undef AGENTREWIND_FAULT_NAME
  }
  return "";
}

struct Armed {
  std::string point;
  std::atomic<long> left{1};
  int log = -1;

  Armed() {
    if (const char* value = std::getenv("AGENTREWIND_FAULT")) {
      const std::string text(value);
      const size_t colon = text.find(':');
      point = text.substr(0, colon);
      if (colon != std::string::npos) left = std::atol(text.c_str() + colon + 1);
    }
    if (const char* file = std::getenv("AGENTREWIND_FAULT_LOG")) {
      log = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    }
  }
};

}  // namespace

void fault(FaultPoint point) {
  // Never destroyed: threads may still pass here while the process exits.
  static Armed& armed = *new Armed;
  if (armed.log < 0 && armed.point.empty()) return;
  const char* name = nameOf(point);
  if (armed.log >= 0) {
    // One write for each line, so that the lines of several threads do not mix.
    const std::string line = std::string(name) + "\n";
    if (write(armed.log, line.data(), line.size()) < 0) abort();
  }
  if (armed.point != name || armed.left.fetch_sub(1) != 1) return;
  kill(getpid(), SIGKILL);
  while (true) pause();
}

}  // namespace agentrewind
