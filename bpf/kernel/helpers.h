/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The kernel's helpers by their numbers, and how maps and programs are declared to libbpf. */
#ifndef AGENTREWIND_HELPERS_H
#define AGENTREWIND_HELPERS_H

#include "types.h"

#define SEC(name) __attribute__((section(name), used))
#define INLINE static inline __attribute__((always_inline))
/* Verified once by itself, not at each call. Takes numbers and pointers that may be null, gives a number. */
#define APART __attribute__((noinline))
#define MAP_UINT(name, value) int(*name)[value]
#define MAP_TYPE(name, value) typeof(value) *name

enum { MAP_HASH = 1, MAP_ARRAY = 2, MMAPABLE = 1 << 10, NO_EXIST = 1 };

static void *(*map_lookup)(void *map, const void *key) = (void *)1;
static long (*map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*map_delete)(void *map, const void *key) = (void *)3;
static u32 (*get_processor)(void) = (void *)8;
static long (*read_user)(void *to, u32 size, const void *from) = (void *)112;
static long (*read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static u64 (*get_ancestor_cgroup)(int level) = (void *)123;
static struct task_struct *(*get_current)(void) = (void *)158;
static long (*find_vma)(struct task_struct *task, u64 address, void *callback, void *context, u64 flags) = (void *)180;

/* Reads through a pointer that the verifier does not know: what is not there reads as zeros. */
#define READ(pointer, field)                                                              \
  ({                                                                                      \
    typeof(pointer) at_ = (pointer);                                                      \
    typeof(at_->field) value_;                                                            \
    read_kernel(&value_, sizeof(value_), __builtin_preserve_access_index(&at_->field));   \
    value_;                                                                               \
  })

/* Arguments of a tracepoint stand in an array of 64-bit values. */
#define ARGUMENT(context, index, type) ((type)(context)[index])

/* The compiler may not move what is done with a value to before its check, where the verifier does not know its range. */
#define KEEP_CHECKED(value) asm volatile("" : "+r"(value))

#define add(counter, value) ((void)__sync_fetch_and_add(counter, value))

#endif
