#include "watch.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>

#include "open-files.hpp"

namespace agentrewind {
namespace {

constexpr uint64_t mask = FAN_MODIFY | FAN_CLOSE_WRITE | FAN_ATTRIB | FAN_CREATE | FAN_DELETE | FAN_MOVE |
                         FAN_MOVE_SELF | FAN_DELETE_SELF | FAN_ONDIR;

/** The inode in a file handle; the layouts are each file system's own (fs/libfs.c, mm/shmem.c, fs/xfs/xfs_export.h, fs/btrfs/export.h). */
std::optional<uint64_t> inodeOf(FileSystem kind, const file_handle& handle) {
  uint32_t words[3] = {};
  std::memcpy(words, handle.f_handle, std::min<size_t>(sizeof(words), handle.handle_bytes));
  const uint64_t wide = words[0] | static_cast<uint64_t>(words[1]) << 32;
  switch (kind) {
    case FileSystem::ext:
    case FileSystem::f2fs:
      if (handle.handle_bytes < 4) return std::nullopt;
      return words[0];
    case FileSystem::xfs: {
      constexpr int wideType = 0x81;
      if (handle.handle_bytes < 8) return std::nullopt;
      return handle.handle_type == wideType ? wide : words[0];
    }
    case FileSystem::btrfs:
      if (handle.handle_bytes < 8) return std::nullopt;
      return wide;
    case FileSystem::tmpfs:
      if (handle.handle_bytes < 12) return std::nullopt;
      return words[1] | static_cast<uint64_t>(words[2]) << 32;
    default: return std::nullopt;
  }
}

std::optional<uint64_t> inodeByHandle(FileSystem kind, int fd) {
  alignas(file_handle) char bytes[sizeof(file_handle) + MAX_HANDLE_SZ];
  auto* handle = reinterpret_cast<file_handle*>(bytes);
  handle->handle_bytes = MAX_HANDLE_SZ;
  int mount = 0;
  if (name_to_handle_at(fd, "", handle, &mount, AT_EMPTY_PATH) < 0) return std::nullopt;
  return inodeOf(kind, *handle);
}

/** io_uring's writes raise events since Linux 5.18. */
bool kernelTells() {
  utsname name;
  int major = 0;
  int minor = 0;
  if (uname(&name) < 0 || sscanf(name.release, "%d.%d", &major, &minor) != 2) return false;
  return major > 5 || (major == 5 && minor >= 18);
}

std::string pathOf(int fd) {
  char target[4096];
  const ssize_t length = readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), target, sizeof(target));
  return length < 0 || length == sizeof(target) ? std::string() : std::string(target, static_cast<size_t>(length));
}

/** As /proc/self/mountinfo writes paths: octal for space, tab, newline and backslash. */
std::string unescape(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); i++) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out.push_back(static_cast<char>(strtol(text.substr(i + 1, 3).c_str(), nullptr, 8)));
      i += 3;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

bool isBelow(const std::string& path, const std::string& folder) {
  return path == folder || folder == "/" || path.compare(0, folder.size() + 1, folder + "/") == 0;
}

/** Where the overlay of this line has its upper layer; empty when it is none. */
std::string upperLayer(const std::string& line) {
  constexpr std::string_view option = "upperdir=";
  const size_t from = line.find(option);
  if (from == std::string::npos || line.find(" - overlay ") == std::string::npos) return {};
  const size_t start = from + option.size();
  const std::string given = unescape(line.substr(start, line.find_first_of(", ", start) - start));
  char* resolved = realpath(given.c_str(), nullptr);
  std::string upper = resolved == nullptr ? given : resolved;
  free(resolved);
  return upper;
}

/** The fifth field. */
std::string mountPoint(const std::string& line) {
  size_t from = 0;
  for (int field = 0; field < 4 && from != std::string::npos; field++) from = line.find(' ', from + 1);
  if (from == std::string::npos) return {};
  return unescape(line.substr(from + 1, line.find(' ', from + 1) - from - 1));
}

}  // namespace

Watch::Mounts Watch::readMounts(const std::string& root) {
  Mounts found;
  std::ifstream mounts("/proc/self/mountinfo");
  for (std::string line; std::getline(mounts, line);) {
    const std::string point = mountPoint(line);
    if (isBelow(point, root) || isBelow(root, point)) found.around.append(line).push_back('\n');
    const std::string upper = upperLayer(line);
    if (!upper.empty() && isBelow(upper, root)) found.upperInside = true;
  }
  return found;
}

namespace {

void sortOnce(std::vector<uint64_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

}  // namespace

std::unique_ptr<Watch> Watch::open(int root, std::string& reason) {
  const FileSystem kind = fileSystemOf(root);
  Result<Stat> stat = statAt(root, "");
  const std::optional<uint64_t> inode = inodeByHandle(kind, root);
  const std::string path = pathOf(root);
  if (!kernelTells()) reason = "needs Linux 5.18";
  else if (!stat || inode != stat.value().ino || path.empty()) reason = "this file system's events cannot be told apart";
  if (!reason.empty()) return nullptr;

  UniqueFd events(fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID | FAN_NONBLOCK | FAN_CLOEXEC, O_RDONLY));
  if (events.get() < 0) {
    reason = errno == EPERM ? "needs root" : std::string("fanotify_init: ") + std::strerror(errno);
    return nullptr;
  }
  UniqueFd mounts(::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC));
  UniqueFd aio(::open("/proc/sys/fs/aio-nr", O_RDONLY | O_CLOEXEC));
  if (mounts.get() < 0 || aio.get() < 0) {
    reason = "needs /proc";
    return nullptr;
  }
  if (fanotify_mark(events.get(), FAN_MARK_ADD | FAN_MARK_FILESYSTEM, mask, root, nullptr) < 0) {
    reason = errno == EPERM ? "needs root" : std::string("fanotify_mark: ") + std::strerror(errno);
    return nullptr;
  }
  UniqueFd stop(eventfd(0, EFD_CLOEXEC));
  if (stop.get() < 0) {
    reason = std::string("eventfd: ") + std::strerror(errno);
    return nullptr;
  }
  const uint64_t device = deviceOf(stat.value());
  return std::unique_ptr<Watch>(
      new Watch(std::move(events), std::move(mounts), std::move(aio), std::move(stop), kind, device, path));
}

