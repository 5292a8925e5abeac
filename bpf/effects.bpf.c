/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* System calls: effects on files, by the tasks of watched cgroups, and by all others on watched devices. */
#include "calls.h"
#include "inodes.h"
#include "processes.h"
#include "rings.h"
#include "sockets.h"

/* Calls that change a file step by step: while one is under way its effect may be there in part, though it is not counted yet. */
INLINE bool takes_time(struct pt_regs *regs, bool compat, u8 call, const struct place *place) {
  u8 kind = call & 31;
  switch (kind) {
    case SIZE_PATH:
    case NAME:
    case META:
    case MOUNT:
      return true;
    case KIND_OPEN:
    case CREAT:
    case OPENAT2:
      return open_flags(regs, compat, call) & (CREATE | TRUNCATE);
    case KIND_WRITE:
    case KIND_SIZE:
    case KIND_META_FD:
      break;
    case KIND_IOCTL:
      if (is_harmless(argument_of(regs, compat, 1))) return false;
      break;
    default:
      return false;
  }
  return place->state == PLACE_UNKNOWN || (place->state == PLACE_FILE && (place->mode & KIND_MASK) != FIFO);
}

SEC("tp_btf/sys_enter")
int on_call(u64 *context) {
  u32 owner = owner_of_current();
  if (owner == OUTSIDE) return 0;
  struct task_struct *task = get_current();
  struct thread *thread = thread_of(task, owner);
  if (thread == NULL) return 0;
  thread->used = is_held(task);
  if (thread->used) return 0;
  if (thread->broken) {
    thread->broken = 0;
    /* The same call again, as if nothing had been. */
    if (thread->call != (u32)context[1] + 1) count(owner, COUNT_RETURNED);
    count(owner, COUNT_TAKEN_UP);
  }
  struct pt_regs *regs = ARGUMENT(context, 0, struct pt_regs *);
  bool compat = task->thread_info.status & COMPAT;
  u32 number = context[1];
  u8 call = call_of(number, compat);
  thread->call = number + 1;
  thread->compat = compat;
  if (call == NONE || call == UNKNOWN) return 0;
  struct place place = {.state = PLACE_UNKNOWN};
  if (has_descriptor(call & 31)) place = place_of(file_of(task, argument_of(regs, compat, call >> 5)));
  thread->place = place;
  if (takes_time(regs, compat, call, &place)) {
    thread->begun = 1;
    count(owner, COUNT_BEGUN);
  }
  return 0;
}

INLINE void look_at_opened(struct task_struct *task, struct pt_regs *regs, bool compat, u8 call, u32 owner, long fd) {
  u32 flags = open_flags(regs, compat, call);
  u32 changing = WRITE_ONLY | READ_WRITE | TRUNCATE;
  if (!(flags & (changing | CREATE))) return;
  struct file *file = file_of(task, fd);
  struct place place = place_of(file);
  if (place.state == PLACE_NO_FILE || (place.state == PLACE_FILE && (place.mode & KIND_MASK) == FIFO)) return;
  if ((flags & changing) || file == NULL || (READ(file, f_mode) & CREATED)) affect(owner, COUNT_OPEN, &place);
}

