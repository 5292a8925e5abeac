/* Makes the namespaces and the file system view of a sandbox. The owner decides everything; here the steps are only carried out, in the order given. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"

struct plan {
  int own_network;
  int init_cgroup;
  int tree_cgroup;
  const char *more_groups;
  const char *root_program;
  int new_privileges;
};

static int fail(struct launched *out, const char *step, const char *on) {
  out->error = errno == 0 ? EIO : errno;
  snprintf(out->what, sizeof out->what, "%s %s", step, on);
  return -1;
}

static unsigned long number(const char *text) { return strtoul(text, NULL, 0); }

static int raise_loopback(void) {
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  struct ifreq request;
  memset(&request, 0, sizeof request);
  strcpy(request.ifr_name, "lo");
  request.ifr_flags = IFF_UP | IFF_RUNNING;
  int result = ioctl(fd, SIOCSIFFLAGS, &request);
  close(fd);
  return result;
}

/* Inside of the new pid namespace: the file is the host's, the counter the writer's own. */
static int set_last_pid(const char *text) {
  int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  int result = write_all(fd, text, strlen(text));
  close(fd);
  return result;
}

static int enter_root(const char *folder) {
  if (chdir(folder) < 0) return -1;
  /* The old root ends up on top of the new one at "/" and is taken away from there: no folder is needed for it. */
  if (syscall(SYS_pivot_root, ".", ".") < 0) return -1;
  if (umount2(".", MNT_DETACH) < 0) return -1;
  return chdir("/");
}

/* What stands in the way keeps its content under another name. */
static int put_aside(int at, const char *name) {
  char aside[PATH_MAX];
  for (int i = 0; i < 100; i++) {
    if (snprintf(aside, sizeof aside, "%s.aside-%d", name, i) >= (int)sizeof aside) {
      errno = ENAMETOOLONG;
      return -1;
    }
    if (renameat2(at, name, at, aside, RENAME_NOREPLACE) == 0) return 0;
    if (errno != EEXIST) return -1;
  }
  return -1;
}

/* Makes the folder at `path` below `root`, and those above it. Follows no link. */
static int place_folder(const char *root, char *path) {
  int at = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
  char *rest = NULL;
  for (char *part = strtok_r(path, "/", &rest); part != NULL && at >= 0; part = strtok_r(NULL, "/", &rest)) {
    const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int next = openat(at, part, flags);
    if (next < 0 && errno == ENOTDIR && put_aside(at, part) == 0) errno = ENOENT;
    if (next < 0 && errno == ENOENT && mkdirat(at, part, 0755) == 0) next = openat(at, part, flags);
    int error = errno;
    close(at);
    errno = error;
    at = next;
  }
  if (at < 0) return -1;
  close(at);
  return 0;
}

static int make_node(char **args) {
  mode_t mode = (mode_t)number(args[1]);
  dev_t device = makedev(number(args[2]), number(args[3]));
  struct stat there;
  if (lstat(args[0], &there) == 0 && !(S_ISCHR(there.st_mode) && there.st_rdev == device) && put_aside(AT_FDCWD, args[0]) < 0) return -1;
  if (mknod(args[0], mode, device) < 0) return errno == EEXIST ? 0 : -1;
  return chmod(args[0], mode & 07777);
}

/* One step in the new namespaces; the number of its arguments, or -1. */
static int perform(const char *step, char **args, size_t left) {
#define NEEDS(n) \
  if (left < (n)) { \
    errno = EINVAL; \
    return -1; \
  }
  if (strcmp(step, "mount") == 0) { /* type source target flags data */
    NEEDS(5)
    const char *data = args[4][0] == 0 ? NULL : args[4];
    return mount(args[1], args[2], args[0], number(args[3]), data) < 0 ? -1 : 5;
  }
  if (strcmp(step, "mask") == 0) { /* path "folder"|"file": nothing is to be seen there, where there is anything */
    NEEDS(2)
    int folder = strcmp(args[1], "folder") == 0;
    int done = folder ? mount("tmpfs", args[0], "tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV, "size=4k,mode=000")
                      : mount("/dev/null", args[0], NULL, MS_BIND, NULL);
    return done < 0 && errno != ENOENT && errno != ENOTDIR ? -1 : 2;
  }
  if (strcmp(step, "place") == 0) { /* root path: a folder below the root, whatever links are there */
    NEEDS(2)
    return place_folder(args[0], args[1]) < 0 ? -1 : 2;
  }
  if (strcmp(step, "touch") == 0) { /* path */
    NEEDS(1)
    int fd = open(args[0], O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0 && put_aside(AT_FDCWD, args[0]) == 0) fd = open(args[0], O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return -1;
    close(fd);
    return 1;
  }
  if (strcmp(step, "mknod") == 0) { /* path mode major minor */
    NEEDS(4)
    return make_node(args) < 0 ? -1 : 4;
  }
  if (strcmp(step, "symlink") == 0) { /* target path */
    NEEDS(2)
    if (symlink(args[0], args[1]) < 0 && errno != EEXIST) return -1;
    return 2;
  }
  if (strcmp(step, "hostname") == 0) {
    NEEDS(1)
    return sethostname(args[0], strlen(args[0])) < 0 ? -1 : 1;
  }
  if (strcmp(step, "last-pid") == 0) {
    NEEDS(1)
    return set_last_pid(args[0]) < 0 ? -1 : 1;
  }
  if (strcmp(step, "root") == 0) {
    NEEDS(1)
    return enter_root(args[0]) < 0 ? -1 : 1;
  }
#undef NEEDS
  errno = EINVAL;
  return -1;
}

static void perform_all(struct launched *out, struct fields steps, size_t first) {
  for (size_t i = first; out->error == 0 && i < steps.count;) {
    const char *step = steps.item[i];
    int used = perform(step, steps.item + i + 1, steps.count - i - 1);
    size_t named = i + (strcmp(step, "mount") == 0 ? 3 : 1);
    if (used < 0)
      fail(out, step, named < steps.count ? steps.item[named] : "");
    else
      i += 1 + (size_t)used;
  }
}

static void become_init(struct fields steps, size_t first, const struct plan *plan, int lifeline, int report) {
  struct launched out = {0, 0, ""};
  /* The modes of the steps count, not the owner's umask. */
  umask(0);
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) fail(&out, "make private", "/");
  if (join_groups(plan->more_groups) < 0) fail(&out, "join", plan->more_groups);
  if (out.error == 0 && plan->own_network && raise_loopback() < 0) fail(&out, "raise", "lo");
  perform_all(&out, steps, first);
  write_all(report, &out, sizeof out);
  if (out.error != 0) _exit(1);
  const int kept[] = {lifeline, plan->tree_cgroup, -1};
  close_others(kept);
  run_init(lifeline, plan->tree_cgroup, plan->root_program, plan->new_privileges);
}

static int open_folder(const char *path) { return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC); }

