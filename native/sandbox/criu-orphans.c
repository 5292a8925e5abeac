/* Loaded into CRIU: children whose session's leader has gone come back below the tree's root. CRIU makes such a session through a helper that ends before the processes go on,
 * and takes for granted that its root, as the first process of a namespace, gets the helper's children; that the root is their reaper is set only when it goes on
 * (criu/pstree.c, prepare_pstree_ids; criu/pie/restorer.c). Below the namespace's first process they would be outside of the tree, and in no image any more. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "program.h"

/* The root makes its session before it makes a child. */
pid_t setsid(void) {
  pid_t session = (pid_t)syscall(SYS_setsid);
  int error = errno;
  if (session == ROOT_PID) prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  errno = error;
  return session;
}
