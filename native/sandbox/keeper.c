/* The keeper: a small process beside the owner (which is too large and has too many threads to fork). It makes sandboxes, starts CRIU inside of them and passes
 * its messages on. When the owner goes, it goes, and with it the sandbox. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"

enum { child_limit = 64, held_limit = 512, used_fds = 100, passed_fd = 64, images_fd = 9, prefix_fd = 8, library_fd = 7, criu_fd = 3 };

struct child {
  pid_t pid;
  pid_t init; /* of the sandbox that it belongs to */
  uint32_t id;
  int channel; /* -1: none (an init), or closed */
  int ended;
  int status;
};

static struct child children[child_limit];
static size_t child_count;
static int owner;

/* What is to stay open while a sandbox lives, of one of its processes (criu-memory.c). */
struct held {
  pid_t init;
  int fd;
  struct memory_owner owner;
};

static struct held held[held_limit];
static size_t held_count;

static void release(size_t index) {
  close(held[index].fd);
  held_count--;
  memmove(held + index, held + index + 1, (held_count - index) * sizeof *held);
}

/* Each is open twice while CRIU runs. */
static size_t most_held(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur < 2 * used_fds) return 0;
  return limit.rlim_cur > 2 * (held_limit + used_fds) ? held_limit : limit.rlim_cur / 2 - used_fds;
}

static int is_same(const struct memory_owner *one, const struct memory_owner *other) { return one->pid == other->pid && one->began == other->began; }

/* Without the oldest one memory is only dumped again that did not change. */
static void hold(pid_t init, struct memory_owner owner, int fd) {
  for (size_t i = held_count; i-- > 0;)
    if (held[i].init == init && is_same(&held[i].owner, &owner)) release(i);
  if (held_count > 0 && held_count >= most_held()) release(0);
  held[held_count++] = (struct held){init, fd, owner};
}

static void release_but(pid_t init, const struct memory_owner *left, size_t count) {
  for (size_t i = held_count; i-- > 0;) {
    if (held[i].init != init) continue;
    size_t at = 0;
    while (at < count && !is_same(&held[i].owner, left + at)) at++;
    if (at == count) release(i);
  }
}

/* False where the message is CRIU's own. Takes the descriptor. */
static int take_memory(pid_t init, const char *bytes, size_t length, int fd) {
  const struct memory_message *message = (const struct memory_message *)bytes;
  if (length < sizeof *message) return 0;
  size_t count = (length - sizeof *message) / sizeof *message->owners;
  if (memcmp(message->mark, MEMORY_MARK, sizeof MEMORY_MARK) == 0) {
    if (fd >= 0 && count == 1) hold(init, message->owners[0], fd);
    return 1;
  }
  if (memcmp(message->mark, OWNERS_MARK, sizeof OWNERS_MARK) != 0) return 0;
  release_but(init, message->owners, count);
  return 1;
}

static void put_frame(uint32_t id, uint8_t kind, const void *payload, size_t length, const void *more, size_t more_length) {
  unsigned char head[9];
  uint32_t total = (uint32_t)(5 + length + more_length);
  memcpy(head, &total, 4);
  memcpy(head + 4, &id, 4);
  head[8] = kind;
  if (write_all(owner, head, sizeof head) < 0 || write_all(owner, payload, length) < 0 || write_all(owner, more, more_length) < 0) _exit(0);
}

static void put_failed(uint32_t id, int error, const char *what) {
  int32_t number = error;
  put_frame(id, FRAME_FAILED, &number, sizeof number, what, strlen(what));
}

static void put_started(uint32_t id, pid_t pid) {
  int32_t number = pid;
  put_frame(id, FRAME_STARTED, &number, sizeof number, NULL, 0);
}

static void remember(pid_t pid, pid_t init, uint32_t id, int channel) {
  struct child one = {pid, init, id, channel, 0, 0};
  children[child_count++] = one;
}

/* What the process said last is passed on before its end. */
static void forget_ended(void) {
  for (size_t i = 0; i < child_count;) {
    if (!children[i].ended || children[i].channel >= 0) {
      i++;
      continue;
    }
    if (children[i].pid == children[i].init) release_but(children[i].init, NULL, 0);
    int32_t status = children[i].status;
    put_frame(children[i].id, FRAME_ENDED, &status, sizeof status, NULL, 0);
    children[i] = children[--child_count];
  }
}

static void reap(void) {
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
    for (size_t i = 0; i < child_count; i++)
      if (children[i].pid == pid) {
        children[i].ended = 1;
        children[i].status = status;
      }
}

static void start(uint32_t id, struct fields instructions) {
  if (child_count == child_limit) return put_failed(id, EAGAIN, "start one more");
  struct launched out = launch(instructions);
  if (out.error != 0) return put_failed(id, out.error, out.what);
  remember(out.pid, out.pid, id, -1);
  put_started(id, out.pid);
}

