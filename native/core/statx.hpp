// What statx tells of an entry, and when two answers mean the same unchanged entry.
#pragma once

#include <sys/stat.h>

#include <cstdint>

#include "result.hpp"

namespace agentrewind {

struct Stat {
  uint64_t ino = 0;
  uint64_t size = 0;
  /** Allocated, in units of 512 bytes. */
  uint64_t blocks = 0;
  /** 0 where the kernel does not tell (before Linux 5.8). */
  uint64_t mount = 0;
  int64_t mtimeNs = 0;
  int64_t ctimeNs = 0;
  uint32_t devMajor = 0;
  uint32_t devMinor = 0;
  uint32_t rdevMajor = 0;
  uint32_t rdevMinor = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint32_t nlink = 0;
  /** Type and permission bits. */
  uint32_t mode = 0;

  bool sameInode(const Stat& other) const {
    return ino == other.ino && devMajor == other.devMajor && devMinor == other.devMinor;
  }
  /** No change of content or metadata between the two, as far as times tell. */
  bool unchanged(const Stat& other) const {
    return sameInode(other) && ctimeNs == other.ctimeNs && mtimeNs == other.mtimeNs && size == other.size;
  }
};

constexpr unsigned mountIdMask = 0x1000;  // STATX_MNT_ID, Linux 5.8

/** Times beyond the years 1677 to 2262 do not fit and are held at the limit. */
int64_t nanoseconds(const statx_timestamp& time);

/** 0 where the kernel does not tell. */
uint64_t mountId(const struct statx& found);

/** Of `name` in the directory `at`, not followed; of `at` itself when the name is empty. */
Result<Stat> statAt(int at, const char* name);

/** CLOCK_REALTIME. */
int64_t nowNs();

/**
 * Whether a change made at `nowNs` or later would get another change time than the entry has. Kernel timestamps advance with the timer tick, at the slowest
 * every 10 ms; a time without a fraction may be of a file system that keeps whole seconds only, or every other one.
 */
bool hasOwnTime(const Stat& stat, int64_t nowNs);

}  // namespace agentrewind
