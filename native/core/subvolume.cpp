#include "subvolume.hpp"

#include <fcntl.h>
#include <linux/btrfs.h>
#include <linux/btrfs_tree.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>

#include "bytes.hpp"
#include "unique-fd.hpp"
#include "write-faults.hpp"

namespace agentrewind {
namespace {

constexpr uint64_t rootInode = BTRFS_FIRST_FREE_OBJECTID;

Status nameInto(btrfs_ioctl_vol_args_v2& arguments, std::string_view name) {
  if (name.empty() || name.size() > BTRFS_SUBVOL_NAME_MAX || name.find('/') != std::string_view::npos) {
    return Errno{EINVAL, "ioctl"};
  }
  std::memcpy(arguments.name, name.data(), name.size());
  return Done{};
}

struct RootRef {
  uint64_t id;
  uint64_t folder;
};

Result<std::vector<RootRef>> rootRefs(int fd) {
  std::vector<RootRef> found;
  auto page = std::make_unique<btrfs_ioctl_get_subvol_rootref_args>();
  while (true) {
    const bool more = ioctl(fd, BTRFS_IOC_GET_SUBVOL_ROOTREF, page.get()) < 0;
    if (more && errno != EOVERFLOW) return lastError("ioctl");
    for (unsigned i = 0; i < page->num_items; i++) found.push_back({page->rootref[i].treeid, page->rootref[i].dirid});
    if (!more) return found;
  }
}

Result<UniqueFd> openFolder(int at, const char* path) {
  UniqueFd opened(openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (opened.get() < 0) return lastError("openat");
  return opened;
}

/** The deepest first: one that holds another cannot be removed. */
Status removeInner(int fd) {
  Result<std::vector<InnerSubvolume>> inner = innerSubvolumes(fd);
  if (!inner) return inner.error();
  for (const InnerSubvolume& one : inner.value()) {
    Result<UniqueFd> folder = openFolder(fd, one.folder.empty() ? "." : one.folder.c_str());
    if (!folder) return folder.error();
    Status removed = removeSubvolume(folder.value().get(), one.name);
    if (!removed) return removed;
  }
  return Done{};
}

}  // namespace

Status makeSubvolume(int folder, std::string_view name) {
  btrfs_ioctl_vol_args_v2 arguments{};
  if (Status named = nameInto(arguments, name); !named) return named;
  return check(changing([&] { return ioctl(folder, BTRFS_IOC_SUBVOL_CREATE_V2, &arguments); }), "ioctl");
}

Status makeSnapshot(int source, int folder, std::string_view name, bool readOnly) {
  btrfs_ioctl_vol_args_v2 arguments{};
  if (Status named = nameInto(arguments, name); !named) return named;
  arguments.fd = source;
  arguments.flags = readOnly ? BTRFS_SUBVOL_RDONLY : 0;
  return check(changing([&] { return ioctl(folder, BTRFS_IOC_SNAP_CREATE_V2, &arguments); }), "ioctl");
}

Status removeSubvolume(int folder, std::string_view name) {
  btrfs_ioctl_vol_args_v2 arguments{};
  if (Status named = nameInto(arguments, name); !named) return named;
  const auto remove = [&] { return ioctl(folder, BTRFS_IOC_SNAP_DESTROY_V2, &arguments); };
  if (changing(remove) == 0) return Done{};
  if (errno != ENOTEMPTY) return lastError("ioctl");
  Result<UniqueFd> opened = openFolder(folder, arguments.name);
  if (!opened) return opened.error();
  if (Status inner = removeInner(opened.value().get()); !inner) return inner;
  return check(changing(remove), "ioctl");
}

Result<SubvolumeInfo> subvolumeInfo(int fd) {
  struct stat root;
  if (fstat(fd, &root) < 0) return lastError("fstat");
  auto found = std::make_unique<btrfs_ioctl_get_subvol_info_args>();
  if (ioctl(fd, BTRFS_IOC_GET_SUBVOL_INFO, found.get()) < 0) return lastError("ioctl");
  if (root.st_ino != rootInode) return Errno{EINVAL, "ioctl"};
  uint64_t flags = 0;
  if (ioctl(fd, BTRFS_IOC_SUBVOL_GETFLAGS, &flags) < 0) return lastError("ioctl");
  SubvolumeInfo info;
  info.id = found->treeid;
  info.generation = found->generation;
  info.changed = found->ctransid;
  info.made = found->otransid;
  info.readOnly = (flags & BTRFS_SUBVOL_RDONLY) != 0;
  return info;
}

Status waitForTransaction(int fd, uint64_t transaction) {
  __u64 wanted = transaction;
  return check(ioctl(fd, BTRFS_IOC_WAIT_SYNC, &wanted), "ioctl");
}

Result<ChangedInodes> changedInodes(int fd, uint64_t transaction) {
  constexpr size_t room = 256 << 10;
  std::vector<uint64_t> memory((sizeof(btrfs_ioctl_search_args_v2) + room) / sizeof(uint64_t) + 1);
  auto* search = reinterpret_cast<btrfs_ioctl_search_args_v2*>(memory.data());
  btrfs_ioctl_search_key& key = search->key;
  constexpr uint64_t top = std::numeric_limits<uint64_t>::max();
  key.min_objectid = rootInode;
  key.max_objectid = BTRFS_LAST_FREE_OBJECTID;
  key.max_offset = top;
  key.min_transid = transaction + 1;
  key.max_transid = top;
  key.max_type = BTRFS_EXTENT_DATA_KEY;

  ChangedInodes changed;
  while (true) {
    search->buf_size = room;
    key.nr_items = std::numeric_limits<uint32_t>::max();
    if (ioctl(fd, BTRFS_IOC_TREE_SEARCH_V2, search) < 0) return lastError("ioctl");
    if (key.nr_items == 0) return changed;
    // Without padding: headers and items lie at any address.
    std::string_view rest(reinterpret_cast<const char*>(memory.data()) + offsetof(btrfs_ioctl_search_args_v2, buf), room);
    btrfs_ioctl_search_header header{};
    for (uint32_t i = 0; i < key.nr_items; i++) {
      std::memcpy(&header, rest.data(), sizeof(header));
      rest.remove_prefix(sizeof(header));
      const std::string_view item = rest.substr(0, header.len);
      rest.remove_prefix(header.len);
      // A leaf that was written again holds items that were not changed.
      if (header.type == BTRFS_INODE_ITEM_KEY) {
        ByteReader reader(item);
        reader.u64();
        if (reader.u64() > transaction && reader.ok()) changed.inodes.push_back(header.objectid);
      } else if (header.type == BTRFS_EXTENT_DATA_KEY) {
        ByteReader reader(item);
        const uint64_t written = reader.u64();
        const uint64_t inMemory = reader.u64();
        reader.take(4);
        const uint8_t type = reader.u8();
        const uint64_t address = type == BTRFS_FILE_EXTENT_INLINE ? 0 : reader.u64();
        const uint64_t onDisk = type == BTRFS_FILE_EXTENT_INLINE ? inMemory : reader.u64();
        const bool hole = type != BTRFS_FILE_EXTENT_INLINE && address == 0;
        if (reader.ok() && written > transaction && !hole) changed.bytes += onDisk;
      }
    }
    // Behind the last one.
    key.min_objectid = header.objectid;
    key.min_type = header.type;
    key.min_offset = header.offset + 1;
    if (key.min_offset == 0 && ++key.min_type == 0) key.min_objectid++;
  }
}

Result<std::vector<InnerSubvolume>> innerSubvolumes(int fd) {
  Result<std::vector<RootRef>> refs = rootRefs(fd);
  if (!refs) return refs.error();
  std::vector<InnerSubvolume> found;
  for (const RootRef& ref : refs.value()) {
    auto lookup = std::make_unique<btrfs_ioctl_ino_lookup_args>();
    lookup->objectid = ref.folder;
    if (ioctl(fd, BTRFS_IOC_INO_LOOKUP, lookup.get()) < 0) return lastError("ioctl");
    std::string path(lookup->name);
    if (!path.empty()) path.pop_back();  // ends with a slash
    Result<UniqueFd> folder = openFolder(fd, path.empty() ? "." : path.c_str());
    if (!folder) return folder.error();
    auto names = std::make_unique<btrfs_ioctl_ino_lookup_user_args>();
    std::memset(names.get(), 0, sizeof(*names));
    names->treeid = ref.id;
    names->dirid = ref.folder;
    if (ioctl(folder.value().get(), BTRFS_IOC_INO_LOOKUP_USER, names.get()) < 0) return lastError("ioctl");
    found.push_back({std::move(path), names->name});
  }
  return found;
}

}  // namespace agentrewind
