#include "tree-image.hpp"

#include <cstring>

#include "sink.hpp"

namespace agentrewind {
namespace {

constexpr char magic[] = "ARWTREE2";
constexpr size_t magicSize = sizeof(magic) - 1;

/** The fields of a node that are plain numbers, in one piece. */
struct Fixed {
  Stat stat;
  Sha256 content;
  Sha256 directory;
  uint32_t children;
  uint32_t name;
  uint32_t tail;
  uint32_t xattrs;
  uint16_t xattrCount;
  Type type;
  uint8_t flags;
  bool hasContent;
  bool settled;
  bool hasChildren;
};

class Saver {
 public:
  Saver(int fd, int64_t offset) : fd_(fd), offset_(offset), digest_(EVP_MD_CTX_new()) {
    EVP_DigestInit_ex(digest_, EVP_sha256(), nullptr);
  }
  Saver(const Saver&) = delete;
  Saver& operator=(const Saver&) = delete;
  ~Saver() { EVP_MD_CTX_free(digest_); }

  Status save(const Node& node) {
    Fixed fixed;
    std::memset(static_cast<void*>(&fixed), 0, sizeof(fixed));
    fixed.stat = node.stat;
    fixed.content = node.content;
    fixed.hasChildren = node.children != nullptr;
    if (node.children) {
      fixed.directory = node.children->hash;
      fixed.children = static_cast<uint32_t>(node.children->entries.size());
    }
    const std::string_view tail = node.tail();
    const std::string_view xattrs = node.extra ? std::string_view(node.extra->xattrs) : std::string_view();
    fixed.name = static_cast<uint32_t>(node.name.size());
    fixed.tail = static_cast<uint32_t>(tail.size());
    fixed.xattrs = static_cast<uint32_t>(xattrs.size());
    fixed.xattrCount = node.extra ? node.extra->xattrCount : 0;
    fixed.type = node.type;
    fixed.flags = node.flags;
    fixed.hasContent = node.hasContent;
    fixed.settled = node.settled;
    piece_.append(reinterpret_cast<const char*>(&fixed), sizeof(fixed));
    piece_.append(node.name).append(tail).append(xattrs);
    if (piece_.size() >= pieceSize) {
      Status written = write();
      if (!written) return written;
    }
    if (!node.children) return Done{};
    for (const Node& child : node.children->entries) {
      Status saved = save(child);
      if (!saved) return saved;
    }
    return Done{};
  }

  /** Returns the size of all. */
  Result<uint64_t> finish() {
    Status written = write();
    if (!written) return written.error();
    Sha256 name{};
    if (EVP_DigestFinal_ex(digest_, name.data(), nullptr) != 1) return Errno{ENOSYS, "sha256"};
    written = writeFully(fd_, reinterpret_cast<const char*>(name.data()), name.size(), offset_);
    if (!written) return written.error();
    return size_ + name.size();
  }

 private:
  static constexpr size_t pieceSize = 256 << 10;

  Status write() {
    if (EVP_DigestUpdate(digest_, piece_.data(), piece_.size()) != 1) return Errno{ENOSYS, "sha256"};
    Status written = writeFully(fd_, piece_.data(), piece_.size(), offset_);
    offset_ += static_cast<int64_t>(piece_.size());
    size_ += piece_.size();
    piece_.clear();
    return written;
  }

  const int fd_;
  int64_t offset_;
  uint64_t size_ = 0;
  std::string piece_{magic, magicSize};
  EVP_MD_CTX* const digest_;
};

class Loader {
 public:
  Loader(std::string_view bytes, int64_t unsettledFromNs) : rest_(bytes), unsettledFromNs_(unsettledFromNs) {}

  bool load(Node& node) {
    Fixed fixed;
    if (rest_.size() < sizeof(fixed)) return false;
    std::memcpy(static_cast<void*>(&fixed), rest_.data(), sizeof(fixed));
    rest_.remove_prefix(sizeof(fixed));
    if (rest_.size() < size_t{fixed.name} + fixed.tail + fixed.xattrs) return false;
    node.name = take(fixed.name);
    if (fixed.tail + fixed.xattrs > 0) {
      auto extra = std::make_shared<Extra>();
      extra->tail = take(fixed.tail);
      extra->xattrs = take(fixed.xattrs);
      extra->xattrCount = fixed.xattrCount;
      node.extra = std::move(extra);
    }
    node.stat = fixed.stat;
    node.content = fixed.content;
    node.type = fixed.type;
    node.flags = fixed.flags;
    node.hasContent = fixed.hasContent;
    node.settled = fixed.settled && fixed.stat.ctimeNs < unsettledFromNs_;
    if (!fixed.hasChildren) return true;
    if (fixed.children > rest_.size() / sizeof(Fixed)) return false;
    auto directory = std::make_shared<Directory>();
    directory->hash = fixed.directory;
    directory->entries.resize(fixed.children);
    for (Node& child : directory->entries) {
      if (!load(child) || (child.type == Type::directory && !child.children)) return false;
    }
    directory->summarize();
    node.children = std::move(directory);
    return true;
  }

  bool done() const { return rest_.empty(); }

 private:
  std::string take(size_t size) {
    std::string bytes(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return bytes;
  }

  std::string_view rest_;
  const int64_t unsettledFromNs_;
};

}  // namespace

Result<uint64_t> saveTree(const Node& root, int fd, int64_t offset) {
  Saver saver(fd, offset);
  Status saved = saver.save(root);
  if (!saved) return saved.error();
  return saver.finish();
}

std::shared_ptr<const Node> loadTree(std::string_view image, int64_t unsettledFromNs) {
  Sha256 digest{};
  if (image.size() < magicSize + digest.size() || image.substr(0, magicSize) != std::string_view(magic, magicSize)) return nullptr;
  const std::string_view body = image.substr(0, image.size() - digest.size());
  if (!sha256(body.data(), body.size(), digest)) return nullptr;
  if (std::memcmp(digest.data(), image.data() + body.size(), digest.size()) != 0) return nullptr;
  Loader loader(body.substr(magicSize), unsettledFromNs);
  auto root = std::make_shared<Node>();
  if (!loader.load(*root) || !loader.done()) return nullptr;
  return root;
}

}  // namespace agentrewind
