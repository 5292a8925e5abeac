/* Loaded into CRIU: memory that did not change since the dump before is not dumped again, on kernels without soft-dirty bits, which CRIU counts on
 * (criu/mem.c). Before it lets go of the processes, after a dump or a restore, their private pages are write-protected through userfaultfd in its asynchronous
 * mode (Linux 6.7): the kernel lifts the protection of a page at its first write, and PAGEMAP_SCAN tells the pages of which it was lifted. What is mapped later, a
 * child's memory, and all memory of a process of which the descriptor was closed, counts as written. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"

#if defined(__x86_64__)

/* linux/fs.h and linux/userfaultfd.h of 6.7; the C library's may be older. */
struct scan {
  uint64_t size, flags, start, end, walk_end, regions, region_count, page_count, inverted, all_of, any_of, returned;
};
struct region {
  uint64_t start, end, categories;
};
struct uffd_api {
  uint64_t api, features, ioctls;
};
struct uffd_register {
  uint64_t start, length, mode, ioctls;
};
enum { can_be_protected = 1 << 0, written = 1 << 1, of_file = 1 << 2, is_present = 1 << 3, swapped = 1 << 4, zero_page = 1 << 5, soft_dirty = 1 << 7 };
enum { protect_matching = 1 << 0 };
enum { register_write_protection = 1 << 1, user_mode_only = 1, api_number = 0xAA };
#define FEATURE_ASYNC (1ull << 15)
#define PAGEMAP_SCAN_REQUEST _IOWR('f', 16, struct scan)
#define UFFD_API_REQUEST _IOWR(0xAA, 0x3F, struct uffd_api)
#define UFFD_REGISTER_REQUEST _IOWR(0xAA, 0x00, struct uffd_register)

enum { channel = 3, most_new = 512, most_regions = 1024, most_processes = 4096 };

/* CRIU asks for soft-dirty bits; what is told instead has the same meaning to it. */
int ioctl(int fd, unsigned long request, ...) {
  va_list list;
  va_start(list, request);
  void *argument = va_arg(list, void *);
  va_end(list);
  struct scan *scan = argument;
  int asks = request == PAGEMAP_SCAN_REQUEST && (scan->returned & soft_dirty) != 0;
  if (asks) scan->returned = (scan->returned & ~(uint64_t)soft_dirty) | written;
  long result = syscall(SYS_ioctl, fd, request, argument);
  if (asks) scan->returned = (scan->returned & ~(uint64_t)written) | soft_dirty;
  struct region *region = asks ? (struct region *)(uintptr_t)scan->regions : NULL;
  /* What is not there any more of a file's private pages keeps a mark of its protection, and counts as swapped out: it holds what the file holds again. */
  const uint64_t changed = written | swapped;
  for (long i = 0; asks && i < result; i++)
    if ((region[i].categories & changed) != 0) region[i].categories = (region[i].categories & ~(uint64_t)written) | soft_dirty;
  return (int)result;
}

/* All is dumped, or restored. CRIU says so when everything still stands still (criu/cr-service.c). */
static int is_complete;

ssize_t write(int fd, const void *bytes, size_t length) {
  struct stat about;
  int says = length < 128 && (memmem(bytes, length, "post-dump", 9) != NULL || memmem(bytes, length, "pre-resume", 10) != NULL);
  if (says && fstat(fd, &about) == 0 && S_ISSOCK(about.st_mode)) is_complete = 1;
  return syscall(SYS_write, fd, bytes, length);
}

static int can_protect(void) {
  int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | user_mode_only);
  struct uffd_api api = {api_number, FEATURE_ASYNC, 0};
  int can = fd >= 0 && syscall(SYS_ioctl, fd, UFFD_API_REQUEST, &api) == 0;
  if (fd >= 0) close(fd);
  return can;
}

/* How CRIU finds out whether there are soft-dirty bits: it writes to a page of its own, and reads the page's entry (criu/kerndat.c). */
ssize_t read(int fd, void *bytes, size_t length) {
  ssize_t got = syscall(SYS_read, fd, bytes, length);
  char link[32], target[64];
  if (got != sizeof(uint64_t) || length != sizeof(uint64_t)) return got;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t size = readlink(link, target, sizeof target);
  if (size > 8 && (size_t)size < sizeof target && memcmp(target + size - 8, "/pagemap", 8) == 0 && can_protect()) *(uint64_t *)bytes |= 1ull << 55;
  return got;
}

