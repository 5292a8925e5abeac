// Extended attributes of any entry, without opening or following it.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "result.hpp"

namespace agentrewind {

using Xattrs = std::vector<std::pair<std::string, std::string>>;

/** All that the caller may see, in the order of the names' bytes; none where the file system has none. */
Result<Xattrs> getXattrs(int root, std::string_view path);
/** Of an open file or directory. */
Result<Xattrs> getXattrs(int fd);

Status setXattr(int root, std::string_view path, std::string_view name, std::string_view value);

Status removeXattr(int root, std::string_view path, std::string_view name);

}  // namespace agentrewind
