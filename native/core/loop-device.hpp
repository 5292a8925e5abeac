// Loop devices: a file as a disk.
#pragma once

#include <string>

#include "result.hpp"

namespace agentrewind {

/** The path of the device that has this very file, also under another name; empty when there is none. */
Result<std::string> findLoopDevice(int file);

/** A new device over the file; it goes when nothing uses it any more, so `keep` must stay open until it is mounted. */
struct LoopDevice {
  std::string path;
  int keep;
};
Result<LoopDevice> attachLoopDevice(int file, bool direct);

}  // namespace agentrewind
