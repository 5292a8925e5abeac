#include "scan.hpp"

#include <algorithm>
#include <iterator>

#include "faults.hpp"
#include "file-system.hpp"
#include "mappings.hpp"
#include "scan-work.hpp"
#include "sequence.hpp"

namespace agentrewind {
namespace {

class TreeBuilder {
 public:
  TreeBuilder(ScanState& state, Sink& sink) : state_(state), sink_(sink) {}

  /** Null when the scan failed. */
  std::shared_ptr<const Directory> build(DirectoryWork& work) {
    for (DirectoryWork::Child& child : work.children) {
      if (!place(work, child)) return nullptr;
    }
    if (work.reuse && work.previous) return work.previous;
    auto built = std::make_shared<Directory>();
    built->entries = std::move(work.entries);
    std::vector<Node>& entries = built->entries;
    for (Node& node : work.late) entries.push_back(std::move(node));
    if (!work.late.empty()) {
      std::sort(entries.begin(), entries.end(), [](const Node& a, const Node& b) { return a.name < b.name; });
    }
    entries.erase(std::remove_if(entries.begin(), entries.end(), [](const Node& node) { return node.type == Type::gone; }),
                  entries.end());
    entries.shrink_to_fit();
    SequenceWriter sequence(sink_);
    for (const Node& node : entries) {
      encoded_.clear();
      encodeEntry(node, encoded_);
      if (!kept(sequence.add(encoded_, nameBoundary(node.name)))) return nullptr;
    }
    Result<Sha256> hash = sequence.finish();
    if (!hash) {
      state_.fail(ScanError::Where::store, hash.error(), "");
      return nullptr;
    }
    built->hash = hash.value();
    built->summarize();
    return built;
  }

 private:
  bool kept(const Status& status) {
    if (!status) state_.fail(ScanError::Where::store, status.error(), "");
    return static_cast<bool>(status);
  }

  /** Puts the tree of a sub-directory, or why there is none, into its entry. */
  bool place(DirectoryWork& work, DirectoryWork::Child& child) {
    DirectoryWork& below = *child.work;
    std::shared_ptr<const Directory> tree;
    if (below.failure == 0) {
      tree = build(below);
      if (!tree) return false;
      const bool same = !below.readXattrs && work.present()[child.index].children == tree;
      if (same) return true;
    }
    if (work.reuse) work.own(work.previous->entries.size());
    Node& node = work.entries[child.index];
    if (below.failure != 0) {
      std::string reason;
      isUnreadable(below.failure, reason);
      if (reason.empty()) {
        node.type = Type::gone;
      } else {
        state_.problem(below.path, reason);
        makeUnread(node, std::move(reason));
      }
    } else {
      node.extra = below.extra;
      node.content = tree->hash;
      node.hasContent = true;
      node.children = std::move(tree);
    }
    child.work.reset();
    return true;
  }

  ScanState& state_;
  Sink& sink_;
  std::string encoded_;
};

}  // namespace

std::shared_ptr<const Directory> buildTrees(ScanState& state, Sink& sink, DirectoryWork& top) {
  return TreeBuilder(state, sink).build(top);
}

bool scan(int root, const std::shared_ptr<const Node>& previous, const Changes* changes, const ScanOptions& options,
          ScanHost& host, const std::atomic<bool>& aborted, ScanResult& result, ScanError& error) {
  ScanState state(root, changes, options, host, aborted);
  const auto failed = [&] {
    error = state.error;
    return !state.failed;
  };
  // Before the walk: a store through a mapping made later moves the file's times.
  state.mapped = changes != nullptr ? changes->mapped : sharedWritableInodes();
  if (changes != nullptr && !changes->unstamped.empty()) {
    std::vector<uint64_t> all;
    std::set_union(state.mapped.begin(), state.mapped.end(), changes->unstamped.begin(), changes->unstamped.end(),
                   std::back_inserter(all));
    state.mapped = std::move(all);
  }

  Node top;
  top.type = Type::directory;
  Result<Stat> stat = statAt(root, "");
  if (!stat) {
    state.fail(ScanError::Where::workspace, stat.error(), "");
    return failed();
  }
  top.stat = stat.value();
  top.settled = hasOwnTime(top.stat, nowNs());
  state.rootStat = stat.value();
  state.timesTellNames = keepsDirectoryTimes(fileSystemOf(root));

  DirectoryWork work;
  if (previous) work.previous = previous->children;
  work.readXattrs = !(previous && previous->settled && previous->stat.unchanged(top.stat));
  work.namesKnown = state.timesTellNames && !work.readXattrs;
  if (!work.readXattrs) work.extra = previous->extra;
  if (work.previous) state.findNoise(*work.previous);
  walk(state, work);
  fault(FaultPoint::scanWalked);
  if (!state.stopped()) resolveLinks(state, work, result.groups);
  if (!state.stopped()) readContents(state, work);
  if (state.stopped()) return failed();

  Sink sink(host);
  top.children = buildTrees(state, sink, work);
  if (!top.children) return failed();
  top.extra = work.extra;
  top.content = top.children->hash;
  top.hasContent = true;
  std::string snapshot{'\3', static_cast<char>(options.fidelity)};
  encodeEntry(top, snapshot);
  Result<Sha256> name = sink.put(snapshot);
  Status flushed = name ? sink.flush() : Status(name.error());
  if (!flushed) {
    state.fail(ScanError::Where::store, flushed.error(), "");
    return failed();
  }
  result.snapshot = name.value();
  result.root = std::make_shared<Node>(std::move(top));
  result.problems = std::move(state.problems);
  result.entries = state.entries;
  result.bytes = state.bytes;
  result.unseen = std::move(state.unseen);
  return true;
}

}  // namespace agentrewind
