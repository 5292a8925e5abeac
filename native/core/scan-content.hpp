// One file's bytes as objects (F-9).
#pragma once

#include "sequence.hpp"
#include "sink.hpp"
#include "tree.hpp"

namespace agentrewind {

/** What reading an entry came to. */
struct Reading {
  /** 0, or what the file system said. */
  int failure = 0;
  /** What the store said, if that failed. */
  Errno store{0, ""};
  /** The file begins as an SQLite database does. */
  bool database = false;
  /** The entry changed between `node.stat` and the end of the reading. */
  bool changed = false;
};

/**
 * Reads the file, link or node `node.name` below the open directory into the sink and fills in content, flags, attributes and size of the node, whose `stat` was taken before.
 * With `changed` the node's stat is the newer one, and what was read may be a mix.
 */
Reading readEntry(int directory, Node& node, Sink& sink);

}  // namespace agentrewind