struct mapping {
  uint64_t start, end;
};

struct memory {
  pid_t pid;
  int pagemap;
  uint64_t vdso;
  size_t vdso_size;
  /* Pages that no descriptor covers yet, and the mappings in which they lie. */
  struct region uncovered[most_regions];
  size_t uncovered_count;
  struct mapping news[most_new];
  size_t new_count;
};

#define ADDRESS_END 0x7ffffffff000

/* Looks at the pages that CRIU dumps, from `part->start` on; moves that to where the look ended. */
static long scan(const struct memory *memory, struct mapping *part, uint64_t flags, uint64_t present, uint64_t absent, struct region *found) {
  struct scan request = {
      .size = sizeof request,
      .flags = flags,
      .start = part->start,
      .end = part->end,
      .regions = (uintptr_t)found,
      .region_count = most_regions,
      .inverted = of_file | zero_page | absent,
      .all_of = of_file | zero_page | absent | present,
      .any_of = is_present | swapped,
      .returned = is_present,
  };
  long count = syscall(SYS_ioctl, memory->pagemap, PAGEMAP_SCAN_REQUEST, &request);
  part->start = request.walk_end;
  return count;
}

/* What a descriptor covers. Without a place for what is found the kernel would protect what is not there as well, and count it as swapped out from then on
 * (fs/proc/task_mmu.c). */
static void protect(const struct memory *memory) {
  static struct region found[most_regions];
  struct mapping part = {0, ADDRESS_END};
  while (part.start < part.end && scan(memory, &part, protect_matching, written | can_be_protected, 0, found) >= 0) {
  }
}

static void find_uncovered(struct memory *memory) {
  struct mapping part = {0, ADDRESS_END};
  long count = scan(memory, &part, 0, 0, can_be_protected, memory->uncovered);
  memory->uncovered_count = count < 0 ? 0 : (size_t)count;
}

static void take_mapping(struct memory *memory, const char *line) {
  struct mapping part;
  char flags[5];
  int name = 0;
  if (sscanf(line, "%lx-%lx %4s %*s %*s %*s %n", &part.start, &part.end, flags, &name) < 3 || name == 0) return;
  if (strcmp(line + name, "[vdso]") == 0) {
    memory->vdso = part.start;
    memory->vdso_size = part.end - part.start;
  }
  if (flags[3] != 'p' || strncmp(line + name, "[v", 2) == 0 || memory->new_count == most_new) return;
  for (size_t i = 0; i < memory->uncovered_count; i++)
    if (memory->uncovered[i].start < part.end && memory->uncovered[i].end > part.start) {
      memory->news[memory->new_count++] = part;
      return;
    }
}

static void find_new(struct memory *memory) {
  char path[32], line[512];
  snprintf(path, sizeof path, "/proc/%d/maps", memory->pid);
  FILE *maps = fopen(path, "re");
  if (maps == NULL) return;
  while (fgets(line, sizeof line, maps) != NULL) {
    size_t length = strlen(line);
    if (length > 0 && line[length - 1] == '\n') line[length - 1] = 0;
    /* The rest of a long path. */
    for (int next = 0; length > 0 && line[length - 1] != 0 && next != '\n' && next != EOF;) next = fgetc(maps);
    take_mapping(memory, line);
  }
  fclose(maps);
}

/* Where the process has an instruction that enters the kernel; 0 where it has none that can be told. */
static uint64_t find_entry(const struct memory *memory) {
  static unsigned char code[1 << 16];
  size_t size = memory->vdso_size < sizeof code ? memory->vdso_size : sizeof code;
  struct iovec to = {code, size}, from = {(void *)(uintptr_t)memory->vdso, size};
  if (size == 0 || process_vm_readv(memory->pid, &to, 1, &from, 1, 0) != (ssize_t)size) return 0;
  for (size_t i = 0; i + 1 < size; i++)
    if (code[i] == 0x0f && code[i + 1] == 0x05) return memory->vdso + i;
  return 0;
}

static long trace(int request, pid_t pid, void *address, void *data) { return syscall(SYS_ptrace, (long)request, (long)pid, address, data); }

/* Lets it run until it enters the kernel or leaves it. A signal that cannot be held back comes again afterwards. */
static int go_on(pid_t pid) {
  int status;
  if (trace(PTRACE_SYSCALL, pid, NULL, NULL) < 0) return -1;
  while (waitpid(pid, &status, __WALL) < 0)
    if (errno != EINTR) return -1;
  if (!WIFSTOPPED(status)) return -1;
  int signal = WSTOPSIG(status);
  if ((signal & 0x7f) == SIGTRAP && status >> 16 == 0) return 0;
  kill(pid, signal);
  return -1;
}

