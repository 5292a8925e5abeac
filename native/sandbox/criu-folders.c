/* Loaded into CRIU: folders in which it makes and removes names for a moment keep their time of change. It does so for files that are open and have no name any more, at a
 * dump and at a restore (criu/files-reg.c), and a capture must not change what the tools can see. It works in no two such folders at once. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "criu-folders.h"

void look(struct kept *kept, int at, const char *path) {
  struct statx about;
  size_t length = strlen(path);
  kept->at = at;
  kept->is_known = 0;
  while (length > 1 && path[length - 1] == '/') length--;
  while (length > 0 && path[length - 1] != '/') length--;
  kept->name = path + length;
  if (length >= sizeof kept->folder) return;
  memcpy(kept->folder, length == 0 ? "." : path, length == 0 ? 1 : length);
  kept->folder[length == 0 ? 1 : length] = 0;
  if (syscall(SYS_statx, at, kept->folder, 0, STATX_MTIME | STATX_INO, &about) < 0) return;
  kept->times[0] = (struct timespec){0, UTIME_OMIT};
  kept->times[1] = (struct timespec){about.stx_mtime.tv_sec, about.stx_mtime.tv_nsec};
  kept->device[0] = about.stx_dev_major;
  kept->device[1] = about.stx_dev_minor;
  kept->inode = about.stx_ino;
  kept->is_known = 1;
}

int put_back(struct kept *kept, long result) {
  int error = errno;
  if (result >= 0 && kept->is_known) syscall(SYS_utimensat, kept->at, kept->folder, kept->times, 0);
  errno = error;
  return (int)result;
}

#define KEEPING(at, path, call)   \
  struct kept kept;               \
  look(&kept, at, path);          \
  return put_back(&kept, call)

int linkat(int from_at, const char *from, int at, const char *path, int flags) {
  KEEPING(at, path, syscall(SYS_linkat, from_at, from, at, path, flags));
}

int unlinkat(int at, const char *path, int flags) {
  struct kept kept;
  look(&kept, at, path);
  remember_socket(&kept, at, path);
  return put_back(&kept, syscall(SYS_unlinkat, at, path, flags));
}

int rename(const char *from, const char *path) {
  struct kept old;
  look(&old, AT_FDCWD, from);
  KEEPING(AT_FDCWD, path, put_back(&old, syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, path, 0)));
}

int unlink(const char *path) { KEEPING(AT_FDCWD, path, syscall(SYS_unlinkat, AT_FDCWD, path, 0)); }

int rmdir(const char *path) { KEEPING(AT_FDCWD, path, syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR)); }

int mkdirat(int at, const char *path, mode_t mode) { KEEPING(at, path, syscall(SYS_mkdirat, at, path, mode)); }

int mkdir(const char *path, mode_t mode) { KEEPING(AT_FDCWD, path, syscall(SYS_mkdirat, AT_FDCWD, path, mode)); }

int mknod(const char *path, mode_t mode, dev_t device) {
  KEEPING(AT_FDCWD, path, syscall(SYS_mknodat, AT_FDCWD, path, mode, (unsigned)device));
}

int symlink(const char *target, const char *path) { KEEPING(AT_FDCWD, path, syscall(SYS_symlinkat, target, AT_FDCWD, path)); }

int open64(const char *path, int flags, ...) {
  va_list list;
  va_start(list, flags);
  mode_t mode = (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(list, mode_t) : 0;
  va_end(list);
  if ((flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL)) return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
  KEEPING(AT_FDCWD, path, syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}
