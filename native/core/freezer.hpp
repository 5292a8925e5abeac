// Holds still, for as long as it lives, processes that this one started and that have some files open.
#pragma once

#include <memory>
#include <vector>

#include "statx.hpp"

namespace agentrewind {

/**
 * The stop is a ptrace stop owned by a process made for it: if this process is killed, that one sees its pipe end, exits, and the kernel lets the stopped
 * ones go on. Their parents notice nothing, unlike with SIGSTOP.
 */
class Freezer {
 public:
  /** Null when no descendant has one of the files open, or the kernel or its policy refuses. */
  static std::unique_ptr<Freezer> hold(const std::vector<Stat>& files);
  ~Freezer();
  Freezer(const Freezer&) = delete;
  Freezer& operator=(const Freezer&) = delete;

 private:
  Freezer(int keeper, int pipe) : keeper_(keeper), pipe_(pipe) {}

  const int keeper_;
  const int pipe_;
};

}  // namespace agentrewind
