// How many objects of System V IPC there are where a process is: neither its files nor its memory tell.
#pragma once

#include <cstdint>

#include "result.hpp"

namespace agentrewind {

/** Segments of shared memory, sets of semaphores and queues. Asks from inside, in a thread that ends behind it: one of the pool would have to come back. */
Result<uint64_t> countIpcObjects(int pid);

}  // namespace agentrewind
