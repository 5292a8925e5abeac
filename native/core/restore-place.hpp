// Puts staged entries into place and removes what has to go. What is not any more as it was captured is left alone.
#pragma once

#include "restore-folder.hpp"
#include "restore-job.hpp"
#include "restore-outcome.hpp"

namespace agentrewind {

Outcome removeEntry(const Location& location, const Job& job);
Outcome removeFolder(const Location& location);
Outcome placeEntry(const Location& staged, const Location& location, const Job& job);
/** `temporary` is a free name in the staging folder. */
Outcome linkEntry(const Location& first, const Location& temporary, const Location& location, const Job& job);
Outcome changeMetadata(const Location& location, const Job& job);

/** `path` with all that is below it; nothing where it is not there. */
Status removeTree(int root, std::string_view path);

/** True where an attribute of the entry or of its folder forbids changes. */
bool isImmutable(const Location& location);

}  // namespace agentrewind
