// Files that somebody holds open for writing: stores through a mapping of such a file, made and ended at any moment, raise no event.
#pragma once

#include <cstdint>

#include "processes.hpp"

namespace agentrewind {

/** What is mapped shared and writable, anywhere, and which regular files of this device are open for writing, in whatever process can be seen. */
InUse filesInUse(uint32_t deviceMajor, uint32_t deviceMinor);

}  // namespace agentrewind