static int move_to(int fd, int target) {
  if (fd == target) return fcntl(fd, F_SETFD, 0);
  return dup2(fd, target) < 0 ? -1 : 0;
}

struct criu_place {
  pid_t init;
  int init_fd;
  int socket, prefix, images, library, cgroup;
  const char *groups;
  pid_t pid;
  int tracks;
};

/* Above the numbers that CRIU's own are given. How many. */
static size_t pass_held(pid_t init, int *kept) {
  static char text[held_limit * 64];
  size_t length = 0, count = 0;
  for (size_t i = 0; i < held_count; i++) {
    int fd = held[i].init == init ? fcntl(held[i].fd, F_DUPFD, passed_fd) : -1;
    if (fd < 0) continue;
    kept[count++] = fd;
    length += (size_t)snprintf(text + length, sizeof text - length, "%d:%lld:%llu ", fd, (long long)held[i].owner.pid, (unsigned long long)held[i].owner.began);
  }
  setenv(MEMORY_VARIABLE, text, 1);
  return count;
}

/* In the sandbox's mount, pid and network namespaces, in the host's others: those are what CRIU then takes for its own, and leaves alone. */
static void become_criu(const struct criu_place *place, char **command) {
  /* Out of the way of the numbers that are about to be given out. */
  int high_socket = fcntl(place->socket, F_DUPFD_CLOEXEC, 20), high_prefix = fcntl(place->prefix, F_DUPFD_CLOEXEC, 20);
  int high_images = fcntl(place->images, F_DUPFD_CLOEXEC, 20), high_cgroup = fcntl(place->cgroup, F_DUPFD_CLOEXEC, 20);
  int high_library = place->library < 0 ? -1 : fcntl(place->library, F_DUPFD_CLOEXEC, 20);
  if (join_groups(place->groups) < 0) _exit(126);
  if (setns(place->init_fd, CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET) < 0) _exit(125);
  pid_t inside = fork_into(0, high_cgroup, place->pid);
  if (inside < 0) _exit(124);
  if (inside > 0) {
    /* What it still holds would keep sandboxes alive behind their keeper's end, and this one's socket open. */
    const int none[] = {-1};
    close_others(none);
    /* The child is in another pid namespace: this process waits for it in the keeper's. */
    int status;
    while (waitpid(inside, &status, 0) < 0 && errno == EINTR) {
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
  setsid();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < 3; fd++) dup2(null, fd);
  static int kept[5 + held_limit];
  clearenv();
  size_t passed = place->tracks ? pass_held(place->init, kept) : 0;
  if (move_to(high_socket, criu_fd) < 0 || move_to(high_prefix, prefix_fd) < 0 || move_to(high_images, images_fd) < 0) _exit(123);
  if (high_library >= 0 && (move_to(high_library, library_fd) < 0 || setenv("LD_PRELOAD", "/proc/self/fd/7", 1) < 0)) _exit(121);
  const int own[] = {criu_fd, prefix_fd, images_fd, high_library < 0 ? criu_fd : library_fd, -1};
  memcpy(kept + passed, own, sizeof own);
  close_others(kept);
  setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
  execv(command[0], command);
  _exit(122);
}

/* Strings: the init's pid, the images folder, the prefix, the cgroup, more groups, the pid inside (0: any), a library to load into it ("": none), whether that is to protect memory ("": no), the
 * command. */
static void start_criu(uint32_t id, struct fields given) {
  if (given.count < 9) return put_failed(id, EINVAL, "read the request");
  if (child_count == child_limit) return put_failed(id, EAGAIN, "start one more");
  int init = (int)syscall(SYS_pidfd_open, atoi(given.item[0]), 0);
  int images = open(given.item[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int prefix = open(given.item[2], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int cgroup = open(given.item[3], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int library = given.item[6][0] == 0 ? -1 : open(given.item[6], O_RDONLY | O_CLOEXEC);
  int pair[2] = {-1, -1};
  pid_t pid = -1;
  if (init >= 0 && images >= 0 && prefix >= 0 && cgroup >= 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0) {
    pid = fork();
    if (pid == 0) {
      const struct criu_place place = {
          .init = atoi(given.item[0]),
          .init_fd = init,
          .socket = pair[1],
          .prefix = prefix,
          .images = images,
          .library = library,
          .cgroup = cgroup,
          .groups = given.item[4],
          .pid = atoi(given.item[5]),
          .tracks = given.item[7][0] != 0,
      };
      become_criu(&place, given.item + 8);
    }
  }
  int error = errno;
  close(init);
  close(images);
  close(prefix);
  close(cgroup);
  close(library);
  close(pair[1]);
  if (pid < 0) {
    close(pair[0]);
    return put_failed(id, error, "start CRIU");
  }
  remember(pid, atoi(given.item[0]), id, pair[0]);
  put_started(id, pid);
}

static void change(uint32_t id, struct fields given) {
  struct launched out = {0, EINVAL, "read the steps"};
  if (given.count > 0) {
    struct fields steps = {given.item + 1, given.count - 1};
    out = perform_inside(atoi(given.item[0]), steps);
  }
  if (out.error != 0) return put_failed(id, out.error, out.what);
  put_started(id, 0);
}

static struct child *channel_of(uint32_t id) {
  for (size_t i = 0; i < child_count; i++)
    if (children[i].id == id) return &children[i];
  return NULL;
}

static void close_channel(struct child *one) {
  if (one->channel >= 0) close(one->channel);
  one->channel = -1;
}

/* CRIU is the only child of the process that waits for it. That one must outlive it: else the host's first process is who reaps it, when it gets to it, and the
 * sandbox's pid namespace lasts as long. */
static void end_child(uint32_t id) {
  struct child *one = channel_of(id);
  if (one == NULL) return;
  close_channel(one);
  if (!one->ended) {
    char path[64], text[64];
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", one->pid, one->pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    if (got > 0) {
      text[got] = 0;
      int inside = atoi(text);
      if (inside > 0) kill(inside, SIGKILL);
    }
  }
}

static void take_frame(void) {
  static char *bytes;
  unsigned char head[9];
  uint32_t total, id;
  if (read_all(owner, head, sizeof head) < 0) _exit(0);
  memcpy(&total, head, 4);
  memcpy(&id, head + 4, 4);
  if (total < 5 || total > FRAME_LIMIT) _exit(1);
  size_t length = total - 5;
  free(bytes);
  bytes = malloc(length + 1);
  if (bytes == NULL || read_all(owner, bytes, length) < 0) _exit(0);
  bytes[length] = 0;
  struct child *one;
  struct fields given;
  switch (head[8]) {
    case FRAME_START:
      given = split_fields(bytes, length);
      start(id, given);
      free(given.item);
      break;
    case FRAME_CRIU:
      given = split_fields(bytes, length);
      start_criu(id, given);
      free(given.item);
      break;
    case FRAME_STEPS:
      given = split_fields(bytes, length);
      change(id, given);
      free(given.item);
      break;
    case FRAME_DATA:
      one = channel_of(id);
      if (one != NULL && one->channel >= 0) send(one->channel, bytes, length, MSG_NOSIGNAL);
      break;
    case FRAME_CLOSE:
      end_child(id);
      break;
    default:
      _exit(1);
  }
}

/* False when there is nothing more. */
static int pass_on(struct child *one) {
  static char message[FRAME_LIMIT - 16] __attribute__((aligned(8)));
  char space[CMSG_SPACE(sizeof(int))];
  struct iovec part = {message, sizeof message};
  struct msghdr about = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
  ssize_t got = recvmsg(one->channel, &about, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  struct cmsghdr *head = got > 0 ? CMSG_FIRSTHDR(&about) : NULL;
  int fd = -1;
  if (head != NULL && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS) memcpy(&fd, CMSG_DATA(head), sizeof fd);
  if (got > 0 && take_memory(one->init, message, (size_t)got, fd)) return 1;
  if (fd >= 0) close(fd);
  if (got > 0) {
    put_frame(one->id, FRAME_DATA, message, (size_t)got, NULL, 0);
    return 1;
  }
  if (got == 0 || (errno != EINTR && errno != EAGAIN)) close_channel(one);
  return 0;
}

/* The end of a process is the end of its channel, whoever still holds the other end: CRIU leaves helpers behind where a restore fails. */
static void end_channels(void) {
  for (size_t i = 0; i < child_count; i++) {
    if (!children[i].ended) continue;
    while (children[i].channel >= 0 && pass_on(&children[i])) {
    }
    close_channel(&children[i]);
  }
}

void keep(int socket) {
  owner = socket;
  /* Of a session of its own: the owner's terminal does not end it before the owner. */
  setsid();
  signal(SIGPIPE, SIG_IGN);
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, NULL);
  int ended = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  fcntl(owner, F_SETFD, FD_CLOEXEC);
  for (;;) {
    struct pollfd wait[2 + child_limit] = {{owner, POLLIN, 0}, {ended, POLLIN, 0}};
    uint32_t ids[child_limit];
    size_t count = child_count;
    for (size_t i = 0; i < count; i++) {
      wait[2 + i].fd = children[i].channel;
      wait[2 + i].events = POLLIN;
      ids[i] = children[i].id;
    }
    if (poll(wait, 2 + count, -1) < 0 && errno != EINTR) _exit(1);
    struct signalfd_siginfo about;
    while (read(ended, &about, sizeof about) == (ssize_t)sizeof about) {
    }
    reap();
    for (size_t i = 0; i < count; i++) {
      struct child *one = wait[2 + i].revents == 0 ? NULL : channel_of(ids[i]);
      if (one != NULL && one->channel >= 0) pass_on(one);
    }
    if (wait[0].revents != 0) take_frame();
    end_channels();
    forget_ended();
  }
}