Watch::Watch(UniqueFd events, UniqueFd mountinfo, UniqueFd aio, UniqueFd stop, FileSystem kind, uint64_t device,
             std::string root)
    : events_(std::move(events)), mountinfo_(std::move(mountinfo)), aio_(std::move(aio)), stop_(std::move(stop)),
      kind_(kind), device_(device), root_(std::move(root)), mounts_(readMounts(root_)),
      collector_([this] { collect(); }) {}

Watch::~Watch() {
  const uint64_t one = 1;
  // It fails only where the counter is full, and then it wakes as well.
  [[maybe_unused]] const ssize_t told = write(stop_.get(), &one, sizeof(one));
  collector_.join();
}

void Watch::collect() {
  constexpr int pauseMs = 50;
  while (true) {
    pollfd asked[] = {{stop_.get(), POLLIN, 0}, {events_.get(), POLLIN, 0}};
    if (poll(asked, 2, -1) < 0 && errno != EINTR) return;
    if (asked[0].revents != 0) return;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!readEvents()) lost_ = true;
    }
    // Many at once cost less than each by itself.
    if (poll(asked, 1, pauseMs) > 0) return;
  }
}

void Watch::look(Changes& changes) const {
  InUse used = filesInUse(static_cast<uint32_t>(device_ >> 32), static_cast<uint32_t>(device_));
  changes.mapped = std::move(used.mapped);
  changes.inodes.insert(changes.inodes.end(), used.written.begin(), used.written.end());
  addLoops(changes);
}

bool Watch::take(Changes& changes) {
  bool complete = !aioInUse();
  if (mountsMoved()) {
    Mounts now = readMounts(root_);
    if (now.around != mounts_.around) complete = false;
    mounts_ = std::move(now);
  }
  // An overlay may write to the files of its upper layer without a word.
  if (mounts_.upperInside) complete = false;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!readEvents() || lost_) complete = false;
  lost_ = false;
  const auto add = [](std::vector<uint64_t>& all, std::vector<uint64_t>& some) {
    all.insert(all.end(), some.begin(), some.end());
    some.clear();
  };
  add(changes.inodes, collected_.inodes);
  add(changes.unstamped, collected_.unstamped);
  sortOnce(changes.inodes);
  sortOnce(changes.unstamped);
  return complete;
}

bool Watch::readEvents() {
  // A whole tree was made or removed: looking at everything is as good.
  constexpr size_t most = 1 << 19;
  for (std::vector<uint64_t>* inodes : {&collected_.inodes, &collected_.unstamped}) {
    if (inodes->size() < most / 2) continue;
    sortOnce(*inodes);
    if (inodes->size() < most / 2) continue;
    inodes->clear();
    lost_ = true;
  }
  alignas(fanotify_event_metadata) char buffer[32 << 10];
  while (true) {
    const ssize_t size = read(events_.get(), buffer, sizeof(buffer));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return size < 0 && errno == EAGAIN;
    ssize_t left = size;
    for (auto* event = reinterpret_cast<fanotify_event_metadata*>(buffer); FAN_EVENT_OK(event, left);
         event = FAN_EVENT_NEXT(event, left)) {
      if ((event->mask & FAN_Q_OVERFLOW) != 0 || event->vers != FANOTIFY_METADATA_VERSION) return false;
      const auto* info = reinterpret_cast<const fanotify_event_info_fid*>(event + 1);
      if (event->event_len < sizeof(*event) + sizeof(*info) + sizeof(file_handle)) return false;
      const auto* handle = reinterpret_cast<const file_handle*>(info->handle);
      const std::optional<uint64_t> inode = inodeOf(kind_, *handle);
      if (!inode) return false;
      collected_.inodes.push_back(*inode);
      // On tmpfs stores through a mapping move no time; its end is told like that of any writing.
      if (kind_ == FileSystem::tmpfs && (event->mask & FAN_CLOSE_WRITE) != 0) collected_.unstamped.push_back(*inode);
    }
  }
}

/** Linux AIO raises no events (checked up to 6.18); its users are counted. */
bool Watch::aioInUse() const {
  char count[32];
  const ssize_t size = pread(aio_.get(), count, sizeof(count) - 1, 0);
  return size != 2 || count[0] != '0';
}

bool Watch::mountsMoved() const {
  pollfd asked{mountinfo_.get(), POLLPRI, 0};
  return poll(&asked, 1, 0) != 0;
}

/** What a loop device writes to its file raises no event. */
void Watch::addLoops(Changes& changes) const {
  const std::unique_ptr<DIR, int (*)(DIR*)> devices(opendir("/sys/block"), closedir);
  while (const dirent* entry = devices ? readdir(devices.get()) : nullptr) {
    if (std::strncmp(entry->d_name, "loop", 4) != 0) continue;
    std::ifstream file("/sys/block/" + std::string(entry->d_name) + "/loop/backing_file");
    std::string path;
    if (!std::getline(file, path)) continue;
    Result<Stat> stat = statAt(AT_FDCWD, path.c_str());
    if (!stat) continue;
    if (covers(stat.value())) changes.inodes.push_back(stat.value().ino);
  }
}

}  // namespace agentrewind
