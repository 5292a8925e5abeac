#include "ipc-objects.hpp"

#include <sched.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <thread>

#include "unique-fd.hpp"

namespace agentrewind {
namespace {

Result<uint64_t> countAt(int process) {
  if (setns(process, CLONE_NEWIPC) < 0) return lastError("setns");
  shm_info segments;
  seminfo semaphores;
  msginfo queues;
  if (shmctl(0, SHM_INFO, reinterpret_cast<shmid_ds*>(&segments)) < 0) return lastError("shmctl");
  if (semctl(0, 0, SEM_INFO, &semaphores) < 0) return lastError("semctl");
  if (msgctl(0, MSG_INFO, reinterpret_cast<msqid_ds*>(&queues)) < 0) return lastError("msgctl");
  // With these commands `semusz` and `msgpool` count the sets and the queues.
  return static_cast<uint64_t>(segments.used_ids) + static_cast<uint64_t>(semaphores.semusz) +
         static_cast<uint64_t>(queues.msgpool);
}

}  // namespace

Result<uint64_t> countIpcObjects(int pid) {
  const UniqueFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (process.get() < 0) return lastError("pidfd_open");
  Result<uint64_t> found = Errno{0, ""};
  std::thread([&] { found = countAt(process.get()); }).join();
  return found;
}

}  // namespace agentrewind
