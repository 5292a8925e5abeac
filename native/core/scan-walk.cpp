// The walk: getdents64 and statx below directory descriptors, directories shared out to threads as they are found.
#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>

#include "beneath.hpp"
#include "scan-work.hpp"
#include "workers.hpp"

namespace agentrewind {
namespace {

struct Dirent64 {
  uint64_t ino;
  int64_t offset;
  uint16_t length;
  uint8_t type;
  char name[1];
};
constexpr size_t direntNameOffset = offsetof(Dirent64, name);

/** Names of one directory, end to end and each with its zero byte. */
class Names {
 public:
  Status read(int fd) {
    bytes_.clear();
    spans_.clear();
    while (true) {
      const long size = syscall(SYS_getdents64, fd, buffer_, sizeof(buffer_));
      if (size < 0) return lastError("getdents64");
      if (size == 0) break;
      for (long at = 0; at < size;) {
        const Dirent64* entry = reinterpret_cast<const Dirent64*>(buffer_ + at);
        const char* name = buffer_ + at + direntNameOffset;
        const size_t length = std::strlen(name);
        at += entry->length;
        if (length <= 2 && name[0] == '.' && (length == 1 || name[1] == '.')) continue;
        spans_.push_back({bytes_.size(), length});
        bytes_.append(name, length + 1);
      }
    }
    sorted_.clear();
    for (const auto& [start, length] : spans_) sorted_.emplace_back(bytes_.data() + start, length);
    std::sort(sorted_.begin(), sorted_.end());
    return Done{};
  }

  void take(const Directory& directory) {
    sorted_.clear();
    for (const Node& node : directory.entries) sorted_.emplace_back(node.name);
  }

  std::vector<std::string_view>& sorted() { return sorted_; }

 private:
  alignas(8) char buffer_[64 << 10];
  std::string bytes_;
  std::vector<std::pair<size_t, size_t>> spans_;
  std::vector<std::string_view> sorted_;
};

/** Directories that wait for a thread, the last found first: that keeps few of them open in memory. */
class Queue {
 public:
  void push(std::vector<DirectoryWork*> found) {
    const std::lock_guard<std::mutex> lock(mutex_);
    pending_ += found.size();
    waiting_.insert(waiting_.end(), found.rbegin(), found.rend());
    if (found.size() > 1) changed_.notify_all();
    else changed_.notify_one();
  }

  /** Null when all is done. */
  DirectoryWork* pop() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return !waiting_.empty() || pending_ == 0; });
    if (waiting_.empty()) return nullptr;
    DirectoryWork* next = waiting_.back();
    waiting_.pop_back();
    return next;
  }

  void done() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (--pending_ == 0) changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<DirectoryWork*> waiting_;
  size_t pending_ = 0;
};

/** For its names, or only for what they lead to. */
Result<UniqueFd> openDirectory(ScanState& state, const DirectoryWork& work) {
  if (work.namesKnown) return openBeneath(state.root, work.path, O_PATH | O_DIRECTORY, 0);
  Result<UniqueFd> opened = openBeneath(state.root, work.path, O_RDONLY | O_DIRECTORY | O_NOATIME, 0);
  // Only the owner may ask to leave the time of access alone.
  if (opened || opened.error().code != EPERM) return opened;
  return openBeneath(state.root, work.path, O_RDONLY | O_DIRECTORY, 0);
}

class Walker {
 public:
  Walker(ScanState& state, Queue& queue) : state_(state), queue_(queue) {}

  void list(DirectoryWork& work) {
    directory_ = UniqueFd();
    if (work.namesKnown) names_.take(*work.previous);
    else if (!readNames(work)) return;

    const int64_t now = nowNs();
    position_ = 0;
    for (size_t i = 0; i < names_.sorted().size(); i++) {
      const std::string_view name = names_.sorted()[i];
      if (work.namesKnown && !state_.looksAt(work.previous->entries[i])) {
        add(work, name, work.previous->entries[i].stat, now);
        continue;
      }
      if (!open(work)) return;
      Result<Stat> stat = statAt(directory_.get(), name.data());
      if (!stat) {
        if (stat.error().code == ENOENT) continue;
        return static_cast<void>(fail(work, stat.error()));
      }
      add(work, name, stat.value(), now);
    }
    const size_t before = work.previous ? work.previous->entries.size() : 0;
    if (work.reuse && position_ < before) work.own(position_);
    state_.entries += work.present().size();
    std::vector<DirectoryWork*> found;
    for (DirectoryWork::Child& child : work.children) found.push_back(child.work.get());
    if (!found.empty()) queue_.push(std::move(found));
  }

 private:
  bool open(DirectoryWork& work) {
    if (directory_.get() >= 0) return true;
    Result<UniqueFd> opened = openDirectory(state_, work);
    if (opened) directory_ = std::move(opened.value());
    else fail(work, opened.error());
    return directory_.get() >= 0;
  }

  bool readNames(DirectoryWork& work) {
    if (!open(work)) return false;
    Status listed = names_.read(directory_.get());
    if (!listed) return fail(work, listed.error());
    if (work.readXattrs) {
      Result<std::shared_ptr<const Extra>> extra = readXattrs(directory_.get());
      if (!extra) return fail(work, extra.error());
      work.extra = std::move(extra.value());
    }
    if (work.path.empty()) forget(state_.options.stage);
    return !state_.options.asksExcluded || dropExcluded(work);
  }

