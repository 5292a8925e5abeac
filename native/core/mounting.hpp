// Mounts, and locks on files that die with their holder.
#pragma once

#include <string>

#include "result.hpp"

namespace agentrewind {

/** As mount(2); an empty `source` or `data` is none. */
Status mountAt(const std::string& source, const std::string& target, const std::string& kind, unsigned long flags, const std::string& data);
Status unmountAt(const std::string& target, int flags);

enum class LockKind { shared, exclusive, none };

/** flock(2) without waiting; false while another holds it. It is the open file's: a duplicate shares it. */
Result<bool> lockFile(int fd, LockKind kind);

}  // namespace agentrewind
