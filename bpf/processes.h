/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Processes: when one is made, replaced, ended, moved, told something, and when one has a processor. */
#ifndef AGENTREWIND_PROCESSES_H
#define AGENTREWIND_PROCESSES_H

#include "places.h"

SEC("tp_btf/sched_switch")
int on_switch(u64 *context) {
  if (config.levels == 0) return 0;
  struct task_struct *next = ARGUMENT(context, 2, struct task_struct *);
  u32 owner = owner_of(next);
  runs_on(get_processor(), owner);
  if (owner == OUTSIDE) return 0;
  count(owner, COUNT_SCHEDULED);
  struct thread *thread = thread_of(next, owner);
  if (thread != NULL) add(&thread->scheduled, 1);
  return 0;
}

SEC("tp_btf/sched_process_fork")
int on_fork(u64 *context) {
  struct task_struct *child = ARGUMENT(context, 1, struct task_struct *);
  u32 parent = owner_of_current();
  u32 owner = owner_of(child);
  count(parent, COUNT_FORK);
  if (owner == OUTSIDE) return 0;
  if (owner != parent) count(owner, COUNT_FORK);
  thread_of(child, owner);
  return 0;
}

SEC("tp_btf/sched_process_exec")
int on_exec(u64 *context) {
  u32 owner = owner_of_current();
  if (owner == OUTSIDE) return 0;
  count(owner, COUNT_EXEC);
  struct task_struct *task = ARGUMENT(context, 0, struct task_struct *);
  struct thread *thread = thread_of(task, owner);
  /* A thread that is not the first takes over the first one's number. */
  if (thread != NULL) thread->tid = task->pid;
  return 0;
}

/* Set in the code of a process whose memory was written to a file when it ended. */
enum { DUMPED = 0x80 };

SEC("tp_btf/sched_process_exit")
int on_exit(u64 *context) {
  u32 owner = owner_of_current();
  if (owner == OUTSIDE) return 0;
  struct task_struct *task = ARGUMENT(context, 0, struct task_struct *);
  if (task->signal->group_exit_code & DUMPED) affect_path(task, owner, COUNT_WRITE);
  count(owner, COUNT_EXIT);
  struct thread *thread = thread_of(task, owner);
  if (thread == NULL) return 0;
  if (thread->begun) count(owner, COUNT_ENDED);
  if (thread->broken) count(owner, COUNT_TAKEN_UP);
  thread->broken = 0;
  thread->begun = 0;
  thread->ended = 1;
  return 0;
}

SEC("tp_btf/sched_process_free")
int on_free(u64 *context) {
  if (config.levels == 0) return 0;
  u64 key = context[0];
  map_delete(&threads, &key);
  return 0;
}

SEC("tp_btf/cgroup_attach_task")
int on_attach(u64 *context) {
  if (config.levels == 0) return 0;
  /* Not the cgroup that is told: it may be one of v1, whose numbers are others. */
  struct task_struct *task = ARGUMENT(context, 2, struct task_struct *);
  u32 owner = owner_of(task);
  u64 key = (u64)task;
  if (owner == OUTSIDE) {
    map_delete(&threads, &key);
    return 0;
  }
  count(owner, COUNT_ATTACHED);
  thread_of(task, owner);
  if (task->on_cpu) runs_on(task->thread_info.cpu, owner);
  return 0;
}

SEC("tp_btf/signal_generate")
int on_signal(u64 *context) {
  struct task_struct *task = ARGUMENT(context, 2, struct task_struct *);
  /* TRACE_SIGNAL_DELIVERED */
  if (config.levels == 0 || (u32)context[4] != 0) return 0;
  struct task_struct *sender = get_current();
  if (is_held(task) && (sender == task || is_tracer(sender))) return 0;
  count(owner_of(task), COUNT_SIGNAL);
  return 0;
}

#endif
