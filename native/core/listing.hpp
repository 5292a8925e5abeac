// All entries of a directory with their records.
#pragma once

#include <string>
#include <string_view>

#include "result.hpp"

namespace agentrewind {

/** Records (entry.hpp) in the order of the names' bytes; an entry that vanishes meanwhile is left out. */
Result<std::string> readDirectory(int root, std::string_view path);

}  // namespace agentrewind
