#include "change-log.hpp"

#include <algorithm>

namespace agentrewind {
namespace {

/** Every so many scans look at everything and judge what the watcher told. */
constexpr unsigned judgeEvery = 32;

}  // namespace

const Changes* ChangeLog::begin(int root, bool hasPrevious) {
  missed_ = false;
  // Another file system may lie at the root by now, mounted there or moved.
  Result<Stat> stat = statAt(root, "");
  if (watch_ && !(stat && watch_->covers(stat.value()))) {
    watch_ = nullptr;
    covered_ = false;
  }
  if (!watch_ && reason_.empty() && ++scans_ > 1) watch_ = Watch::open(root, reason_);
  const bool covered = covered_.exchange(false);
  if (!watch_) return nullptr;
  if (!covered) changes_ = Changes();
  else watch_->look(changes_);
  const bool complete = watch_->take(changes_) && !lost_;
  lost_ = false;
  missed_ = covered && !complete;
  if (!covered || !complete || !hasPrevious) {
    changes_ = Changes();
    trusted_ = 0;
    return nullptr;
  }
  changes_.judge = ++trusted_ >= judgeEvery;
  if (changes_.judge) trusted_ = 0;
  return &changes_;
}

void ChangeLog::end(ScanResult& result) {
  const bool judged = changes_.judge;
  changes_ = Changes();
  if (!watch_ || !judged) return;
  // What changed during the scan is told by now; where that is not all, nothing can be said.
  watch_->look(changes_);
  lost_ = !watch_->take(changes_);
  if (lost_) return;
  const auto told = [&](uint64_t inode) {
    return std::binary_search(changes_.inodes.begin(), changes_.inodes.end(), inode);
  };
  if (!std::all_of(result.unseen.begin(), result.unseen.end(), told)) stop("it missed a change");
}

void ChangeLog::stop(std::string reason) {
  watch_ = nullptr;
  covered_ = false;
  reason_ = std::move(reason);
}

}  // namespace agentrewind