/* Instructions: first the plan ("network" "own"|"host", "cgroups" INIT TREE MORE, "program" PATH or "" for none, "new"|"none" for the privileges that a program
 * may get), then the steps. */
struct launched launch(struct fields instructions) {
  struct launched out = {0, 0, ""};
  struct plan plan = {0, -1, -1, NULL, NULL, 0};
  int report[2] = {-1, -1};
  int lifeline[2] = {-1, -1};
  if (instructions.count < 9 || strcmp(instructions.item[0], "network") != 0 || strcmp(instructions.item[2], "cgroups") != 0 ||
      strcmp(instructions.item[6], "program") != 0) {
    errno = EINVAL;
    fail(&out, "read", "the plan");
    return out;
  }
  plan.own_network = strcmp(instructions.item[1], "own") == 0;
  plan.more_groups = instructions.item[5];
  plan.root_program = instructions.item[7][0] == 0 ? NULL : instructions.item[7];
  plan.new_privileges = strcmp(instructions.item[8], "new") == 0;
  plan.init_cgroup = open_folder(instructions.item[3]);
  if (plan.init_cgroup < 0) fail(&out, "open cgroup", instructions.item[3]);
  plan.tree_cgroup = out.error == 0 ? open_folder(instructions.item[4]) : -1;
  if (out.error == 0 && plan.tree_cgroup < 0) fail(&out, "open cgroup", instructions.item[4]);
  if (out.error == 0 && (pipe2(report, O_CLOEXEC) < 0 || pipe2(lifeline, O_CLOEXEC) < 0)) fail(&out, "make", "pipes");
  if (out.error == 0) {
    uint64_t flags = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC | (plan.own_network ? CLONE_NEWNET : 0);
    pid_t pid = fork_into(flags, plan.init_cgroup, 0);
    if (pid < 0) fail(&out, "make", "namespaces");
    if (pid == 0) {
      close(lifeline[1]);
      become_init(instructions, 9, &plan, lifeline[0], report[1]);
    }
    out.pid = pid;
  }
  close(report[1]);
  struct launched inside;
  if (out.error == 0 && read_all(report[0], &inside, sizeof inside) == 0 && inside.error != 0) {
    inside.pid = 0;
    waitpid(out.pid, NULL, 0);
    close(lifeline[1]);
    out = inside;
  } else if (out.error == 0) {
    /* The write end of the lifeline stays open in this process alone, and only its end closes it. */
    lifeline[1] = -1;
  }
  if (out.error != 0 && lifeline[1] >= 0) close(lifeline[1]);
  close(report[0]);
  close(lifeline[0]);
  close(plan.init_cgroup);
  close(plan.tree_cgroup);
  return out;
}

struct launched perform_inside(pid_t init, struct fields steps) {
  struct launched out = {0, 0, ""};
  int report[2] = {-1, -1};
  int namespaces = (int)syscall(SYS_pidfd_open, init, 0);
  if (namespaces < 0 || pipe2(report, O_CLOEXEC) < 0) fail(&out, "enter", "the sandbox");
  pid_t pid = out.error == 0 ? fork() : -1;
  if (out.error == 0 && pid < 0) fail(&out, "enter", "the sandbox");
  if (pid == 0) {
    if (setns(namespaces, CLONE_NEWNS) < 0) fail(&out, "enter", "the sandbox");
    perform_all(&out, steps, 0);
    write_all(report[1], &out, sizeof out);
    _exit(0);
  }
  close(report[1]);
  if (out.error == 0 && read_all(report[0], &out, sizeof out) < 0) fail(&out, "enter", "the sandbox");
  if (pid > 0) waitpid(pid, NULL, 0);
  close(report[0]);
  close(namespaces);
  return out;
}
