/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Whose a task is. Runs for each system call and each switch on the whole host: nothing but a few loads where no cgroup as deep is watched. */
#ifndef AGENTREWIND_OWNERS_H
#define AGENTREWIND_OWNERS_H

#include "maps.h"

INLINE u32 owner_of_number(u64 number) {
  u32 *slot = map_lookup(&cgroups, &number);
  return slot == NULL || *slot >= SLOTS ? OUTSIDE : *slot + 1;
}

INLINE bool is_tracer(struct task_struct *task) {
  u64 number = task->cgroups->dfl_cgrp->kn->id;
  u32 *slot = map_lookup(&cgroups, &number);
  return slot != NULL && *slot == TRACERS;
}

/* Stands still, but for calls that a known tracer makes with it. */
INLINE bool is_held(struct task_struct *task) { return task->ptrace != 0 && is_tracer(task->parent); }

INLINE u32 owner_of_current(void) {
  for (u32 i = 0; i < LEVELS && i < config.levels; i++) {
    u64 number = get_ancestor_cgroup(config.level[i]);
    if (number == 0) break;
    u32 owner = owner_of_number(number);
    if (owner != OUTSIDE) return owner;
  }
  return OUTSIDE;
}

INLINE u32 owner_of(struct task_struct *task) {
  if (config.levels == 0) return OUTSIDE;
  struct cgroup *group = task->cgroups->dfl_cgrp;
  u32 depth = group->level;
  for (u32 i = 0; i < LEVELS && i < config.levels; i++) {
    u32 level = config.level[i];
    if (level > depth) break;
    struct cgroup *at = group;
    if (level < depth) read_kernel(&at, sizeof(at), (void *)__builtin_preserve_access_index(&group->ancestors) + 8 * (u64)level);
    u32 owner = owner_of_number(READ(READ(at, kn), id));
    if (owner != OUTSIDE) return owner;
  }
  return OUTSIDE;
}

/* NULL where there is no room, which is counted. */
INLINE struct thread *thread_of(struct task_struct *task, u32 owner) {
  u64 key = (u64)task;
  struct thread *found = map_lookup(&threads, &key);
  if (found != NULL) {
    if (found->slot != owner - 1) found->slot = owner - 1;
    return found;
  }
  struct thread made = {.tid = task->pid, .slot = owner - 1};
  map_update(&threads, &key, &made, NO_EXIST);
  found = map_lookup(&threads, &key);
  if (found == NULL) count_lost(owner);
  return found;
}

INLINE void runs_on(u32 processor, u32 owner) {
  struct running *found = map_lookup(&running, &processor);
  if (found == NULL)
    count_lost(owner);
  else if (found->owner != owner)
    found->owner = owner;
}

#endif
