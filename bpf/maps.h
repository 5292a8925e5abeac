/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Where everything is kept. Whatever cannot be kept is a loss, and a loss is counted. */
#ifndef AGENTREWIND_MAPS_H
#define AGENTREWIND_MAPS_H

#include "effects.h"
#include "kernel/helpers.h"

volatile struct config config SEC(".bss");

struct {
  MAP_UINT(type, MAP_ARRAY);
  MAP_UINT(max_entries, SLOTS + 1);
  MAP_UINT(map_flags, MMAPABLE);
  MAP_TYPE(key, u32);
  MAP_TYPE(value, struct counters);
} counters SEC(".maps");

struct {
  MAP_UINT(type, MAP_ARRAY);
  MAP_UINT(max_entries, CPUS);
  MAP_UINT(map_flags, MMAPABLE);
  MAP_TYPE(key, u32);
  MAP_TYPE(value, struct running);
} running SEC(".maps");

struct {
  MAP_UINT(type, MAP_ARRAY);
  MAP_UINT(max_entries, DEVICES);
  MAP_UINT(map_flags, MMAPABLE);
  MAP_TYPE(key, u32);
  MAP_TYPE(value, struct device_effects);
} device_effects SEC(".maps");

/* Number of a cgroup (v2) -> slot. */
struct {
  MAP_UINT(type, MAP_HASH);
  MAP_UINT(max_entries, SLOTS);
  MAP_TYPE(key, u64);
  MAP_TYPE(value, u32);
} cgroups SEC(".maps");

/* The kernel's dev_t of a superblock -> device. */
struct {
  MAP_UINT(type, MAP_HASH);
  MAP_UINT(max_entries, DEVICES);
  MAP_TYPE(key, u32);
  MAP_TYPE(value, struct device);
} devices SEC(".maps");

/* By the address of its task_struct, which is not another's as long as the entry is there: it goes before the memory does. */
struct {
  MAP_UINT(type, MAP_HASH);
  MAP_UINT(max_entries, 16384);
  MAP_TYPE(key, u64);
  MAP_TYPE(value, struct thread);
} threads SEC(".maps");

/* An entry is only ever made or removed, never changed: one that is found while it is being taken belongs to what is taken, and its effect is over by then. */
struct {
  MAP_UINT(type, MAP_HASH);
  MAP_UINT(max_entries, 32768);
  MAP_TYPE(key, struct dirty_key);
  MAP_TYPE(value, u32);
} dirty SEC(".maps");

/* Sockets that connect -> slot + 1. */
struct {
  MAP_UINT(type, MAP_HASH);
  MAP_UINT(max_entries, 4096);
  MAP_TYPE(key, u64);
  MAP_TYPE(value, u32);
} connecting SEC(".maps");

struct {
  MAP_UINT(type, MAP_HASH);
  MAP_UINT(max_entries, 4096);
  MAP_TYPE(key, struct connection_key);
  MAP_TYPE(value, u64);
} connections SEC(".maps");

INLINE void count_slot(u32 slot, u32 counter) {
  struct counters *found = map_lookup(&counters, &slot);
  if (found != NULL && counter < COUNTERS) add(&found->of[counter], 1);
}

/* Of an owner; who is outside has no counters. */
INLINE void count(u32 owner, u32 counter) {
  if (owner != OUTSIDE) count_slot(owner - 1, counter);
}

INLINE void count_lost(u32 owner) { count_slot(owner == OUTSIDE ? NOBODY : owner - 1, COUNT_LOST); }

INLINE void count_on(u32 device, u32 owner) {
  struct device_effects *found = map_lookup(&device_effects, &device);
  u64 at = owner;
  KEEP_CHECKED(at);
  if (found == NULL || at >= OWNERS) return;
  KEEP_CHECKED(at);
  add(&found->by[at], 1);
}

#endif
