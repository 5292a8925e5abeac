// The folder that a worker is in: opened once for the entries of it that follow each other.
#pragma once

#include <string>
#include <string_view>

#include "beneath.hpp"
#include "result.hpp"

namespace agentrewind {

/** Resolves as locate() does. A folder that is renamed while it is open is still the one that was opened. */
class Folder {
 public:
  explicit Folder(int root) : root_(root) {}

  /** The location is valid until the next call. */
  Result<Location> locate(std::string_view path);
  void forget();

 private:
  int root_;
  bool open_ = false;
  std::string path_;
  UniqueFd fd_;
};

/** Gives the owner of the folder above `path` all permissions in it; false where it has them or the system refuses. */
bool openFolderAbove(int root, std::string_view path);

}  // namespace agentrewind
