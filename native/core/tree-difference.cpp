// Both sides of a folder are listed together, level by level, the folders of a level on several threads.
#include "tree-difference.hpp"

#include <dirent.h>
#include <endian.h>
#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>
#include <memory>
#include <unordered_set>

#include "beneath.hpp"
#include "same-content.hpp"
#include "statx.hpp"
#include "workers.hpp"
#include "xattr.hpp"

namespace agentrewind {
namespace {

/** Above this a walk of everything costs no more. */
constexpr size_t mostInodes = 20'000;

enum class Kind : uint8_t { none, file, directory, symlink, whiteout, other };

constexpr std::string_view overlayPrefixes[] = {"trusted.overlay.", "user.overlay."};

bool isOverlays(std::string_view name) {
  return std::any_of(std::begin(overlayPrefixes), std::end(overlayPrefixes),
                     [&](std::string_view prefix) { return name.substr(0, prefix.size()) == prefix; });
}

struct Side {
  Kind kind = Kind::none;
  bool opaque = false;
  Stat stat;
  Xattrs xattrs;
};

struct Name {
  std::string name;
  uint64_t inode;
  bool directory;

  bool operator<(const Name& other) const { return name < other.name; }
};

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

class Listed {
 public:
  Status open(int root, const std::string& path) {
    Result<UniqueFd> opened = openBeneath(root, path, O_RDONLY | O_DIRECTORY, 0);
    if (!opened) return opened.error();
    directory_.reset(fdopendir(opened.value().get()));
    if (!directory_) return lastError("fdopendir");
    opened.value().release();
    while (true) {
      errno = 0;
      const dirent* entry = readdir(directory_.get());
      if (entry == nullptr) break;
      const std::string_view name(entry->d_name);
      if (name == "." || name == "..") continue;
      names.push_back({std::string(name), entry->d_ino, entry->d_type == DT_DIR});
    }
    if (errno != 0) return lastError("getdents64");
    std::sort(names.begin(), names.end());
    return Done{};
  }

  int fd() const { return directory_ ? dirfd(directory_.get()) : -1; }

  std::vector<Name> names;

