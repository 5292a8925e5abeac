/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What the programs and their loader share. Both sides assert sizes and offsets; src/inspector/ebpf/counters.ts has the order of the counters. */
#ifndef AGENTREWIND_EFFECTS_H
#define AGENTREWIND_EFFECTS_H

#ifdef __bpf__
#include "kernel/types.h"
#else
#include <cstddef>
#include <cstdint>
typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
#define _Static_assert static_assert
#endif

enum {
  SLOTS = 1024,
  /* Losses that belong to no slot. */
  NOBODY = SLOTS,
  /* In place of a slot: a cgroup whose tasks trace those of others, to write down their state. */
  TRACERS = SLOTS + 1,
  /* Whoever is in no watched cgroup; slot n is owner n + 1. */
  OUTSIDE = 0,
  OWNERS = SLOTS + 1,
  DEVICES = 32,
  LEVELS = 8,
  CPUS = 512,
};

enum counter {
  COUNT_FORK,
  COUNT_EXEC,
  COUNT_EXIT,
  COUNT_ATTACHED,
  COUNT_SCHEDULED,
  COUNT_RETURNED,
  COUNT_SIGNAL,
  COUNT_WRITE,
  COUNT_OPEN,
  COUNT_MAP,
  COUNT_NAME,
  COUNT_META,
  COUNT_MOUNT,
  COUNT_IPC,
  COUNT_PEER,
  COUNT_URING,
  COUNT_AIO,
  COUNT_UNKNOWN,
  COUNT_CONNECT,
  COUNT_BEGUN,
  COUNT_ENDED,
  COUNT_BROKEN,
  COUNT_TAKEN_UP,
  COUNT_LOST,
  /* In dirty keys only: an inode that its file system marked as changed, by what call is not told. */
  COUNT_INODE,
  COUNTERS = 32,
};

struct counters {
  u64 of[COUNTERS];
};

/* One cache line for each processor. */
struct running {
  u32 owner;
  u32 padding[15];
};

/* Effects on a watched device, by who made them. */
struct device_effects {
  u64 by[OWNERS];
};

struct device {
  u32 index;
  /* Its file system does not tell of inodes that it changes: calls by path are counted for it wherever they lead. */
  u32 blind;
};

struct dirty_key {
  u64 ino;
  /* The kernel's dev_t: major << 20 | minor, of the superblock. */
  u32 dev;
  u16 owner;
  u16 counter;
};

struct connection_key {
  u16 slot;
  u16 family;
  /* In host order. */
  u16 port;
  u16 padding;
  u8 address[16];
};

struct place {
  u64 ino;
  u32 dev;
  u16 mode;
  u16 state;
};

struct thread {
  u32 tid;
  u16 slot;
  u8 ended : 1;
  /* A tracer made calls of its own with it since it last entered one by itself. */
  u8 used : 1;
  /* Its call was ended by a tracer, and it has not gone on to the next one. */
  u8 broken : 1;
  u8 begun;
  u64 scheduled;
  u64 returned;
  /* Its system call's number + 1 while it is in one, interrupted ones that will be entered again included. */
  u32 call;
  u32 compat;
  struct place place;
};

/* Written by the loader while the programs run: lists first, then their lengths. */
struct config {
  u32 levels;
  u32 level[LEVELS];
  /* Bits by index of the devices that are watched. */
  u32 devices;
  u32 blind;
  /* Number of the mount namespace in which paths were registered. */
  u32 mount_namespace;
};

_Static_assert(sizeof(struct counters) == 256, "counters");
_Static_assert(sizeof(struct running) == 64, "running");
_Static_assert(sizeof(struct device_effects) == 8200, "device_effects");
_Static_assert(sizeof(struct device) == 8, "device");
_Static_assert(sizeof(struct dirty_key) == 16, "dirty_key");
_Static_assert(offsetof(struct dirty_key, owner) == 12, "dirty_key.owner");
_Static_assert(sizeof(struct connection_key) == 24, "connection_key");
_Static_assert(offsetof(struct connection_key, address) == 8, "connection_key.address");
_Static_assert(sizeof(struct place) == 16, "place");
_Static_assert(sizeof(struct thread) == 48, "thread");
_Static_assert(offsetof(struct thread, scheduled) == 8, "thread.scheduled");
_Static_assert(sizeof(struct config) == 48, "config");
_Static_assert(offsetof(struct config, devices) == 36, "config.devices");

#endif
