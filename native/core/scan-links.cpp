// Hard links: the first name of an inode in the order of the walk is an entry of its own kind, the others name it (F-10).
#include <map>
#include <tuple>

#include "scan-work.hpp"

namespace agentrewind {
namespace {

using Inode = std::tuple<uint32_t, uint32_t, uint64_t>;

class Links {
 public:
  Links(ScanState& state, std::vector<std::vector<std::string>>& groups) : state_(state), groups_(groups) {}

  /** Depth first, names sorted: a directory's entries come where its own name stands. */
  void visit(DirectoryWork& work) {
    size_t child = 0;
    for (const DirectoryWork::Linked& linked : work.linked) {
      for (; child < work.children.size() && work.children[child].index < linked.index; child++) {
        visit(*work.children[child].work);
      }
      settle(work, linked);
    }
    for (; child < work.children.size(); child++) visit(*work.children[child].work);
  }

 private:
  void settle(DirectoryWork& work, const DirectoryWork::Linked& linked) {
    const Node& present = work.present()[linked.index];
    std::string path = work.pathOf(present.name);
    const Inode inode{linked.stat.devMajor, linked.stat.devMinor, linked.stat.ino};
    const auto [found, isFirst] = first_.try_emplace(inode, First{path, 0});
    First& first = found->second;
    if (isFirst) {
      const Type type = typeOf(linked.stat.mode);
      if (type == Type::file) state_.bytes += linked.stat.size;
      if (!linked.fresh && present.type == type) return;
      Node& node = own(work, linked.index);
      node.stat = linked.stat;
      node.type = type;
      work.reads.push_back(linked.index);
      return;
    }
    if (first.group == 0) {
      groups_.push_back({first.path});
      first.group = groups_.size();
    }
    groups_[first.group - 1].push_back(path);
    if (!linked.fresh && present.type == Type::hardLink && present.tail() == first.path) return;
    Node& node = own(work, linked.index);
    auto extra = std::make_shared<Extra>();
    extra->tail = first.path;
    node.extra = std::move(extra);
    node.stat = linked.stat;
    node.type = Type::hardLink;
    node.flags = 0;
    node.hasContent = false;
  }

  static Node& own(DirectoryWork& work, size_t index) {
    if (work.reuse) work.own(work.previous->entries.size());
    return work.entries[index];
  }

  struct First {
    std::string path;
    /** Number of the group from 1; 0 while it has one member. */
    size_t group;
  };

  ScanState& state_;
  std::vector<std::vector<std::string>>& groups_;
  std::map<Inode, First> first_;
};

}  // namespace

void resolveLinks(ScanState& state, DirectoryWork& top, std::vector<std::vector<std::string>>& groups) {
  Links(state, groups).visit(top);
}

}  // namespace agentrewind