/* Lets the stopped process make one call. A single step would do too, but it takes away the handler of SIGTRAP where that is blocked or ignored. */
static long call_inside(pid_t pid, struct user_regs_struct registers, uint64_t entry, long number, uint64_t argument) {
  registers.rip = entry;
  registers.rax = (unsigned long)number;
  registers.orig_rax = (unsigned long)-1;
  registers.rdi = argument;
  if (trace(PTRACE_SETREGS, pid, NULL, &registers) < 0 || go_on(pid) < 0 || go_on(pid) < 0) return -1;
  if (trace(PTRACE_GETREGS, pid, NULL, &registers) < 0 || registers.rip != entry + 2) return -1;
  return (long)registers.rax;
}

/* A userfaultfd of the process, which is not left in it. -1 where there is none to be had. */
static int descriptor_of(const struct memory *memory) {
  struct user_regs_struct registers;
  uint64_t entry = find_entry(memory), mask, all = ~0ull;
  pid_t pid = memory->pid;
  if (entry == 0 || trace(PTRACE_GETREGS, pid, NULL, &registers) < 0) return -1;
  if (trace(PTRACE_GETSIGMASK, pid, (void *)sizeof mask, &mask) < 0 || trace(PTRACE_SETSIGMASK, pid, (void *)sizeof all, &all) < 0) return -1;
  long inside = call_inside(pid, registers, entry, SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | user_mode_only);
  int fd = -1;
  if (inside >= 0) {
    int process = (int)syscall(SYS_pidfd_open, pid, 0);
    if (process >= 0) fd = (int)syscall(SYS_pidfd_getfd, process, (int)inside, 0);
    if (process >= 0) close(process);
    call_inside(pid, registers, entry, SYS_close, (uint64_t)inside);
  }
  trace(PTRACE_SETREGS, pid, NULL, &registers);
  trace(PTRACE_SETSIGMASK, pid, (void *)sizeof mask, &mask);
  return fd;
}

/* The keeper holds it: when the last one is closed the kernel forgets what is protected. */
static int hand_over(const struct memory_owner *owner, int fd) {
  char space[CMSG_SPACE(sizeof fd)] = "";
  struct memory_message head = {.mark = MEMORY_MARK};
  struct iovec parts[] = {{&head, sizeof head}, {(void *)owner, sizeof *owner}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2, .msg_control = space, .msg_controllen = sizeof space};
  struct cmsghdr *about = CMSG_FIRSTHDR(&message);
  about->cmsg_level = SOL_SOCKET;
  about->cmsg_type = SCM_RIGHTS;
  about->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(about), &fd, sizeof fd);
  return sendmsg(channel, &message, MSG_NOSIGNAL) < 0 ? -1 : 0;
}

