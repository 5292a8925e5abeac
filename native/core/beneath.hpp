// Resolves paths so that nothing outside the root directory can be reached, whatever the tree does meanwhile.
//
// A path is raw bytes: components separated by single slashes, none of them "." or "..", no slash at either end.
// The empty path is the root itself. Its length is not bound by PATH_MAX.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <utility>

#include "result.hpp"
#include "unique-fd.hpp"

namespace agentrewind {

/** The directory that holds an entry and the entry's name in it; for the root itself the name is ".". */
class Location {
 public:
  /** `owned` is empty where the parent is the root, which the caller owns. */
  Location(UniqueFd owned, int root, std::string_view name)
      : owned_(std::move(owned)), parent_(owned_.get() >= 0 ? owned_.get() : root), name_(name) {}

  int parent() const { return parent_; }
  const char* name() const { return name_.c_str(); }

 private:
  UniqueFd owned_;
  int parent_;
  std::string name_;
};

/** Opens the parent of `path`; refuses symbolic links on the way. The last component is not looked at. */
Result<Location> locate(int root, std::string_view path);

/** Opens `path` itself. Never follows a symbolic link, never gains a controlling terminal, closes on exec. */
Result<UniqueFd> openBeneath(int root, std::string_view path, int flags, mode_t mode);

/**
 * Opens `path` as a process would whose root is `root`: links are followed, and none leads out. At most PATH_MAX bytes. ENOSYS before Linux 5.6.
 */
Result<UniqueFd> openInside(int root, std::string_view path, int flags, mode_t mode);

}  // namespace agentrewind
