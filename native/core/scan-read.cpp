// Reads what the walk found changed, from several threads.
#include <fcntl.h>

#include <algorithm>

#include "beneath.hpp"
#include "scan-content.hpp"
#include "scan-work.hpp"
#include "workers.hpp"

namespace agentrewind {
namespace {

constexpr int attempts = 3;
constexpr size_t readsPerJob = 64;

/** Some reads of one directory. */
struct Job {
  DirectoryWork* work;
  size_t from;
  size_t to;
};

void collect(DirectoryWork& work, std::vector<Job>& jobs) {
  std::sort(work.reads.begin(), work.reads.end());
  for (size_t from = 0; from < work.reads.size(); from += readsPerJob) {
    jobs.push_back({&work, from, std::min(from + readsPerJob, work.reads.size())});
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
      node.settled = node.stat.ctimeNs < now - clockTickNs && !state_.isMapped(node.stat);
    }
    state_.read++;
    if (node.type == Type::file && node.stat.nlink <= 1) state_.bytes += node.stat.size;
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
