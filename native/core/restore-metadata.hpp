// Owner, extended attributes, mode and time of an entry, in the order in which none of them undoes another.
#pragma once

#include "beneath.hpp"
#include "result.hpp"
#include "stored-entry.hpp"

namespace agentrewind {

/** Of the entry at `location`, whatever its kind. `owners`: whether the process may give files away. */
Status restoreMetadata(const Location& location, const StoredEntry& entry, bool owners);

/** Of a file that was just made and is open for writing. */
Status restoreMetadata(int fd, const StoredEntry& entry, bool owners);

}  // namespace agentrewind