static void tell_left(const struct memory_owner *owners, size_t count) {
  struct memory_message head = {.mark = OWNERS_MARK};
  struct iovec parts[] = {{&head, sizeof head}, {(void *)owners, count * sizeof *owners}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
  sendmsg(channel, &message, MSG_NOSIGNAL);
}

/* The descriptor that the keeper held; -1 where there is none. */
static int held_of(const struct memory_owner *owner) {
  const char *text = getenv(MEMORY_VARIABLE);
  int fd, used;
  struct memory_owner held;
  for (; text != NULL && sscanf(text, "%d:%ld:%lu %n", &fd, &held.pid, &held.began, &used) == 3; text += used)
    if (held.pid == owner->pid && held.began == owner->began) return fd;
  return -1;
}

static int cover(const struct memory *memory, int fd) {
  for (size_t i = 0; i < memory->new_count; i++) {
    struct mapping part = memory->news[i];
    struct uffd_register request = {part.start, part.end - part.start, register_write_protection, 0};
    if (syscall(SYS_ioctl, fd, UFFD_REGISTER_REQUEST, &request) < 0 && i == 0) return -1;
  }
  return 0;
}

/* By one descriptor for all of a process's memory, so that neighbouring mappings become one again. One from before an exec is of no use any more. */
static void cover_new(const struct memory *memory, const struct memory_owner *owner) {
  int held = held_of(owner);
  if (held >= 0 && cover(memory, held) == 0) return;
  int fd = descriptor_of(memory);
  if (fd < 0) return;
  struct uffd_api api = {api_number, FEATURE_ASYNC, 0};
  if (syscall(SYS_ioctl, fd, UFFD_API_REQUEST, &api) == 0 && hand_over(owner, fd) == 0) cover(memory, fd);
  close(fd);
}

static uint64_t field(const char *status, const char *name, int base) {
  const char *at = strstr(status, name);
  return at == NULL ? 0 : strtoull(at + strlen(name), NULL, base);
}

/* Of a process, by the leader of its threads: what is told of it. "" where it is none, or CRIU does not hold it. */
static void read_status(pid_t pid, char *text, size_t size) {
  char path[32];
  snprintf(path, sizeof path, "/proc/%d/status", pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);
  if (fd >= 0) close(fd);
  text[got < 0 ? 0 : got] = 0;
  if (field(text, "\nTgid:", 10) != (uint64_t)pid || field(text, "\nTracerPid:", 10) != (uint64_t)getpid()) text[0] = 0;
}

/* It has nothing before it that a call would disturb: a stop, an end, a filter of system calls. */
static int is_ready(pid_t pid, const char *status) {
  const int stops[] = {SIGKILL, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU};
  uint64_t pending = field(status, "\nSigPnd:", 16) | field(status, "\nShdPnd:", 16), mask = 0;
  for (size_t i = 0; i < sizeof stops / sizeof *stops; i++) mask |= 1ull << (stops[i] - 1);
  siginfo_t stop;
  return field(status, "\nSeccomp:", 10) == 0 && (pending & mask) == 0 && trace(PTRACE_GETSIGINFO, pid, NULL, &stop) == 0;
}

/* In clock ticks since the machine started; 0 where that cannot be told. */
static uint64_t began(pid_t pid) {
  char path[32], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  text[got < 0 ? 0 : got] = 0;
  const char *at = strrchr(text, ')');
  uint64_t ticks = 0;
  if (at != NULL) sscanf(at + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %lu", &ticks);
  return ticks;
}

static void protect_process(const struct memory_owner *owner) {
  static struct memory memory;
  char path[32];
  memset(&memory, 0, sizeof memory);
  memory.pid = (pid_t)owner->pid;
  snprintf(path, sizeof path, "/proc/%d/pagemap", memory.pid);
  memory.pagemap = open(path, O_RDONLY | O_CLOEXEC);
  if (memory.pagemap < 0) return;
  find_uncovered(&memory);
  if (memory.uncovered_count > 0) find_new(&memory);
  if (memory.new_count > 0) cover_new(&memory, owner);
  protect(&memory);
  close(memory.pagemap);
}

/* All at once, while all stand still: who goes on first may write to the memory of the others. */
static void protect_all(void) {
  static struct memory_owner left[most_processes];
  char status[4096];
  size_t count = 0;
  DIR *processes = opendir("/proc");
  for (struct dirent *one; processes != NULL && count < most_processes && (one = readdir(processes)) != NULL;) {
    pid_t pid = atoi(one->d_name);
    if (pid <= 0) continue;
    read_status(pid, status, sizeof status);
    if (status[0] == 0) continue;
    left[count] = (struct memory_owner){pid, began(pid)};
    if (left[count].began != 0 && is_ready(pid, status)) protect_process(&left[count]);
    count++;
  }
  if (processes != NULL) closedir(processes);
  tell_left(left, count);
}

long ptrace(enum __ptrace_request request, ...) {
  static int is_done;
  va_list list;
  va_start(list, request);
  pid_t pid = va_arg(list, pid_t);
  void *address = va_arg(list, void *), *data = va_arg(list, void *);
  va_end(list);
  if (request == PTRACE_DETACH && is_complete && !is_done && getenv(MEMORY_VARIABLE) != NULL) {
    sigset_t child, before;
    is_done = 1;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, &before);
    protect_all();
    sigprocmask(SIG_SETMASK, &before, NULL);
  }
  /* Of the call itself it is where the word is put; of the C library's it is the result. */
  long word = 0;
  int peeks = request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER;
  long result = trace(request, pid, address, peeks ? (void *)&word : data);
  /* Killed by one that goes on already, it is gone as it would be a moment later: to CRIU that is the end of a whole restore. */
  if (request == PTRACE_DETACH && is_complete && result < 0 && errno == ESRCH) return 0;
  if (!peeks || result < 0) return result;
  errno = 0;
  return word;
}

#endif
