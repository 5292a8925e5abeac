// A disk that remembers: serves IMAGE through FUSE as FOLDER/disk, logs every write and flush in order, runs a command, and ends with it.
// A write to FOLDER/mark is logged as a mark. Usage: recorder IMAGE LOG FOLDER COMMAND [ARGUMENT…]
//
// A record of the log: u32 kind (1 write, 2 flush, 3 mark), u32 length, u64 offset, then the bytes; little endian.
// Everything is mounted in a mount namespace of its own, so that the kernel unmounts it when the last process in it is gone.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { root_node = FUSE_ROOT_ID, disk_node = 2, mark_node = 3, request_size = 128 * 1024, buffer_size = request_size + 4096 };
enum { write_record = 1, flush_record = 2, mark_record = 3 };

static int device, image, journal;
static off_t image_size;
static char request[buffer_size], reply[request_size];

static void die(const char* what) {
  perror(what);
  exit(125);
}

static void record(uint32_t kind, uint64_t offset, const void* bytes, uint32_t length) {
  struct {
    uint32_t kind, length;
    uint64_t offset;
  } head = {kind, length, offset};
  struct iovec parts[] = {{&head, sizeof head}, {(void*)bytes, length}};
  if (writev(journal, parts, 2) != (ssize_t)(sizeof head + length)) die("log");
}

static void answer(uint64_t unique, int error, const void* body, size_t size) {
  struct fuse_out_header head = {sizeof head + size, -error, unique};
  struct iovec parts[] = {{&head, sizeof head}, {(void*)body, size}};
  // ENOENT: the request was given up meanwhile.
  if (writev(device, parts, 2) < 0 && errno != ENOENT) die("reply");
}

static void attributes(uint64_t node, struct fuse_attr* out) {
  memset(out, 0, sizeof *out);
  out->ino = node;
  out->mode = node == root_node ? S_IFDIR | 0700 : S_IFREG | 0600;
  out->nlink = 1;
  out->size = node == disk_node ? image_size : 0;
  out->blksize = 4096;
}

static void serve(const struct fuse_in_header* head, const char* body) {
  switch (head->opcode) {
    case FUSE_INIT: {
      // No write-back cache: a write is here before it is answered to the loop device.
      struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION, .minor = FUSE_KERNEL_MINOR_VERSION, .max_write = request_size};
      return answer(head->unique, 0, &out, sizeof out);
    }
    case FUSE_LOOKUP: {
      struct fuse_entry_out out = {.nodeid = !strcmp(body, "disk") ? disk_node : !strcmp(body, "mark") ? mark_node : 0};
      if (out.nodeid == 0) return answer(head->unique, ENOENT, NULL, 0);
      attributes(out.nodeid, &out.attr);
      return answer(head->unique, 0, &out, sizeof out);
    }
    case FUSE_GETATTR:
    case FUSE_SETATTR: {
      struct fuse_attr_out out = {0};
      attributes(head->nodeid, &out.attr);
      return answer(head->unique, 0, &out, sizeof out);
    }
    case FUSE_OPEN: {
      struct fuse_open_out out = {.open_flags = FOPEN_DIRECT_IO};
      return answer(head->unique, 0, &out, sizeof out);
    }
    case FUSE_READ: {
      const struct fuse_read_in* in = (const void*)body;
      ssize_t n = head->nodeid == disk_node ? pread(image, reply, in->size, in->offset) : 0;
      return n < 0 ? answer(head->unique, errno, NULL, 0) : answer(head->unique, 0, reply, n);
    }
    case FUSE_WRITE: {
      const struct fuse_write_in* in = (const void*)body;
      const char* bytes = body + sizeof *in;
      if (head->nodeid == disk_node && pwrite(image, bytes, in->size, in->offset) != in->size) die("image");
      record(head->nodeid == disk_node ? write_record : mark_record, in->offset, bytes, in->size);
      struct fuse_write_out out = {.size = in->size};
      return answer(head->unique, 0, &out, sizeof out);
    }
    case FUSE_FSYNC:
      if (head->nodeid == disk_node) record(flush_record, 0, NULL, 0);
      return answer(head->unique, 0, NULL, 0);
    case FUSE_STATFS: {
      struct fuse_statfs_out out = {.st = {.bsize = 4096, .frsize = 4096, .namelen = 255}};
      return answer(head->unique, 0, &out, sizeof out);
    }
    case FUSE_FLUSH:
    case FUSE_RELEASE:
      return answer(head->unique, 0, NULL, 0);
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
      return;
    default:
      return answer(head->unique, ENOSYS, NULL, 0);
  }
}

int main(int count, char** words) {
  if (count < 5) return 2;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  image = open(words[1], O_RDWR | O_CLOEXEC);
  journal = open(words[2], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  struct stat stat;
  if (image < 0 || journal < 0 || device < 0 || fstat(image, &stat) < 0) die("open");
  image_size = stat.st_size;
  if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0) die("namespace");
  char options[80];
  snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0", device);
  if (mount("recorder", words[3], "fuse", MS_NOSUID | MS_NODEV, options) < 0) die("mount");

  sigset_t ended;
  sigemptyset(&ended);
  sigaddset(&ended, SIGCHLD);
  sigprocmask(SIG_BLOCK, &ended, NULL);
  const int signals = signalfd(-1, &ended, SFD_CLOEXEC);
  const pid_t child = fork();
  if (child < 0 || signals < 0) die("fork");
  if (child == 0) {
    sigprocmask(SIG_UNBLOCK, &ended, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    execvp(words[4], words + 4);
    die(words[4]);
  }
  for (;;) {
    struct pollfd ready[] = {{device, POLLIN, 0}, {signals, POLLIN, 0}};
    if (poll(ready, 2, -1) < 0 && errno != EINTR) die("poll");
    if (ready[0].revents & POLLIN) {
      const ssize_t size = read(device, request, sizeof request);
      if (size < 0 && (errno == EINTR || errno == EAGAIN || errno == ENOENT)) continue;
      if (size < (ssize_t)sizeof(struct fuse_in_header)) die("request");
      const struct fuse_in_header* head = (const void*)request;
      serve(head, request + sizeof *head);
    } else if (ready[1].revents != 0) {
      int status;
      if (waitpid(child, &status, WNOHANG) == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 124;
    }
  }
}
