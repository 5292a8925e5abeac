// Decides before each scan of a directory what it may leave out, by what was watched since the scan that it is compared with.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "scan.hpp"
#include "watch.hpp"

namespace agentrewind {

class ChangeLog {
 public:
  /** Before a scan of `root`. Null: everything must be looked at. */
  const Changes* begin(int root, bool hasPrevious);
  /** The scan that began last had to look at everything because the watcher may have missed something. */
  bool missed() const { return missed_; }
  /** The scan that began last has succeeded. */
  void end(ScanResult& result);
  /** What the last scan found is what the next one is compared with. */
  void keep() { covered_ = watch_ != nullptr; }
  void stop(std::string reason);
  /** Empty while it watches, or may begin to. */
  const std::string& reason() const { return reason_; }

 private:
  /** Beginning to watch is of use from the second scan on. */
  unsigned scans_ = 0;
  /** Since everything was looked at. */
  unsigned trusted_ = 0;
  std::unique_ptr<Watch> watch_;
  std::string reason_;
  Changes changes_;
  bool missed_ = false;
  /** Events that belong in `changes_` were lost. */
  bool lost_ = false;
  /** All changes since the kept scan are in `changes_` or still to be taken. */
  std::atomic<bool> covered_{false};
};

}  // namespace agentrewind
