/* The root of the tree that is dumped and restored: starts what the owner asks for and writes down how it ended. All its talk goes through files and one named
 * pipe of the sandbox, so that nothing inside ever holds a descriptor to the outside.
 *
 * FOLDER/calls/ID holds of each command: argv, env (NUL-terminated strings), cwd, in (a file, or a named pipe; without it /dev/null), out, err; then pid, and done:
 * "exit N", "signal N" or "error ERRNO". `done` appears by rename when the command has ended. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"

enum { id_limit = 64, path_limit = 256 };

struct call {
  pid_t pid;
  char id[id_limit];
};

static const char *folder;
static struct call *calls;
static size_t call_count, call_room;

static void on_child(int signal) { (void)signal; }

static void path_of(char *path, const char *id, const char *name) { snprintf(path, path_limit, "%s/calls/%s/%s", folder, id, name); }

static void put_file(const char *id, const char *name, const char *text) {
  char unfinished[path_limit], path[path_limit];
  snprintf(unfinished, sizeof unfinished, "%s/calls/%s/.%s", folder, id, name);
  path_of(path, id, name);
  int fd = open(unfinished, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return;
  int written = write_all(fd, text, strlen(text));
  close(fd);
  if (written == 0) rename(unfinished, path);
}

static void put_number(const char *id, const char *name, const char *word, int number) {
  char text[64];
  snprintf(text, sizeof text, "%s%s%d\n", word, word[0] == 0 ? "" : " ", number);
  put_file(id, name, text);
}

/* The file with a NUL behind it; NULL and errno when it cannot be read. */
static char *get_file(const char *id, const char *name, size_t *length) {
  char path[path_limit];
  path_of(path, id, name);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat about;
  if (fd < 0 || fstat(fd, &about) < 0) {
    if (fd >= 0) close(fd);
    return NULL;
  }
  char *bytes = malloc((size_t)about.st_size + 1);
  if (bytes == NULL || read_all(fd, bytes, (size_t)about.st_size) < 0) {
    free(bytes);
    close(fd);
    errno = EIO;
    return NULL;
  }
  close(fd);
  bytes[about.st_size] = 0;
  *length = (size_t)about.st_size;
  return bytes;
}

static int open_stream(const char *id, const char *name, int target) {
  char path[path_limit];
  path_of(path, id, name);
  struct stat about;
  int fd;
  if (target != 0)
    fd = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
  else if (stat(path, &about) < 0)
    fd = open("/dev/null", O_RDONLY);
  else /* A named pipe is held open at both ends: it never ends for its reader. */
    fd = open(path, S_ISFIFO(about.st_mode) ? O_RDWR : O_RDONLY);
  if (fd < 0) return -1;
  if (fd != target) {
    if (dup2(fd, target) < 0) return -1;
    close(fd);
  }
  return 0;
}

static void become(const char *id, char *argv_bytes, size_t argv_length, char *env_bytes, size_t env_length, const char *cwd, int failed) {
  setsid();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  signal(SIGCHLD, SIG_DFL);
  struct fields argv = split_fields(argv_bytes, argv_length);
  struct fields env = split_fields(env_bytes, env_length);
  if (open_stream(id, "in", 0) == 0 && open_stream(id, "out", 1) == 0 && open_stream(id, "err", 2) == 0 && chdir(cwd) == 0) {
    environ = env.item;
    execvpe(argv.item[0], argv.item, env.item);
  }
  int error = errno;
  write_all(failed, &error, sizeof error);
  _exit(127);
}

static void remember(pid_t pid, const char *id) {
  if (call_count == call_room) {
    size_t room = call_room == 0 ? 16 : 2 * call_room;
    struct call *larger = realloc(calls, room * sizeof *calls);
    if (larger == NULL) return;
    calls = larger;
    call_room = room;
  }
  calls[call_count].pid = pid;
  snprintf(calls[call_count].id, id_limit, "%s", id);
  call_count++;
}

static void start(const char *id) {
  size_t argv_length = 0, env_length = 0, cwd_length = 0;
  char *argv = get_file(id, "argv", &argv_length);
  char *env = argv == NULL ? NULL : get_file(id, "env", &env_length);
  char *cwd = env == NULL ? NULL : get_file(id, "cwd", &cwd_length);
  int failed[2];
  int error = cwd == NULL ? errno : 0;
  if (error == 0 && argv_length == 0) error = EINVAL;
  if (error == 0 && pipe2(failed, O_CLOEXEC) < 0) error = errno;
  if (error == 0) {
    pid_t pid = fork();
    if (pid < 0) error = errno;
    if (pid == 0) become(id, argv, argv_length, env, env_length, cwd, failed[1]);
    close(failed[1]);
    if (pid > 0) {
      /* Ends with the exec. */
      if (read_all(failed[0], &error, sizeof error) < 0) error = 0;
      if (error == 0) {
        remember(pid, id);
        put_number(id, "pid", "", pid);
      } else
        waitpid(pid, NULL, 0);
    }
    close(failed[0]);
  }
  if (error != 0) put_number(id, "done", "error", error);
  free(argv);
  free(env);
  free(cwd);
}

static void reap(void) {
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    for (size_t i = 0; i < call_count; i++) {
      if (calls[i].pid != pid) continue;
      char id[id_limit];
      memcpy(id, calls[i].id, sizeof id);
      calls[i] = calls[--call_count];
      if (WIFSIGNALED(status))
        put_number(id, "done", "signal", WTERMSIG(status));
      else
        put_number(id, "done", "exit", WEXITSTATUS(status));
      break;
    }
  }
}

/* Lines: an id each. */
static void take_lines(int fd) {
  static char line[id_limit];
  static size_t length;
  char bytes[512];
  ssize_t got = read(fd, bytes, sizeof bytes);
  for (ssize_t i = 0; i < got; i++) {
    if (bytes[i] == '\n') {
      line[length < sizeof line ? length : 0] = 0;
      if (length > 0 && strchr(line, '/') == NULL && line[0] != '.') start(line);
      length = 0;
    } else if (length < sizeof line - 1)
      line[length++] = bytes[i];
  }
}

void run_root(const char *at) {
  char path[path_limit];
  folder = at;
  int null = open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3 && null >= 0; fd++) dup2(null, fd);
  if (null > 2) close(null);
  prctl(PR_SET_NAME, "agentrewind-root");
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  umask(022);
  sigset_t child, before;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, &before);
  struct sigaction action = {.sa_handler = on_child};
  sigaction(SIGCHLD, &action, NULL);
  snprintf(path, sizeof path, "%s/control", folder);
  int control = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (control < 0) _exit(126);
  for (;;) {
    struct pollfd wait = {control, POLLIN, 0};
    int ready = ppoll(&wait, 1, NULL, &before);
    reap();
    if (ready > 0) take_lines(control);
  }
}
