/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What a system call may change, and whether it did. Arguments are read when it ends: the kernel leaves them as they were. */
#ifndef AGENTREWIND_CALLS_H
#define AGENTREWIND_CALLS_H

#include "places.h"

/* The number of the argument that has a descriptor, or an open's flags, stands above. */
enum kind {
  UNKNOWN = 0,
  NONE,
  KIND_WRITE,
  KIND_SIZE,
  SIZE_PATH,
  KIND_OPEN,
  CREAT,
  OPENAT2,
  NAME,
  META,
  KIND_META_FD,
  MOUNT,
  IPC,
  PEER,
  RING,
  AIO,
  KIND_IOCTL,
  KIND_MMAP,
  PROTECT,
  BIND,
  ADVISE,
};
#define AT(kind, argument) ((kind) | (argument) << 5)
#define WRITE(argument) AT(KIND_WRITE, argument)
#define SIZE(argument) AT(KIND_SIZE, argument)
#define OPEN(argument) AT(KIND_OPEN, argument)
#define META_FD(argument) AT(KIND_META_FD, argument)
#define IOCTL(argument) AT(KIND_IOCTL, argument)
#define MMAP(argument) AT(KIND_MMAP, argument)

enum { CALLS = 512, COMPAT = 2, X32 = 0x40000000 };

static const u8 calls_64[CALLS] = {
#include "kernel/calls-64.h"
};
static const u8 calls_32[CALLS] = {
#include "kernel/calls-32.h"
};

INLINE u8 call_of(u32 number, bool compat) {
  /* What comes back from a signal handler, and what has just been forked, is in no call. */
  if (number == (u32)-1) return NONE;
  if (!compat) number &= ~X32;
  if (number >= CALLS) return UNKNOWN;
  return compat ? calls_32[number] : calls_64[number];
}

INLINE u64 argument_of(struct pt_regs *regs, bool compat, u32 index) {
  if (compat) {
    switch (index) {
      case 0: return (u32)regs->bx;
      case 1: return (u32)regs->cx;
      case 2: return (u32)regs->dx;
      case 3: return (u32)regs->si;
      case 4: return (u32)regs->di;
      default: return (u32)regs->bp;
    }
  }
  switch (index) {
    case 0: return regs->di;
    case 1: return regs->si;
    case 2: return regs->dx;
    case 3: return regs->r10;
    case 4: return regs->r8;
    default: return regs->r9;
  }
}

INLINE bool has_descriptor(u8 kind) {
  return kind == KIND_WRITE || kind == KIND_SIZE || kind == KIND_META_FD || kind == KIND_IOCTL || kind == KIND_MMAP;
}

enum { WRITE_ONLY = 1, READ_WRITE = 2, CREATE = 0100, TRUNCATE = 01000 };

/* Flags of an open; where they cannot be read they are those of a write. */
INLINE u32 open_flags(struct pt_regs *regs, bool compat, u8 call) {
  u8 kind = call & 31;
  if (kind == CREAT) return WRITE_ONLY | CREATE | TRUNCATE;
  if (kind == KIND_OPEN) return argument_of(regs, compat, call >> 5);
  u64 flags = 0;
  if (read_user(&flags, sizeof(flags), (void *)argument_of(regs, compat, 2)) != 0) return WRITE_ONLY | CREATE;
  return flags;
}

