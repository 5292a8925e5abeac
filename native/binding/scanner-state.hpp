// What a Scanner object knows; outlives it while a thread works.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "../core/change-log.hpp"
#include "../core/tree.hpp"

namespace agentrewind {

struct ScannerState {
  std::shared_ptr<const Node> kept;
  std::shared_ptr<const Node> found;
  std::vector<std::vector<std::string>> groups;
  ChangeLog log;
  std::atomic<bool> aborted{false};
  bool running = false;
};

}  // namespace agentrewind
