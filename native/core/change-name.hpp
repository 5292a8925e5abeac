// Makes, removes and renames directory entries. The last component of a path is never followed.
#pragma once

#include <sys/types.h>

#include <string_view>

#include "result.hpp"

namespace agentrewind {

/** The mode is exact, whatever the umask. If setting it fails, the new entry stays. */
Status makeDirectory(int root, std::string_view path, mode_t mode);

/** A FIFO, socket, character or block device, as the type bits of `mode` say. The mode is exact as above. */
Status makeNode(int root, std::string_view path, mode_t mode, unsigned major, unsigned minor);

Status makeSymlink(int root, std::string_view target, std::string_view path);

/** A second name for `from`; if that is a symbolic link, for the link itself. */
Status makeLink(int root, std::string_view from, std::string_view to);

Status unlink(int root, std::string_view path);

Status removeDirectory(int root, std::string_view path);

/** `flags` as in renameat2(2): 0, RENAME_NOREPLACE or RENAME_EXCHANGE. */
Status rename(int root, std::string_view from, std::string_view to, unsigned flags);

}  // namespace agentrewind
