/* A folder in which CRIU makes or removes a name, and the time of change that it had before. */
#pragma once
#include <limits.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct kept {
  int at;
  int is_known;
  struct timespec times[2];
  /* What tells one folder from another, however it is reached. */
  uint32_t device[2];
  uint64_t inode;
  /* Of the path that was given. */
  const char *name;
  char folder[PATH_MAX];
};

#define INSIDE __attribute__((visibility("hidden")))

INSIDE void look(struct kept *kept, int at, const char *path);

/* Gives the result, and leaves errno, of the call before it. */
INSIDE int put_back(struct kept *kept, long result);

/* A socket's name is about to be removed; where the path is none's, nothing happens. */
INSIDE void remember_socket(const struct kept *kept, int at, const char *path);
