// Reads what the walk found changed, from several threads.
#include <fcntl.h>

#include <algorithm>

#include "beneath.hpp"
#include "database-group.hpp"
#include "scan-content.hpp"
#include "scan-work.hpp"
#include "workers.hpp"

namespace agentrewind {
namespace {

constexpr int attempts = 3;
constexpr size_t readsPerJob = 64;

/** Some reads of one directory, or its databases. */
struct Job {
  DirectoryWork* work;
  size_t from;
  size_t to;
  bool groups;
};

/** Takes what belongs to a database with companions out of the single reads. */
void separateGroups(DirectoryWork& work) {
  std::vector<size_t> single;
  for (const size_t index : work.reads) {
    const Node& node = work.entries[index];
    const std::string_view base = groupOf(node.name);
    if (node.type != Type::file || node.stat.nlink > 1 || !isGroup(work, base)) single.push_back(index);
    else if (std::find(work.groups.begin(), work.groups.end(), base) == work.groups.end()) work.groups.emplace_back(base);
  }
  work.reads = std::move(single);
}

void collect(DirectoryWork& work, std::vector<Job>& jobs) {
  std::sort(work.reads.begin(), work.reads.end());
  separateGroups(work);
  if (!work.groups.empty()) jobs.push_back({&work, 0, work.groups.size(), true});
  for (size_t from = 0; from < work.reads.size(); from += readsPerJob) {
    jobs.push_back({&work, from, std::min(from + readsPerJob, work.reads.size()), false});
  }
  for (DirectoryWork::Child& child : work.children) collect(*child.work, jobs);
}

class Reader {
 public:
  Reader(ScanState& state, Sink& sink) : state_(state), sink_(sink) {}

  void read(const Job& job) {
    DirectoryWork& work = *job.work;
    Result<UniqueFd> opened = openBeneath(state_.root, work.path, O_PATH | O_DIRECTORY, 0);
    for (size_t i = job.from; i < job.to && !state_.stopped(); i++) {
      if (job.groups) {
        if (opened) readDatabase(work, opened.value().get(), work.groups[i]);
        else loseDatabase(work, work.groups[i], opened.error().code);
        continue;
      }
      Node& node = work.entries[work.reads[i]];
      if (!opened) lose(work, node, opened.error().code);
      else readOne(work, opened.value().get(), node);
    }
  }

 private:
  void readOne(DirectoryWork& work, int directory, Node& node) {
    for (int attempt = 1;; attempt++) {
      const Reading reading = readEntry(directory, node, sink_);
      if (reading.store.code != 0) return state_.fail(ScanError::Where::store, reading.store, "");
      if (reading.failure != 0 && !reading.changed) return lose(work, node, reading.failure);
      if (!reading.changed && reading.database && hasCompanion(directory, node.name)) {
        return readDatabase(work, directory, node.name);
      }
      if (!reading.changed) break;
      if (attempt == attempts && node.type == Type::file) {
        node.flags |= flagTorn;
        node.settled = false;
        state_.problem(work.pathOf(node.name), "changed while it was read; stored as last read");
        break;
      }
      const int64_t now = nowNs();
      Result<Stat> again = statAt(directory, node.name.c_str());
      if (!again) return lose(work, node, again.error().code);
      if (attempt == attempts || typeOf(again.value().mode) == Type::directory) {
        return explain(work, node, "changed while it was read");
      }
      node.stat = again.value();
      node.type = typeOf(node.stat.mode);
      node.settled = hasOwnTime(node.stat, now) && !state_.isMapped(node.stat);
    }
    if (node.type == Type::file && node.stat.nlink <= 1) state_.bytes += node.stat.size;
  }

  /** Companions that the listing did not show, of a database that was read alone. */
  static bool hasCompanion(int directory, const std::string& name) {
    for (size_t i = 1; i < groupSuffixes.size(); i++) {
      if (statAt(directory, (name + groupSuffixes[i]).c_str())) return true;
    }
    return false;
  }

  void readDatabase(DirectoryWork& work, int directory, const std::string& base) {
    const GroupOutcome outcome = readGroup(state_, work, directory, base, sink_);
    if (outcome == GroupOutcome::torn) {
      state_.problem(work.pathOf(base), "changed together with its log or journal while it was read; stored as last read");
    }
  }

  void loseDatabase(DirectoryWork& work, const std::string& base, int code) {
    for (Node& node : work.entries) {
      if (groupOf(node.name) == base && node.type == Type::file && !node.hasContent) lose(work, node, code);
    }
  }

  void lose(DirectoryWork& work, Node& node, int code) {
    std::string reason;
    if (!isUnreadable(code, reason)) {
      state_.fail(ScanError::Where::workspace, {code, "read"}, work.pathOf(node.name));
    } else if (reason.empty()) {
      node.type = Type::gone;
    } else {
      explain(work, node, std::move(reason));
    }
  }

  void explain(DirectoryWork& work, Node& node, std::string reason) {
    state_.problem(work.pathOf(node.name), reason);
    makeUnread(node, std::move(reason));
  }

  ScanState& state_;
  Sink& sink_;
};

}  // namespace

void readContents(ScanState& state, DirectoryWork& top) {
  std::vector<Job> jobs;
  collect(top, jobs);
  const unsigned workers = workerCount();
  std::vector<std::unique_ptr<Sink>> sinks;
  for (unsigned worker = 0; worker < workers; worker++) sinks.push_back(std::make_unique<Sink>(state.host));
  parallelFor(jobs.size(), workers, [&](size_t index, unsigned worker) {
    if (!state.stopped()) Reader(state, *sinks[worker]).read(jobs[index]);
  });
  for (const std::unique_ptr<Sink>& sink : sinks) {
    if (state.stopped()) return;
    Status flushed = sink->flush();
    if (!flushed) state.fail(ScanError::Where::store, flushed.error(), "");
  }
}

}  // namespace agentrewind