/* Requests that change no file, by their numbers without direction and size where those differ between ABIs. */
INLINE bool is_harmless(u32 request) {
  switch (request) {
    case 0x5401: /* TCGETS */
    case 0x5413: /* TIOCGWINSZ */
    case 0x541b: /* FIONREAD */
    case 0x5421: /* FIONBIO */
    case 0x5450: /* FIONCLEX */
    case 0x5451: /* FIOCLEX */
    case 0x5452: /* FIOASYNC */
    case 0x5460: /* FIOQSIZE */
    case 1:      /* FIBMAP */
    case 2:      /* FIGETBSZ */
    case 0x80086601: case 0x80046601: /* FS_IOC_GETFLAGS */
    case 0x80087601: case 0x80047601: /* FS_IOC_GETVERSION */
    case 0x801c581f: /* FS_IOC_FSGETXATTR */
    case 0xc020660b: /* FS_IOC_FIEMAP */
    case 0x81009431: /* FS_IOC_GETFSLABEL */
    case 0x80111500: /* FS_IOC_GETFSUUID */
    case 0xc0c0583b: /* FS_IOC_GETFSMAP */
    case 0x1260: /* BLKGETSIZE */
    case 0x1268: /* BLKSSZGET */
    case 0x80081272: /* BLKGETSIZE64 */
    case 0xd0009411: /* BTRFS_IOC_TREE_SEARCH */
    case 0xc0709411: /* BTRFS_IOC_TREE_SEARCH_V2 */
    case 0xd0009412: /* BTRFS_IOC_INO_LOOKUP */
    case 0x8400941f: /* BTRFS_IOC_FS_INFO */
    case 0xd000941e: /* BTRFS_IOC_DEV_INFO */
    case 0x80089419: /* BTRFS_IOC_SUBVOL_GETFLAGS */
    case 0x81f8943c: /* BTRFS_IOC_GET_SUBVOL_INFO */
    case 0xd000943d: /* BTRFS_IOC_GET_SUBVOL_ROOTREF */
      return true;
  }
  return false;
}

enum { MAP_SHARED = 1, MAP_SHARED_VALIDATE = 3, MAP_KIND = 15, MAP_ANONYMOUS = 32, PROT_WRITE = 2 };

INLINE bool maps_shared(struct pt_regs *regs, bool compat) {
  u32 flags = argument_of(regs, compat, 3);
  u32 kind = flags & MAP_KIND;
  if ((kind != MAP_SHARED && kind != MAP_SHARED_VALIDATE) || (flags & MAP_ANONYMOUS)) return false;
  return argument_of(regs, compat, 2) & PROT_WRITE;
}

struct protect {
  u32 owner;
  u64 end;
};

enum { VM_WRITE = 2, VM_SHARED = 8 };

static long protected(struct task_struct *task, struct vm_area_struct *area, struct protect *protect) {
  struct place place = {.state = PLACE_UNKNOWN};
  struct file *file = area->vm_file;
  u64 wanted = VM_SHARED | VM_WRITE;
  if ((area->vm_flags & wanted) == wanted && file != NULL) {
    place = place_of(file);
    if (place.state == PLACE_FILE) affect(protect->owner, COUNT_MAP, &place);
  }
  /* What lies behind the first area is not looked at. */
  if (area->vm_end < protect->end) {
    place.state = PLACE_UNKNOWN;
    affect(protect->owner, COUNT_MAP, &place);
  }
  return 0;
}

INLINE void look_at_protected(struct task_struct *task, struct pt_regs *regs, bool compat, u32 owner) {
  if (!(argument_of(regs, compat, 2) & PROT_WRITE)) return;
  u64 start = argument_of(regs, compat, 0);
  struct protect protect = {.owner = owner, .end = start + argument_of(regs, compat, 1)};
  long found = find_vma(task, start, protected, &protect, 0);
  /* EBUSY: another thread changes the map. ENOENT: unmapped meanwhile. */
  if (found != 0 && found != -2) count(owner, COUNT_MAP);
}

/* A socket's name in a file system; one that begins with a zero, or is empty, is in none. */
INLINE bool binds_file(struct pt_regs *regs, bool compat) {
  struct {
    u16 family;
    u8 first;
    u8 padding;
  } address = {};
  if ((u32)argument_of(regs, compat, 2) < 3) return false;
  if (read_user(&address, 3, (void *)argument_of(regs, compat, 1)) != 0) return true;
  return address.family == 1 && address.first != 0;
}

#endif
