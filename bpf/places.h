/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Where an effect lands: the inode of an open file. Of a file that was opened through an overlay it is the overlay's inode, with the overlay's device. */
#ifndef AGENTREWIND_PLACES_H
#define AGENTREWIND_PLACES_H

#include "owners.h"

enum { PLACE_UNKNOWN, PLACE_FILE, PLACE_NO_FILE };
enum { KIND_MASK = 0170000, FIFO = 0010000, FOLDER = 0040000, BLOCK_DEVICE = 0060000, REGULAR = 0100000 };
enum { WRITABLE = 2, CREATED = 0x100000 };
/* SB_NOUSER: no file system that anybody mounts (pipes, sockets, memfd, shared memory). */
enum { INTERNAL = 1 << 31 };

INLINE struct place place_of_inode(struct inode *inode) {
  struct super_block *super = READ(inode, i_sb);
  struct place found = {.ino = READ(inode, i_ino), .dev = READ(super, s_dev), .mode = READ(inode, i_mode)};
  u16 kind = found.mode & KIND_MASK;
  bool holds = kind == REGULAR || kind == FOLDER || kind == BLOCK_DEVICE || kind == FIFO;
  found.state = holds && !(READ(super, s_flags) & (u32)INTERNAL) ? PLACE_FILE : PLACE_NO_FILE;
  return found;
}

INLINE struct file *file_of(struct task_struct *task, s32 fd) {
  struct fdtable *table = task->files->fdt;
  if (fd < 0 || (u32)fd >= table->max_fds) return NULL;
  struct file *file = NULL;
  read_kernel(&file, sizeof(file), table->fd + fd);
  return file;
}

INLINE struct place place_of(struct file *file) {
  if (file == NULL) return (struct place){.state = PLACE_UNKNOWN};
  return place_of_inode(READ(file, f_inode));
}

INLINE void mark(u32 owner, const struct place *place, u32 counter) {
  struct dirty_key key = {.ino = place->ino, .dev = place->dev, .owner = owner, .counter = counter};
  if (map_lookup(&dirty, &key) != NULL) return;
  u32 value = 1;
  if (map_update(&dirty, &key, &value, 0) != 0) count_lost(owner);
}

APART int count_on_all(u32 devices, u32 owner) {
#pragma clang loop unroll(disable)
  for (u32 i = 0; i < DEVICES; i++)
    if (devices & (1u << i)) count_on(i, owner);
  return 0;
}

/* A place that is not known may be anywhere. */
APART int affect(u32 owner, u32 counter, const struct place *place) {
  if (place == NULL) return 0;
  count(owner, counter);
  if (place->state != PLACE_FILE) return config.devices == 0 ? 0 : count_on_all(config.devices, owner);
  struct device *device = NULL;
  u32 dev = place->dev;
  if (config.devices != 0) device = map_lookup(&devices, &dev);
  if (device != NULL) count_on(device->index, owner);
  if (device != NULL || owner != OUTSIDE) mark(owner, place, counter);
  return 0;
}

/* By a path, which is not followed: file systems that do not tell of changed inodes may be what it led to. A process in a mount namespace of its own does not see them. */
INLINE void affect_path(struct task_struct *task, u32 owner, u32 counter) {
  count(owner, counter);
  if (config.blind == 0) return;
  if (owner != OUTSIDE && READ(READ(READ(task, nsproxy), mnt_ns), ns.inum) != config.mount_namespace) return;
  count_on_all(config.blind, owner);
}

#endif
