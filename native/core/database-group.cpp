#include "database-group.hpp"

#include <sys/statfs.h>
#include <sys/utsname.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "freezer.hpp"
#include "scan-content.hpp"

namespace agentrewind {
namespace {

constexpr size_t members = groupSuffixes.size();
constexpr int attempts = 6;
/** No further attempt is made when so much was read in vain. */
constexpr uint64_t readLimit = 256 << 20;

using Looks = std::array<std::optional<Stat>, members>;

/** Linux 6.13 on these file systems: a change that follows a look gets a time of its own, however soon. */
bool hasFineTimes(int directory) {
  utsname kernel;
  int major = 0;
  int minor = 0;
  if (uname(&kernel) < 0 || sscanf(kernel.release, "%d.%d", &major, &minor) != 2) return false;
  struct statfs found;
  if (major < 6 || (major == 6 && minor < 13) || fstatfs(directory, &found) < 0) return false;
  constexpr long ext4 = 0xef53;
  constexpr long btrfs = 0x9123683e;
  constexpr long xfs = 0x58465342;
  constexpr long tmpfs = 0x01021994;
  const long type = static_cast<long>(found.f_type);
  return type == ext4 || type == btrfs || type == xfs || type == tmpfs;
}

Node* findEntry(DirectoryWork& work, std::string_view name) {
  const auto found = std::lower_bound(work.entries.begin(), work.entries.end(), name,
                                      [](const Node& node, std::string_view wanted) { return node.name < wanted; });
  return found != work.entries.end() && found->name == name ? &*found : nullptr;
}

class GroupReader {
 public:
  GroupReader(ScanState& state, DirectoryWork& work, int directory, const std::string& base, Sink& sink)
      : state_(state), work_(work), directory_(directory), sink_(sink) {
    for (size_t i = 0; i < members; i++) {
      names_[i] = base + groupSuffixes[i];
      node_[i] = findEntry(work, names_[i]);
      if (node_[i] == nullptr) {
        late_[i] = std::make_unique<Node>();
        late_[i]->name = names_[i];
        node_[i] = late_[i].get();
      }
      before_[i] = *node_[i];
      skipped_[i] = late_[i] == nullptr && (node_[i]->type != Type::file || node_[i]->stat.nlink > 1);
    }
  }

  GroupOutcome read() {
    const bool fine = hasFineTimes(directory_);
    bool whole = false;
    for (int attempt = 1; attempt <= attempts && !whole && bytes_ < readLimit; attempt++) {
      if (attempt > 1) pause(attempt);
      if (!once(fine, whole)) return GroupOutcome::failed;
    }
    if (!whole) {
      std::vector<Stat> files;
      for (size_t i = 0; i < members; i++) {
        if (!skipped_[i] && node_[i]->type == Type::file) files.push_back(node_[i]->stat);
      }
      const std::unique_ptr<Freezer> still = Freezer::hold(files);
      // What is held still cannot have changed behind equal times.
      if (still && !once(true, whole)) return GroupOutcome::failed;
    }
    for (size_t i = 0; i < members; i++) {
      if (!whole && !skipped_[i] && node_[i]->type == Type::file) {
        node_[i]->flags |= flagTorn;
        node_[i]->settled = false;
      }
      if (skipped_[i] || node_[i]->type == Type::gone) continue;
      if (node_[i]->type == Type::unread) state_.problem(work_.pathOf(names_[i]), std::string(node_[i]->tail()));
      // The walk has counted what it kept.
      if (node_[i]->type == Type::file && !before_[i].hasContent) state_.bytes += node_[i]->stat.size;
      if (late_[i]) state_.addLate(work_, std::move(*late_[i]));
    }
    return whole ? GroupOutcome::whole : GroupOutcome::torn;
  }

 private:
  static void pause(int attempt) {
    const timespec time{0, attempt * 2000000L};
    nanosleep(&time, nullptr);
  }

  Looks look() const {
    Looks looks;
    for (size_t i = 0; i < members; i++) {
      if (skipped_[i]) continue;
      Result<Stat> stat = statAt(directory_, names_[i].c_str());
      if (stat) looks[i] = stat.value();
    }
    return looks;
  }

  /** One round; false when the store failed. */
  bool once(bool fine, bool& whole) {
    const int64_t start = nowNs();
    const Looks first = look();
    whole = true;
    for (size_t i = 0; i < members; i++) {
      if (skipped_[i]) continue;
      Node& node = *node_[i];
      if (!first[i] || typeOf(first[i]->mode) != Type::file) {
        node.type = Type::gone;
        continue;
      }
      if (before_[i].hasContent && before_[i].settled && before_[i].stat.unchanged(*first[i])) {
        node = before_[i];
        continue;
      }
      node.stat = *first[i];
      node.type = Type::file;
      node.settled = hasOwnTime(node.stat, start) && !state_.isMapped(node.stat);
      const Reading reading = readEntry(directory_, node, sink_);
      if (reading.store.code != 0) {
        state_.fail(ScanError::Where::store, reading.store, "");
        return false;
      }
      if (reading.failure != 0) lose(node, reading.failure);
      else bytes_ += node.stat.size;
      if (reading.changed || (reading.failure != 0 && node.type == Type::gone)) whole = false;
      if (!fine && !hasOwnTime(*first[i], start)) whole = false;
    }
    const Looks second = look();
    for (size_t i = 0; i < members; i++) {
      if (first[i].has_value() != second[i].has_value() || (first[i] && !first[i]->unchanged(*second[i]))) whole = false;
    }
    return true;
  }

  void lose(Node& node, int code) {
    std::string reason;
    if (!isUnreadable(code, reason)) reason = "cannot be read";
    if (reason.empty()) node.type = Type::gone;
    else makeUnread(node, std::move(reason));
  }

  ScanState& state_;
  DirectoryWork& work_;
  const int directory_;
  Sink& sink_;
  std::array<std::string, members> names_;
  /** In the directory's entries, or below `late_` for what the walk did not see. */
  std::array<Node*, members> node_{};
  std::array<std::unique_ptr<Node>, members> late_;
  std::array<Node, members> before_;
  /** No file with one name: read by itself. */
  std::array<bool, members> skipped_{};
  uint64_t bytes_ = 0;
};

}  // namespace

std::string_view groupOf(std::string_view name) {
  for (size_t i = 1; i < members; i++) {
    const std::string_view suffix = groupSuffixes[i];
    if (name.size() > suffix.size() && name.substr(name.size() - suffix.size()) == suffix) {
      return name.substr(0, name.size() - suffix.size());
    }
  }
  return name;
}

bool isGroup(const DirectoryWork& work, std::string_view base) {
  int found = 0;
  for (const char* suffix : groupSuffixes) {
    const std::string name = std::string(base) + suffix;
    const auto at = std::lower_bound(work.entries.begin(), work.entries.end(), name,
                                     [](const Node& node, const std::string& wanted) { return node.name < wanted; });
    if (at != work.entries.end() && at->name == name && at->type == Type::file) found++;
  }
  return found > 1;
}

GroupOutcome readGroup(ScanState& state, DirectoryWork& work, int directory, const std::string& base, Sink& sink) {
  return GroupReader(state, work, directory, base, sink).read();
}

}  // namespace agentrewind
