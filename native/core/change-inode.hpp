// Mode, owner and times of an entry. A symbolic link is changed itself, never what it points to.
#pragma once

#include <sys/types.h>
#include <time.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "beneath.hpp"
#include "result.hpp"

namespace agentrewind {

/** EOPNOTSUPP on symbolic links: their mode cannot be changed. */
Status setMode(const Location& location, mode_t mode);
Status setMode(int root, std::string_view path, mode_t mode);

/** Clears set-id bits and file capabilities, as chown always does: set mode and xattrs afterwards. */
Status setOwner(int root, std::string_view path, uid_t uid, gid_t gid);

/** Nanoseconds since 1970, negative before. Without `atimeNs` the time of access stays. */
Status setTimes(const Location& location, std::optional<int64_t> atimeNs, int64_t mtimeNs);
Status setTimes(int root, std::string_view path, std::optional<int64_t> atimeNs, int64_t mtimeNs);

/** As the calls of the system take it. */
timespec toTimespec(int64_t nanoseconds);

}  // namespace agentrewind