 private:
  std::unique_ptr<DIR, CloseDirectory> directory_;
};

Result<Side> look(int folder, const std::string& name) {
  Side side;
  Result<Stat> stat = statAt(folder, name.c_str());
  if (!stat) return stat.error();
  side.stat = stat.value();
  Result<Xattrs> xattrs = getXattrs(Location(UniqueFd(), folder, name));
  if (!xattrs) return xattrs.error();
  bool marked = false;
  for (auto& [key, value] : xattrs.value()) {
    const std::string_view last = std::string_view(key).substr(key.rfind('.') + 1);
    if (!isOverlays(key)) side.xattrs.emplace_back(std::move(key), std::move(value));
    else if (last == "opaque") side.opaque = value == "y";
    else if (last == "whiteout") marked = true;
  }
  switch (side.stat.mode & S_IFMT) {
    case S_IFREG: side.kind = marked && side.stat.size == 0 ? Kind::whiteout : Kind::file; break;
    case S_IFDIR: side.kind = Kind::directory; break;
    case S_IFLNK: side.kind = Kind::symlink; break;
    case S_IFCHR: side.kind = side.stat.rdevMajor == 0 && side.stat.rdevMinor == 0 ? Kind::whiteout : Kind::other; break;
    default: side.kind = Kind::other;
  }
  if (side.kind != Kind::directory) side.opaque = false;
  return side;
}

void put32(std::string& out, uint32_t value) {
  value = htole32(value);
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void put64(std::string& out, uint64_t value) {
  value = htole64(value);
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void putSide(std::string& out, const Side& side) {
  out.push_back(static_cast<char>(side.kind));
  out.push_back(side.opaque ? 1 : 0);
  out.append(2, '\0');
  put32(out, side.stat.mode & 07777);
  put32(out, side.stat.uid);
  put32(out, side.stat.gid);
  put64(out, side.stat.size);
  put64(out, static_cast<uint64_t>(side.stat.mtimeNs));
  put64(out, side.stat.ino);
}

void putRecord(std::string& out, std::string_view path, const Side& from, const Side& to, bool metadataOnly) {
  const size_t start = out.size();
  const size_t length = (92 + path.size() + 7) & ~size_t{7};
  put32(out, static_cast<uint32_t>(length));
  put32(out, static_cast<uint32_t>(path.size()));
  out.push_back(metadataOnly ? 1 : 0);
  out.append(3, '\0');
  putSide(out, from);
  putSide(out, to);
  out.append(path);
  out.resize(start + length, '\0');
}

/** A folder that may differ. */
struct Folder {
  std::string path;
  bool inFrom;
  bool inTo;
};

struct Found {
  std::string records;
  std::vector<Folder> folders;
};

class Comparison {
 public:
  Comparison(int from, int to, const std::optional<KnownChanges>& known) : from_(from), to_(to), known_(known) {}

  /** The folders themselves, whose content is told apart. */
  Status compareRoots(std::string& records) const {
    Result<Side> from = look(from_, ".");
    if (!from) return from.error();
    Result<Side> to = look(to_, ".");
    if (!to) return to.error();
    if (!sameMetadata(from.value(), to.value())) putRecord(records, "", from.value(), to.value(), true);
    return Done{};
  }

  Status visit(const Folder& folder, Found& found) const {
    Listed from, to;
    if (folder.inFrom) {
      if (Status opened = from.open(from_, folder.path); !opened) return opened;
    }
    if (folder.inTo) {
      if (Status opened = to.open(to_, folder.path); !opened) return opened;
    }
    size_t left = 0, right = 0;
    while (left < from.names.size() || right < to.names.size()) {
      const int order = left == from.names.size() ? 1
                        : right == to.names.size() ? -1
                                                   : from.names[left].name.compare(to.names[right].name);
      const Name* one = order <= 0 ? &from.names[left++] : nullptr;
      const Name* other = order >= 0 ? &to.names[right++] : nullptr;
      if (one != nullptr && other != nullptr && isQuiet(*one, *other)) continue;
      Status compared = compare(folder, from.fd(), one, to.fd(), other, found);
      if (!compared) return compared;
    }
    return Done{};
  }

 private:
  /** By what is known alone. */
  bool isQuiet(const Name& one, const Name& other) const {
    if (!known_ || one.inode != other.inode) return false;
    const auto isIn = [&](const std::vector<uint64_t>& list) {
      return std::binary_search(list.begin(), list.end(), one.inode);
    };
    return !isIn(known_->inodes) && !(one.directory && isIn(known_->folders));
  }

  Status compare(const Folder& folder, int fromFd, const Name* one, int toFd, const Name* other, Found& found) const {
    const std::string& name = one != nullptr ? one->name : other->name;
    std::string path = folder.path.empty() ? name : folder.path + "/" + name;
    // Most are equal, and asking for attributes is dear.
    if (!known_ && one != nullptr && other != nullptr) {
      Result<Stat> a = statAt(fromFd, name.c_str());
      if (!a) return a.error();
      Result<Stat> b = statAt(toFd, name.c_str());
      if (!b) return b.error();
      if (sameInode(a.value(), b.value())) {
        if (one->directory) found.folders.push_back({std::move(path), true, true});
        return Done{};
      }
    }
    Side from, to;
    if (one != nullptr) {
      Result<Side> seen = look(fromFd, name);
      if (!seen) return seen.error();
      from = std::move(seen.value());
    }
    if (other != nullptr) {
      Result<Side> seen = look(toFd, name);
      if (!seen) return seen.error();
      to = std::move(seen.value());
    }
    Result<bool> content = one != nullptr && other != nullptr ? sameContent(fromFd, from, toFd, to, name) : false;
    if (!content) return content.error();
    if (!content.value() || !sameMetadata(from, to)) putRecord(found.records, path, from, to, content.value());
    const bool below = from.kind == Kind::directory, beside = to.kind == Kind::directory;
    if (below || beside) found.folders.push_back({std::move(path), below, beside});
    return Done{};
  }

  static bool sameInode(const Stat& a, const Stat& b) {
    return a.ino == b.ino && a.ctimeNs == b.ctimeNs && a.mtimeNs == b.mtimeNs && a.size == b.size && a.mode == b.mode;
  }

  static bool sameMetadata(const Side& a, const Side& b) {
    return a.stat.mode == b.stat.mode && a.stat.uid == b.stat.uid && a.stat.gid == b.stat.gid &&
           a.stat.mtimeNs == b.stat.mtimeNs && a.xattrs == b.xattrs;
  }

  static Result<bool> sameContent(int fromFd, const Side& from, int toFd, const Side& to, const std::string& name) {
    if (from.kind != to.kind || from.opaque != to.opaque) return false;
    switch (from.kind) {
      case Kind::file: return from.stat.size == to.stat.size ? sameFileContent(fromFd, toFd, name.c_str()) : false;
      case Kind::symlink: return sameLinkText(fromFd, toFd, name.c_str());
      case Kind::other:
        return (from.stat.mode & S_IFMT) == (to.stat.mode & S_IFMT) && from.stat.rdevMajor == to.stat.rdevMajor &&
               from.stat.rdevMinor == to.stat.rdevMinor;
      default: return true;
    }
  }

  const int from_;
  const int to_;
  const std::optional<KnownChanges>& known_;
};

}  // namespace

Result<std::optional<std::vector<uint64_t>>> foldersAbove(int fd, const std::vector<uint64_t>& inodes) {
  if (inodes.size() > mostInodes) return std::optional<std::vector<uint64_t>>();
  constexpr size_t room = 64 << 10;
  std::vector<uint64_t> memory((sizeof(btrfs_ioctl_search_args_v2) + room) / sizeof(uint64_t) + 1);
  auto* search = reinterpret_cast<btrfs_ioctl_search_args_v2*>(memory.data());
  std::unordered_set<uint64_t> folders;
  std::vector<uint64_t> waiting(inodes);
  while (!waiting.empty()) {
    const uint64_t inode = waiting.back();
    waiting.pop_back();
    uint64_t offset = 0;
    uint32_t type = BTRFS_INODE_REF_KEY;
    while (true) {
      btrfs_ioctl_search_key& key = search->key;
      key = btrfs_ioctl_search_key{};
      key.min_objectid = key.max_objectid = inode;
      key.min_type = type;
      key.max_type = BTRFS_INODE_EXTREF_KEY;
      key.min_offset = offset;
      key.max_offset = key.max_transid = std::numeric_limits<uint64_t>::max();
      key.nr_items = std::numeric_limits<uint32_t>::max();
      search->buf_size = room;
      if (ioctl(fd, BTRFS_IOC_TREE_SEARCH_V2, search) < 0) return lastError("ioctl");
      if (key.nr_items == 0) break;
      const char* at = reinterpret_cast<const char*>(memory.data()) + offsetof(btrfs_ioctl_search_args_v2, buf);
      btrfs_ioctl_search_header header{};
      for (uint32_t i = 0; i < key.nr_items; i++) {
        std::memcpy(&header, at, sizeof(header));
        at += sizeof(header);
        const auto meet = [&](uint64_t folder) {
          if (folders.insert(folder).second && folder != inode) waiting.push_back(folder);
        };
        if (header.type == BTRFS_INODE_REF_KEY) meet(header.offset);
        for (uint32_t done = 0; header.type == BTRFS_INODE_EXTREF_KEY && done + 18 <= header.len;) {
          uint64_t parent;
          uint16_t length;
          std::memcpy(&parent, at + done, sizeof(parent));
          std::memcpy(&length, at + done + 16, sizeof(length));
          meet(le64toh(parent));
          done += 18 + le16toh(length);
        }
        at += header.len;
      }
      if (header.offset == std::numeric_limits<uint64_t>::max()) break;
      type = header.type;
      offset = header.offset + 1;
    }
  }
  std::vector<uint64_t> sorted(folders.begin(), folders.end());
  std::sort(sorted.begin(), sorted.end());
  return std::optional<std::vector<uint64_t>>(std::move(sorted));
}

Result<std::string> compareTrees(int from, int to, const std::optional<KnownChanges>& known) {
  const Comparison comparison(from, to, known);
  std::string records;
  if (Status compared = comparison.compareRoots(records); !compared) return compared.error();
  std::vector<Folder> level{{"", true, true}};
  while (!level.empty()) {
    std::vector<Found> found(level.size());
    std::atomic<bool> failed{false};
    Errno error{};
    parallelFor(level.size(), workerCount(), [&](size_t index, unsigned) {
      if (failed) return;
      Status visited = comparison.visit(level[index], found[index]);
      if (!visited && !failed.exchange(true)) error = visited.error();
    });
    if (failed) return error;
    level.clear();
    for (Found& one : found) {
      records += one.records;
      std::move(one.folders.begin(), one.folders.end(), std::back_inserter(level));
    }
  }
  return records;
}

Result<std::string> lookAt(int root, const std::string& path) {
  Result<Location> location = locate(root, path);
  if (!location) {
    const int code = location.error().code;
    if (code == ENOENT || code == ENOTDIR || code == ELOOP) return std::string();
    return location.error();
  }
  Result<Side> side = look(location.value().parent(), location.value().name());
  if (!side) {
    if (side.error().code == ENOENT) return std::string();
    return side.error();
  }
  std::string out;
  putSide(out, side.value());
  return out;
}

}  // namespace agentrewind
