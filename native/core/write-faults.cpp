#include "write-faults.hpp"

#include <atomic>

namespace agentrewind {
namespace {

std::atomic<WriteFault> armed{WriteFault::none};
std::atomic<long> left{0};
std::atomic<bool> halved{false};

}  // namespace

bool armWriteFault(WriteFault kind, long nth) {
  const bool reached = armed != WriteFault::none && left <= 0;
  left = nth;
  halved = false;
  armed = kind;
  return reached;
}

int beforeChange(size_t* size) {
  const WriteFault kind = armed;
  if (kind == WriteFault::none) return 0;
  const long now = left.fetch_sub(1) - 1;
  if (now > 0 || now < -1) return 0;
  if (now < 0) return halved ? ENOSPC : 0;
  if (kind == WriteFault::shortened && size != nullptr && *size > 1) {
    *size /= 2;
    halved = true;
    return 0;
  }
  return kind == WriteFault::broken ? EIO : ENOSPC;
}

}  // namespace agentrewind
