#include "scan-work.hpp"

#include <algorithm>
#include <endian.h>

#include <cerrno>
#include <cstring>

#include "workers.hpp"
#include "xattr.hpp"

namespace agentrewind {

void DirectoryWork::own(size_t count) {
  reuse = false;
  if (previous) entries.assign(previous->entries.begin(), previous->entries.begin() + static_cast<ptrdiff_t>(count));
}

std::string DirectoryWork::pathOf(std::string_view name) const {
  std::string joined;
  joined.reserve(path.size() + 1 + name.size());
  if (!path.empty()) joined.append(path).push_back('/');
  return joined.append(name);
}

bool ScanState::isMapped(const Stat& stat) const {
  return !mapped.empty() && std::binary_search(mapped.begin(), mapped.end(), stat.ino);
}

bool ScanState::isNamed(uint64_t inode) const {
  return std::binary_search(changes_->inodes.begin(), changes_->inodes.end(), inode);
}

bool ScanState::looksAt(const Node& before) const {
  // What could not be read is tried again each time; what is not settled was mapped, or read in the tick of its change.
  if (!trusts() || !before.settled || before.type == Type::unread) return true;
  return isNamed(before.stat.ino) || isMapped(before.stat);
}

bool ScanState::hasNoise(const Directory& directory) {
  bool noisy = false;
  for (const Node& node : directory.entries) {
    if (isNamed(node.stat.ino) || isMapped(node.stat)) noisy = true;
    if (node.children && hasNoise(*node.children)) noisy = true;
  }
  if (noisy) noisy_.insert(&directory);
  return noisy;
}

void ScanState::findNoise(const Directory& previous) {
  if (trusts() && !(changes_->inodes.empty() && mapped.empty())) hasNoise(previous);
}

bool ScanState::isQuiet(const Directory& previous) const {
  return trusts() && !previous.restless && noisy_.count(&previous) == 0;
}

unsigned ScanState::walkers() const {
  constexpr size_t few = 64;
  return trusts() && changes_->inodes.size() < few ? 1 : workerCount();
}

void ScanState::changed(const Node& before, const Stat& now) {
  if (changes_ == nullptr || !changes_->judge || !before.settled || isMapped(now)) return;
  if (isNamed(before.stat.ino) || isNamed(now.ino)) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  unseen.push_back(now.ino);
}

void ScanState::problem(std::string path, std::string reason) {
  const std::lock_guard<std::mutex> lock(mutex_);
  problems.push_back({std::move(path), std::move(reason)});
}

void ScanState::addLate(DirectoryWork& work, Node node) {
  const std::lock_guard<std::mutex> lock(mutex_);
  work.late.push_back(std::move(node));
}

void ScanState::fail(ScanError::Where where, Errno cause, std::string path) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!failed) error = {where, cause, std::move(path)};
  failed = true;
  stop_ = true;
}

bool ScanState::stopped() {
  if (aborted_ && !stop_) fail(ScanError::Where::aborted, {ECANCELED, "scan"}, "");
  return stop_;
}

bool isUnreadable(int code, std::string& reason) {
  const char* name = nullptr;
  switch (code) {
    case ENOENT:
    case ENOTDIR: break;
    case EACCES: name = "EACCES"; break;
    case EPERM: name = "EPERM"; break;
    case EIO: name = "EIO"; break;
    case ELOOP: name = "ELOOP"; break;
    case ENXIO: name = "ENXIO"; break;
    case ENAMETOOLONG: name = "ENAMETOOLONG"; break;
    case ESTALE: name = "ESTALE"; break;
    case EBUSY: name = "EBUSY"; break;
    case ETXTBSY: name = "ETXTBSY"; break;
    case ENODEV: name = "ENODEV"; break;
    default: return false;
  }
  reason = name == nullptr ? std::string() : "cannot be read (" + std::string(name) + ")";
  return true;
}

void makeUnread(Node& node, std::string reason) {
  auto extra = std::make_shared<Extra>();
  extra->tail = std::move(reason);
  node.extra = std::move(extra);
  node.children = nullptr;
  node.type = Type::unread;
  node.flags = 0;
  node.hasContent = false;
  node.settled = false;
}

std::shared_ptr<const Extra> encodeXattrs(const Xattrs& xattrs) {
  if (xattrs.empty()) return nullptr;
  auto extra = std::make_shared<Extra>();
  extra->xattrCount = static_cast<uint16_t>(xattrs.size());
  for (const auto& [name, value] : xattrs) {
    const uint16_t nameLength = htole16(static_cast<uint16_t>(name.size()));
    const uint32_t valueLength = htole32(static_cast<uint32_t>(value.size()));
    extra->xattrs.append(reinterpret_cast<const char*>(&nameLength), sizeof(nameLength));
    extra->xattrs.append(reinterpret_cast<const char*>(&valueLength), sizeof(valueLength));
    extra->xattrs.append(name).append(value);
  }
  return extra;
}

Result<std::shared_ptr<const Extra>> readXattrs(int fd) {
  Result<Xattrs> xattrs = getXattrs(fd);
  if (!xattrs) return xattrs.error();
  return encodeXattrs(xattrs.value());
}

}  // namespace agentrewind