INLINE void look_at_result(struct task_struct *task, struct pt_regs *regs, bool compat, u8 call, u32 owner, long result,
                           const struct place *place) {
  switch (call & 31) {
    case KIND_WRITE:
      if (result > 0 && place->state != PLACE_NO_FILE) affect(owner, COUNT_WRITE, place);
      break;
    case KIND_SIZE:
      if (place->state != PLACE_NO_FILE) affect(owner, COUNT_WRITE, place);
      break;
    case SIZE_PATH:
      affect_path(task, owner, COUNT_WRITE);
      break;
    case KIND_OPEN:
    case CREAT:
    case OPENAT2:
      look_at_opened(task, regs, compat, call, owner, result);
      break;
    case NAME:
      affect_path(task, owner, COUNT_NAME);
      break;
    case META:
      affect_path(task, owner, COUNT_META);
      break;
    case KIND_META_FD:
      if (place->state != PLACE_NO_FILE) affect(owner, COUNT_META, place);
      break;
    case KIND_IOCTL:
      if (place->state != PLACE_NO_FILE && !is_harmless(argument_of(regs, compat, 1))) affect(owner, COUNT_WRITE, place);
      break;
    case KIND_MMAP:
      if (maps_shared(regs, compat) && place->state != PLACE_NO_FILE) affect(owner, COUNT_MAP, place);
      break;
    case PROTECT:
      look_at_protected(task, regs, compat, owner);
      break;
    case BIND:
      if (binds_file(regs, compat)) affect_path(task, owner, COUNT_NAME);
      break;
    case ADVISE:
      /* MADV_REMOVE punches a hole into what is mapped. */
      if (argument_of(regs, compat, 2) == 9) affect(owner, COUNT_WRITE, place);
      break;
    case AIO:
      if (result > 0) affect(owner, COUNT_AIO, place);
      break;
    case MOUNT:
      count(owner, COUNT_MOUNT);
      break;
    case IPC:
      count(owner, COUNT_IPC);
      break;
    case PEER:
      count(owner, COUNT_PEER);
      break;
    case RING:
      count(owner, COUNT_URING);
      break;
    case UNKNOWN:
      count(owner, COUNT_UNKNOWN);
      break;
  }
}

INLINE void end_call(struct pt_regs *regs, long result, u32 owner, struct thread *thread) {
  struct task_struct *task = get_current();
  bool known = thread != NULL && thread->call != 0;
  bool compat = known ? thread->compat : task->thread_info.status & COMPAT;
  u8 call = call_of(known ? thread->call - 1 : (u32)regs->orig_ax, compat);
  if (call == NONE || result < 0) return;
  struct place place = {.state = PLACE_UNKNOWN};
  if (known)
    place = thread->place;
  else if (has_descriptor(call & 31))
    place = place_of(file_of(task, argument_of(regs, compat, call >> 5)));
  look_at_result(task, regs, compat, call, owner, result, &place);
}

/* Interrupted, to be entered again with the same arguments: it comes back to no code of its own unless a signal has a handler, which is counted. */
INLINE bool is_interrupted(long result) { return result == -512 || result == -513 || result == -514 || result == -516; }

enum { INTERRUPTED = -4 };

SEC("tp_btf/sys_exit")
int on_call_end(u64 *context) {
  struct pt_regs *regs = ARGUMENT(context, 0, struct pt_regs *);
  long result = context[1];
  u32 owner = owner_of_current();
  if (owner == OUTSIDE) {
    if (config.devices != 0) end_call(regs, result, OUTSIDE, NULL);
    return 0;
  }
  struct task_struct *task = get_current();
  struct thread *thread = thread_of(task, owner);
  if (thread != NULL && thread->used) return 0;
  end_call(regs, result, owner, thread);
  bool held = is_held(task);
  /* Some calls are not entered again (epoll_wait): whoever called does it. */
  bool broken = held && result == INTERRUPTED && thread != NULL && thread->call != 0;
  bool comes_back = !is_interrupted(result) && !broken;
  /* What ended while it was traced it sees when it goes on. */
  bool goes_on = comes_back && !held;
  if (goes_on) count(owner, COUNT_RETURNED);
  runs_on(get_processor(), owner);
  if (thread == NULL) return 0;
  if (thread->begun) count(owner, COUNT_ENDED);
  thread->begun = 0;
  if (broken && !thread->broken) {
    thread->broken = 1;
    count(owner, COUNT_BROKEN);
  }
  if (!comes_back) return 0;
  thread->call = 0;
  thread->place = (struct place){.state = PLACE_UNKNOWN};
  if (goes_on) add(&thread->returned, 1);
  return 0;
}

char license_of_all[] SEC("license") = "Dual MIT/GPL";