  /** Always false. */
  bool fail(DirectoryWork& work, Errno error) {
    std::string reason;
    work.children.clear();
    work.linked.clear();
    work.reads.clear();
    if (!work.path.empty() && isUnreadable(error.code, reason)) work.failure = error.code;
    else state_.fail(ScanError::Where::workspace, error, work.path);
    return false;
  }

  void forget(const std::string& name) {
    std::vector<std::string_view>& names = names_.sorted();
    names.erase(std::remove(names.begin(), names.end(), name), names.end());
  }

  bool dropExcluded(DirectoryWork& work) {
    std::vector<std::string_view>& names = names_.sorted();
    std::vector<std::string_view> unknown;
    for (const std::string_view name : names) {
      if (!work.previous || work.previous->find(name) == nullptr) unknown.push_back(name);
    }
    if (unknown.empty()) return true;
    Result<std::vector<bool>> answer = state_.host.excluded(work.path, unknown);
    if (!answer) {
      state_.fail(ScanError::Where::store, answer.error(), work.path);
      return false;
    }
    size_t next = 0;
    const auto leaves = [&](std::string_view name) {
      if (next == unknown.size() || unknown[next] != name) return false;
      return static_cast<bool>(answer.value()[next++]);
    };
    names.erase(std::remove_if(names.begin(), names.end(), leaves), names.end());
    return true;
  }

  const Node* known(DirectoryWork& work, std::string_view name, size_t& at) {
    if (!work.previous) return nullptr;
    const std::vector<Node>& entries = work.previous->entries;
    // Nearly always the entry behind the last one.
    at = position_;
    if (at < entries.size() && entries[at].name == name) return &entries[at];
    const Node* found = work.previous->find(name);
    if (found != nullptr) at = static_cast<size_t>(found - entries.data());
    return found;
  }

  void add(DirectoryWork& work, std::string_view name, const Stat& stat, int64_t now) {
    size_t at = 0;
    const Node* before = known(work, name, at);
    const bool mapped = state_.isMapped(stat);
    const Type type = typeOf(stat.mode);
    const bool same = before != nullptr && before->settled && !mapped && before->stat.unchanged(stat);
    if (before != nullptr && !same) state_.changed(*before, stat);
    if (work.reuse && !(before != nullptr && at == position_)) work.own(position_);
    position_ = work.reuse ? position_ : work.entries.size();
    const size_t index = position_++;

    const auto renew = [&] {
      if (work.reuse) work.own(index);
      Node node;
      node.name.assign(name);
      node.stat = stat;
      node.type = type;
      node.settled = hasOwnTime(stat, now) && !mapped;
      work.entries.push_back(std::move(node));
    };
    const auto keep = [&] {
      if (!work.reuse) work.entries.push_back(*before);
    };

    if (state_.isMount(stat)) {
      renew();
      std::string reason = "is a mount point; what is mounted there is left alone";
      state_.problem(work.pathOf(name), reason);
      // What is mounted is not this tree's, and neither is when it changed.
      work.entries.back().stat = Stat{};
      makeUnread(work.entries.back(), std::move(reason));
      return;
    }
    if (type == Type::directory && same && before->type == type && state_.isQuiet(*before->children)) {
      state_.entries += before->children->totalEntries;
      state_.bytes += before->children->totalBytes;
      keep();
    } else if (type == Type::directory) {
      auto child = std::make_unique<DirectoryWork>();
      child->path = work.pathOf(name);
      if (before != nullptr && before->type == Type::directory) child->previous = before->children;
      if (same && before->type == Type::directory) {
        child->extra = before->extra;
        child->namesKnown = state_.timesTellNames;
        keep();
      } else {
        child->readXattrs = true;
        renew();
      }
      work.children.push_back({index, std::move(child)});
    } else if (stat.nlink > 1 && type != Type::socket) {
      const bool fresh = !same || (before->type != type && before->type != Type::hardLink);
      if (fresh) renew();
      else keep();
      work.linked.push_back({index, stat, fresh});
    } else if (same && before->type == type) {
      if (type == Type::file) state_.bytes += stat.size;
      keep();
    } else {
      renew();
      work.reads.push_back(index);
    }
    remark(work, name, type);
  }

  /** What no snapshot holds is said each time. */
  void remark(DirectoryWork& work, std::string_view name, Type type) {
    constexpr uint8_t devices = 4;
    if (type == Type::socket) {
      state_.problem(work.pathOf(name), "is a socket; sockets are left alone");
    } else if ((type == Type::characterDevice || type == Type::blockDevice) && (state_.options.fidelity & devices) == 0) {
      state_.problem(work.pathOf(name), "is a device node, which only root can restore");
    }
  }

  ScanState& state_;
  Queue& queue_;
  Names names_;
  /** Open when it is needed. */
  UniqueFd directory_;
  size_t position_ = 0;
};

}  // namespace

void walk(ScanState& state, DirectoryWork& top) {
  Queue queue;
  queue.push({&top});
  const unsigned workers = state.walkers();
  parallelFor(workers, workers, [&](size_t, unsigned) {
    const auto walker = std::make_unique<Walker>(state, queue);
    while (DirectoryWork* work = queue.pop()) {
      if (!state.stopped()) walker->list(*work);
      queue.done();
    }
  });
}

}  // namespace agentrewind
