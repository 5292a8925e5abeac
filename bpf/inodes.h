/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Inodes that file systems mark as changed. Most do it themselves without a word; ext4 tells, so that calls by path by whomever are seen on it. */
#ifndef AGENTREWIND_INODES_H
#define AGENTREWIND_INODES_H

#include "places.h"

enum { KERNEL_THREAD = 0x00200000 };

INLINE int look_at_inode(struct inode *inode) {
  if (config.devices == 0) return 0;
  u32 dev = inode->i_sb->s_dev;
  struct device *device = map_lookup(&devices, &dev);
  /* The kernel's threads write out what others changed before. */
  if (device == NULL || get_current()->flags & KERNEL_THREAD) return 0;
  struct place place = {.ino = inode->i_ino, .dev = dev, .mode = inode->i_mode, .state = PLACE_FILE};
  u32 owner = owner_of_current();
  count_on(device->index, owner);
  mark(owner, &place, COUNT_INODE);
  return 0;
}

SEC("tp_btf/writeback_mark_inode_dirty")
int on_inode(u64 *context) { return look_at_inode((struct inode *)context[0]); }

/* Optional: not every kernel has ext4. */
SEC("tp_btf/ext4_mark_inode_dirty")
int on_ext4_inode(u64 *context) { return look_at_inode((struct inode *)context[0]); }

#endif
