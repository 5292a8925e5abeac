#include "freezer.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>

#include "unique-fd.hpp"

namespace agentrewind {
namespace {

/** Milliseconds until a thread that does not stop, because it waits in the kernel, makes the freeze fail. */
constexpr int patienceMs = 200;
constexpr size_t threadLimit = 4096;

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};
using Listing = std::unique_ptr<DIR, CloseDirectory>;

/** Parents of all visible processes. */
std::map<int, int> parents() {
  std::map<int, int> found;
  const Listing processes(opendir("/proc"));
  if (!processes) return found;
  while (const dirent* entry = readdir(processes.get())) {
    const int process = atoi(entry->d_name);
    if (process <= 0) continue;
    const std::string path = std::string(entry->d_name) + "/stat";
    const UniqueFd file(openat(dirfd(processes.get()), path.c_str(), O_RDONLY | O_CLOEXEC));
    char text[512];
    const ssize_t size = file.get() < 0 ? 0 : read(file.get(), text, sizeof(text) - 1);
    if (size <= 0) continue;
    text[size] = '\0';
    // The name may hold anything, also ")": the last one ends it.
    const char* behindName = strrchr(text, ')');
    int parent = 0;
    if (behindName != nullptr && sscanf(behindName + 1, " %*c %d", &parent) == 1) found[process] = parent;
  }
  return found;
}

bool descends(const std::map<int, int>& parents, int process, int ancestor) {
  for (size_t hops = 0; hops <= parents.size(); hops++) {
    const auto found = parents.find(process);
    if (found == parents.end()) return false;
    process = found->second;
    if (process == ancestor) return true;
  }
  return false;
}

bool holdsOpen(int process, const std::vector<Stat>& files) {
  const Listing descriptors(opendir(("/proc/" + std::to_string(process) + "/fd").c_str()));
  if (!descriptors) return false;
  while (const dirent* entry = readdir(descriptors.get())) {
    struct stat found;
    if (entry->d_name[0] == '.' || fstatat(dirfd(descriptors.get()), entry->d_name, &found, 0) < 0) continue;
    for (const Stat& file : files) {
      if (found.st_ino == file.ino && major(found.st_dev) == file.devMajor && minor(found.st_dev) == file.devMinor) {
        return true;
      }
    }
  }
  return false;
}

// Below, up to the end of `keep`, runs between fork and exit in a copy of a process with many threads: system calls only, no allocation, no locks.

/** Threads that the keeper has stopped. */
struct Stopped {
  int threads[threadLimit];
  size_t count = 0;

  bool has(int thread) const {
    for (size_t i = 0; i < count; i++) {
      if (threads[i] == thread) return true;
    }
    return false;
  }
};

void sleepMs(int ms) {
  const timespec time{0, ms * 1000000L};
  nanosleep(&time, nullptr);
}

bool stopThread(int thread, Stopped& stopped) {
  if (stopped.count == threadLimit) return false;
  if (ptrace(PTRACE_SEIZE, thread, nullptr, nullptr) < 0) return errno == ESRCH;
  if (ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr) < 0) return errno == ESRCH;
  for (int waited = 0; waited < patienceMs; waited++) {
    int status;
    const int changed = waitpid(thread, &status, WNOHANG | __WALL);
    if (changed == thread) {
      if (WIFSTOPPED(status)) stopped.threads[stopped.count++] = thread;
      return true;
    }
    if (changed < 0) return errno == ECHILD;
    sleepMs(1);
  }
  return false;
}

/** Stops every thread, also those that the others make meanwhile. */
bool stopProcess(const char* tasks, Stopped& stopped) {
  alignas(8) char buffer[8192];
  for (bool grew = true; grew;) {
    grew = false;
    const int folder = open(tasks, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0) return errno == ENOENT;
    for (long size; (size = syscall(SYS_getdents64, folder, buffer, sizeof(buffer))) > 0;) {
      for (long at = 0; at < size;) {
        uint16_t length;
        memcpy(&length, buffer + at + 16, sizeof(length));
        int thread = 0;
        for (const char* digit = buffer + at + 19; *digit >= '0' && *digit <= '9'; digit++) thread = thread * 10 + (*digit - '0');
        at += length;
        if (thread == 0 || stopped.has(thread)) continue;
        if (!stopThread(thread, stopped)) {
          close(folder);
          return false;
        }
        grew = true;
      }
    }
    close(folder);
  }
  return true;
}

[[noreturn]] void keep(const std::vector<std::string>& tasks, Stopped& stopped, int report, int life) {
  bool held = true;
  for (size_t i = 0; held && i < tasks.size(); i++) held = stopProcess(tasks[i].c_str(), stopped);
  const char answer = held && stopped.count > 0 ? 1 : 0;
  if (write(report, &answer, 1) == 1 && answer == 1) {
    char end;
    while (read(life, &end, 1) < 0 && errno == EINTR) continue;
  }
  // Its end lets all of them go on.
  _exit(0);
}

}  // namespace

std::unique_ptr<Freezer> Freezer::hold(const std::vector<Stat>& files) {
  const std::map<int, int> family = parents();
  const int self = getpid();
  std::vector<std::string> tasks;
  for (const auto& [process, parent] : family) {
    if (descends(family, process, self) && holdsOpen(process, files)) {
      tasks.push_back("/proc/" + std::to_string(process) + "/task");
    }
  }
  if (tasks.empty()) return nullptr;

  int report[2];
  int life[2];
  if (pipe2(report, O_CLOEXEC) < 0) return nullptr;
  const UniqueFd reportRead(report[0]);
  UniqueFd reportWrite(report[1]);
  if (pipe2(life, O_CLOEXEC) < 0) return nullptr;
  UniqueFd lifeRead(life[0]);
  UniqueFd lifeWrite(life[1]);
  const auto stopped = std::make_unique<Stopped>();

  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  // The copy must not run this process's signal handlers.
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const int keeper = fork();
  if (keeper == 0) {
    close(life[1]);
    keep(tasks, *stopped, report[1], life[0]);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (keeper < 0) return nullptr;
  reportWrite = UniqueFd();
  lifeRead = UniqueFd();
  char answer = 0;
  while (read(reportRead.get(), &answer, 1) < 0 && errno == EINTR) continue;
  std::unique_ptr<Freezer> freezer(new Freezer(keeper, lifeWrite.release()));
  return answer == 1 ? std::move(freezer) : nullptr;
}

Freezer::~Freezer() {
  close(pipe_);
  while (waitpid(keeper_, nullptr, 0) < 0 && errno == EINTR) continue;
}

}  // namespace agentrewind
