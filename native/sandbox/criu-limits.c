/* Loaded into CRIU where it may not ask for the limits of another user's process: the kernel demands CAP_SYS_RESOURCE for that, which containers seldom give, and
 * tells the same in a file. A library of its own, that needs next to nothing of the C library: it may be another one's than that of the machine that built it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Lines of /proc/PID/limits, which have the order of the numbers but for these two (fs/proc/base.c). */
static const char *const lines[] = {
    "Max cpu time", "Max file size", "Max data size", "Max stack size", "Max core file size", "Max resident set", "Max processes", "Max open files",
    "Max locked memory", "Max address space", "Max file locks", "Max pending signals", "Max msgqueue size", "Max nice priority", "Max realtime priority", "Max realtime timeout",
};

enum { name_width = 26 };

static const char *take_number(const char *text, rlim64_t *number) {
  while (*text == ' ') text++;
  if (strncmp(text, "unlimited", 9) == 0) {
    *number = RLIM64_INFINITY;
    return text + 9;
  }
  *number = 0;
  for (; *text >= '0' && *text <= '9'; text++) *number = *number * 10 + (rlim64_t)(*text - '0');
  return text;
}

static int read_limit(pid_t pid, unsigned resource, struct rlimit64 *limit) {
  char path[32] = "/proc/", digits[12], text[4096];
  size_t count = 0, end = 6;
  for (pid_t rest = pid; rest > 0; rest /= 10) digits[count++] = (char)('0' + rest % 10);
  while (count > 0) path[end++] = digits[--count];
  memcpy(path + end, "/limits", 8);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  if (got <= 0) return -1;
  text[got] = 0;
  const char *line = strstr(text, lines[resource]);
  if (line == NULL || strlen(line) < name_width) return -1;
  take_number(take_number(line + name_width, &limit->rlim_cur), &limit->rlim_max);
  return 0;
}

#if defined(__x86_64__)
static long call_kernel(long number, const long args[6]) {
  long result;
  register long r10 __asm__("r10") = args[3];
  register long r8 __asm__("r8") = args[4];
  register long r9 __asm__("r9") = args[5];
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(args[0]), "S"(args[1]), "d"(args[2]), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
static long call_kernel(long number, const long args[6]) {
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = args[0];
  register long x1 __asm__("x1") = args[1];
  register long x2 __asm__("x2") = args[2];
  register long x3 __asm__("x3") = args[3];
  register long x4 __asm__("x4") = args[4];
  register long x5 __asm__("x5") = args[5];
  __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}
#else
#error "system calls of this processor are not known here"
#endif

/* CRIU asks by number (criu/cr-dump.c, dump_task_rlimits). */
long syscall(long number, ...) {
  long args[6];
  va_list list;
  va_start(list, number);
  for (int i = 0; i < 6; i++) args[i] = va_arg(list, long);
  va_end(list);
  long result = call_kernel(number, args);
  struct rlimit64 *limit = (struct rlimit64 *)args[3];
  unsigned long resource = (unsigned long)args[1];
  int asks = number == SYS_prlimit64 && args[2] == 0 && limit != NULL && resource < sizeof lines / sizeof *lines;
  if (result == -EPERM && asks && read_limit((pid_t)args[0], (unsigned)resource, limit) == 0) result = 0;
  if (result < 0 && result > -4096) {
    errno = (int)-result;
    return -1;
  }
  return result;
}
