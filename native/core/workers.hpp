// Runs independent pieces of work on a few threads of our own, so that libuv's pool stays free for the process's other work.
#pragma once

#include <cstddef>
#include <functional>

namespace agentrewind {

/** As many as help: the machine's processors, at most 8. */
unsigned workerCount();

/**
 * Calls `work(index, worker)` once for each index below `count`, in any order, from up to `workers` threads, and returns when all are done.
 * `worker` is below `workers` and of one thread only, for scratch space. Where no thread can be started, the caller's does it all.
 */
void parallelFor(size_t count, unsigned workers, const std::function<void(size_t index, unsigned worker)>& work);

}  // namespace agentrewind
