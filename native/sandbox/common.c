#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "program.h"

struct fields split_fields(char *bytes, size_t length) {
  struct fields fields = {NULL, 0};
  for (size_t i = 0; i < length; i++) fields.count += bytes[i] == 0;
  fields.item = calloc(fields.count + 1, sizeof(char *));
  if (fields.item == NULL) abort();
  size_t next = 0;
  for (size_t i = 0; i < length; i += strlen(bytes + i) + 1)
    if (next < fields.count) fields.item[next++] = bytes + i;
  return fields;
}

int read_all(int fd, void *bytes, size_t length) {
  for (size_t done = 0; done < length;) {
    ssize_t got = read(fd, (char *)bytes + done, length - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return -1;
    done += (size_t)got;
  }
  return 0;
}

int write_all(int fd, const void *bytes, size_t length) {
  for (size_t done = 0; done < length;) {
    ssize_t put = write(fd, (const char *)bytes + done, length - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return -1;
    done += (size_t)put;
  }
  return 0;
}

static int is_kept(int fd, const int *kept) {
  for (; *kept >= 0; kept++)
    if (*kept == fd) return 1;
  return 0;
}

void close_others(const int *kept) {
  int highest = 2;
  for (const int *one = kept; *one >= 0; one++)
    if (*one > highest) highest = *one;
  for (int fd = 3; fd <= highest; fd++)
    if (!is_kept(fd, kept)) close(fd);
  syscall(SYS_close_range, highest + 1, ~0u, 0);
}

pid_t fork_into(uint64_t flags, int cgroup, pid_t pid) {
  struct clone_args args;
  memset(&args, 0, sizeof args);
  args.flags = flags | (cgroup >= 0 ? CLONE_INTO_CGROUP : 0);
  args.exit_signal = SIGCHLD;
  args.cgroup = cgroup >= 0 ? (uint64_t)cgroup : 0;
  if (pid > 0) {
    args.set_tid = (uint64_t)(uintptr_t)&pid;
    args.set_tid_size = 1;
  }
  return (pid_t)syscall(SYS_clone3, &args, sizeof args);
}

int join_groups(const char *folders) {
  while (*folders != 0) {
    size_t length = strcspn(folders, "\n");
    char path[4096];
    int fd = -1;
    if (snprintf(path, sizeof path, "%.*s/cgroup.procs", (int)length, folders) < (int)sizeof path) fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0) return -1;
    int result = write_all(fd, "0", 1);
    close(fd);
    if (result < 0) return -1;
    folders += length + (folders[length] == '\n');
  }
  return 0;
}

/* What Docker leaves to a root inside, but for CAP_MKNOD: enough for a package manager and sudo, nothing that reaches the host's kernel. No device cgroup stands
 * between a node that is made inside and the host's disks. */
static const int kept_capabilities[] = {
    CAP_CHOWN,   CAP_DAC_OVERRIDE, CAP_FSETID,           CAP_FOWNER,     CAP_NET_RAW, CAP_SETGID,      CAP_SETUID,
    CAP_SETFCAP, CAP_SETPCAP,      CAP_NET_BIND_SERVICE, CAP_SYS_CHROOT, CAP_KILL,    CAP_AUDIT_WRITE,
};

int drop_capabilities(void) {
  uint64_t kept = 0;
  for (size_t i = 0; i < sizeof kept_capabilities / sizeof *kept_capabilities; i++) kept |= 1ull << kept_capabilities[i];
  for (int one = 0; prctl(PR_CAPBSET_READ, one) >= 0; one++)
    if (!(kept >> one & 1) && prctl(PR_CAPBSET_DROP, one) < 0 && errno != EPERM) return -1;
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct data[2];
  if (syscall(SYS_capget, &header, data) < 0) return -1;
  for (int half = 0; half < 2; half++) {
    uint32_t mask = (uint32_t)(kept >> (32 * half));
    data[half].effective &= mask;
    data[half].permitted &= mask;
    data[half].inheritable = 0;
  }
  return (int)syscall(SYS_capset, &header, data);
}
