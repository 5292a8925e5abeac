/* Loaded into CRIU: a Unix socket's name keeps its time of change. A restore removes the names before it makes a process, and binds the sockets anew where they belong
 * (criu/sk-unix.c); what is remembered of the first is in the memory of those who do the second. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "criu-folders.h"

struct removed {
  struct removed *next;
  uint32_t device[2];
  uint64_t inode;
  struct timespec changed;
  char name[sizeof((struct sockaddr_un *)0)->sun_path + 1];
};

static struct removed *removed;

void remember_socket(const struct kept *kept, int at, const char *path) {
  struct statx about;
  if (!kept->is_known || strlen(kept->name) >= sizeof removed->name) return;
  if (syscall(SYS_statx, at, path, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_MTIME, &about) < 0 || !S_ISSOCK(about.stx_mode)) return;
  struct removed *one = malloc(sizeof *one);
  if (one == NULL) return;
  memcpy(one->device, kept->device, sizeof one->device);
  one->inode = kept->inode;
  one->changed = (struct timespec){about.stx_mtime.tv_sec, about.stx_mtime.tv_nsec};
  strcpy(one->name, kept->name);
  one->next = removed;
  removed = one;
}

int bind(int fd, const struct sockaddr *address, socklen_t length) {
  size_t head = offsetof(struct sockaddr_un, sun_path);
  const struct sockaddr_un *name = (const struct sockaddr_un *)address;
  if (address->sa_family != AF_UNIX || length <= head || length > sizeof *name || name->sun_path[0] == 0) return (int)syscall(SYS_bind, fd, address, length);
  char path[sizeof name->sun_path + 1] = "";
  memcpy(path, name->sun_path, length - head);
  struct kept kept;
  look(&kept, AT_FDCWD, path);
  int result = put_back(&kept, syscall(SYS_bind, fd, address, length)), error = errno;
  for (const struct removed *one = removed; result == 0 && kept.is_known && one != NULL; one = one->next) {
    if (one->inode != kept.inode || memcmp(one->device, kept.device, sizeof one->device) != 0 || strcmp(one->name, kept.name) != 0) continue;
    const struct timespec times[2] = {{0, UTIME_OMIT}, one->changed};
    syscall(SYS_utimensat, AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW);
    break;
  }
  errno = error;
  return result;
}
