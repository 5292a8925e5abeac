// Whether two files that stand still hold the same bytes.
#pragma once

#include "result.hpp"

namespace agentrewind {

/** Files of the same size, by their name in two folders. Where the file system tells that they share their blocks, nothing is read. */
Result<bool> sameFileContent(int fromFolder, int toFolder, const char* name);

Result<bool> sameLinkText(int fromFolder, int toFolder, const char* name);

}  // namespace agentrewind
