// Owner, extended attributes, mode and time of an entry, in the order in which none of them undoes another.
#pragma once

#include "beneath.hpp"
#include "restore-outcome.hpp"
#include "stored-entry.hpp"

namespace agentrewind {

/** Of the entry at `location`, whatever its kind. */
Outcome restoreMetadata(const Location& location, const StoredEntry& entry);

/** Of a file that was just made and is open for writing. */
Outcome restoreMetadata(int fd, const StoredEntry& entry);

}  // namespace agentrewind
