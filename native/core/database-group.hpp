// Files that only mean something together: a database with its log, index and journal, as SQLite names them.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "scan-work.hpp"

namespace agentrewind {

constexpr std::array<const char*, 4> groupSuffixes{"", "-wal", "-shm", "-journal"};

/** The name of the group's main file: the name itself without a companion's ending. */
std::string_view groupOf(std::string_view name);

/** The directory has at least two files of this group. */
bool isGroup(const DirectoryWork& work, std::string_view base);

enum class GroupOutcome { whole, torn, failed };

/**
 * Reads what changed of a group so that all of it is of one moment: looks at all, reads, looks again; at last with its writers held still, if this process
 * started them. `torn`: they were never of one moment, and are stored as last read.
 */
GroupOutcome readGroup(ScanState& state, DirectoryWork& work, int directory, const std::string& base, Sink& sink);

}  // namespace agentrewind
