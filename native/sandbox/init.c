/* pid 1 of a sandbox: reaps what nobody waits for, and ends everything inside when its keeper has gone. It holds no state, so it is never dumped. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"

static void on_child(int signal) { (void)signal; }

/* In System V, host name and time namespaces of its own: these are part of the image, where those of the init are what CRIU comes from. The clocks of the tree go
 * on behind a restore from where they were, so it has its own from the beginning. */
static void start_root(int cgroup, const char *program, int new_privileges) {
  pid_t pid = fork_into(CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWTIME, cgroup, 0);
  if (pid != 0) return;
  const int kept[] = {-1};
  setsid();
  close_others(kept);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  signal(SIGCHLD, SIG_DFL);
  signal(SIGPIPE, SIG_DFL);
  if (!new_privileges && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) _exit(127);
  if (drop_capabilities() == 0) execl(program, "agentrewind-root", "root", (char *)NULL);
  _exit(127);
}

void run_init(int lifeline, int tree_cgroup, const char *root_program, int new_privileges) {
  int null = open("/dev/null", O_RDWR);
  for (int fd = 0; fd < 3 && null >= 0; fd++) dup2(null, fd);
  if (null > 2) close(null);
  prctl(PR_SET_NAME, "agentrewind-init");
  /* The keeper, whose copy this is, has it blocked for good. */
  sigset_t child, none;
  sigemptyset(&none);
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, NULL);
  struct sigaction action = {.sa_handler = on_child};
  sigaction(SIGCHLD, &action, NULL);
  if (root_program != NULL) start_root(tree_cgroup, root_program, new_privileges);
  close(tree_cgroup);
  for (;;) {
    struct pollfd wait = {lifeline, POLLIN, 0};
    int ready = ppoll(&wait, 1, NULL, &none);
    /* Without its root nothing can be started any more: the owner makes another sandbox on the same files. */
    for (pid_t pid; (pid = waitpid(-1, NULL, WNOHANG)) > 0;)
      if (pid == ROOT_PID) _exit(0);
    if (ready > 0) _exit(0);
  }
}
