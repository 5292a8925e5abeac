#include "loop-device.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <cstring>
#include <memory>
#include <string_view>

#include "unique-fd.hpp"

namespace agentrewind {
namespace {

/** Another process may take the free device first. */
constexpr int attempts = 64;

bool isLoopName(std::string_view name) {
  return name.size() > 4 && name.substr(0, 4) == "loop" &&
         name.find_first_not_of("0123456789", 4) == std::string_view::npos;
}

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

}  // namespace

Result<std::string> findLoopDevice(int file) {
  struct stat wanted;
  if (fstat(file, &wanted) < 0) return lastError("fstat");
  std::unique_ptr<DIR, CloseDirectory> devices(opendir("/dev"));
  if (!devices) return lastError("opendir");
  while (const dirent* entry = readdir(devices.get())) {
    if (!isLoopName(entry->d_name)) continue;
    UniqueFd device(openat(dirfd(devices.get()), entry->d_name, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    loop_info64 info{};
    if (device.get() < 0 || ioctl(device.get(), LOOP_GET_STATUS64, &info) < 0) continue;
    if (info.lo_inode == wanted.st_ino && info.lo_device == wanted.st_dev) return std::string("/dev/") + entry->d_name;
  }
  return std::string();
}

Result<LoopDevice> attachLoopDevice(int file, bool direct) {
  UniqueFd control(open("/dev/loop-control", O_RDWR | O_CLOEXEC));
  if (control.get() < 0) return lastError("open");
  for (int attempt = 0; attempt < attempts; attempt++) {
    const int number = ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) return lastError("ioctl");
    const std::string path = "/dev/loop" + std::to_string(number);
    UniqueFd device(open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (device.get() < 0) return lastError("open");
    loop_config config{};
    config.fd = static_cast<uint32_t>(file);
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR | (direct ? LO_FLAGS_DIRECT_IO : 0);
    if (ioctl(device.get(), LOOP_CONFIGURE, &config) == 0) return LoopDevice{path, device.release()};
    if (errno != EBUSY) return lastError("ioctl");
  }
  return Errno{EBUSY, "ioctl"};
}

}  // namespace agentrewind
