/* What the parts of the sandbox's program share. One static program, three roles: the keeper beside the owner, the init (pid 1 of the sandbox), and the tree's
 * root below it, of which everything that the agent starts descends. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Frames between the owner and the keeper: u32 length of what follows, u32 id, u8 kind, payload; little endian. */
enum frame_kind {
  FRAME_START = 1,   /* -> strings: instructions, see launch.c */
  FRAME_CRIU = 2,    /* -> strings: init's pid, images, prefix, cgroup, more groups, first pid, library, whether it protects memory, command...; opens the channel of that id */
  FRAME_DATA = 3,    /* <-> one message of the channel's socket */
  FRAME_CLOSE = 4,   /* -> ends the channel's process; answered by FRAME_ENDED */
  FRAME_ENDED = 5,   /* <- i32 wait status: the channel's process or the init has ended */
  FRAME_STARTED = 6, /* <- i32 pid */
  FRAME_FAILED = 7,  /* <- i32 errno, text: what could not be done */
  FRAME_STEPS = 8,   /* -> strings: init's pid, steps carried out inside of its mount namespace; answered by FRAME_STARTED */
};

#define FRAME_LIMIT (1u << 20)

/* Whose memory a descriptor is about (criu-memory.c); numbers are the sandbox's. */
struct memory_owner {
  int64_t pid;
  uint64_t began;
};

/* On CRIU's channel, not for the owner: an owner, with its descriptor, which the keeper holds while the sandbox lives; or all owners that are left. */
struct memory_message {
  char mark[24];
  struct memory_owner owners[];
};

#define MEMORY_MARK "agentrewind-memory-of"
#define OWNERS_MARK "agentrewind-memory-left"
/* In CRIU's environment where memory is to be protected: "FD:PID:BEGAN " of each descriptor that is held. */
#define MEMORY_VARIABLE "AGENTREWIND_MEMORY"

/* The tree's root is the first process behind the init, and keeps its number through a restore. */
#define ROOT_PID 2

struct fields {
  char **item;
  size_t count;
};

/* NUL-terminated strings in `bytes`, which must outlive the result. */
struct fields split_fields(char *bytes, size_t length);

int read_all(int fd, void *bytes, size_t length);
int write_all(int fd, const void *bytes, size_t length);

/* All but the first three and those in `kept`, which ends with -1. */
void close_others(const int *kept);

/* Like fork, with the child in the cgroup whose directory `cgroup` is (-1: where the caller is), and with `pid` in its own namespace (0: any). */
pid_t fork_into(uint64_t flags, int cgroup, pid_t pid);

/* Puts the caller into the control groups (version 1) whose folders these are, a line each. */
int join_groups(const char *folders);

struct launched {
  pid_t pid;
  int error;
  char what[256];
};

/* Starts the init of a sandbox as the instructions say. `lifeline`: the init ends, and with it everything inside, when the other end of this pipe is closed. */
struct launched launch(struct fields instructions);

/* Carries out steps in the mount namespace of a sandbox that lives. */
struct launched perform_inside(pid_t init, struct fields steps);

/* Never return. */
void keep(int socket);
/* `root_program` NULL: no root is started. */
void run_init(int lifeline, int tree_cgroup, const char *root_program, int new_privileges) __attribute__((noreturn));
void run_root(const char *folder) __attribute__((noreturn));

/* Leaves what a root inside of a container usually has; the bounding set, so nothing inside gets the rest again. */
int drop_capabilities(void);
