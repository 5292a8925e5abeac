// Runs steps of a restore that do not depend on each other, from several threads.
#pragma once

#include <string_view>
#include <vector>

#include "restore-job.hpp"
#include "restore-outcome.hpp"

namespace agentrewind {

struct FailedJob {
  size_t index;
  Failure failure;
};

/**
 * Returns what failed, by index. Where content is damaged or cannot be made, the rest of the new entries is not made.
 */
std::vector<FailedJob> runJobs(int root, const std::vector<Job>& jobs);

}  // namespace agentrewind
