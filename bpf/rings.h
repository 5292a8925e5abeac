/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* io_uring. Requests run by threads of the ring's owner: its cgroup is theirs, also where the kernel polls. A request that changes something is counted when it is
   handed in, and when it ends well: it may be carried out at any time between. */
#ifndef AGENTREWIND_RINGS_H
#define AGENTREWIND_RINGS_H

#include "places.h"

/* Bits by IORING_OP_*: all that change no file. What comes later is not known, and so not among them. */
enum { RING_OPERATIONS = 63 };
static const u64 ring_harmless =
    1ull << 0 | 1ull << 1 | 1ull << 3 | 1ull << 4 | 1ull << 6 | 1ull << 7 | 1ull << 8 | 1ull << 9 | 1ull << 10 | 1ull << 11 |
    1ull << 12 | 1ull << 13 | 1ull << 14 | 1ull << 15 | 1ull << 16 | 1ull << 19 | 1ull << 20 | 1ull << 21 | 1ull << 22 |
    1ull << 24 | 1ull << 26 | 1ull << 27 | 1ull << 29 | 1ull << 31 | 1ull << 32 | 1ull << 33 | 1ull << 34 | 1ull << 40 |
    1ull << 43 | 1ull << 44 | 1ull << 45 | 1ull << 47 | 1ull << 48 | 1ull << 49 | 1ull << 50 | 1ull << 51 | 1ull << 52 |
    1ull << 53 | 1ull << 54 | 1ull << 57 | 1ull << 58 | 1ull << 59 | 1ull << 60 | 1ull << 62;

INLINE int look_at_request(struct io_kiocb *request, bool ended) {
  u32 owner = owner_of_current();
  if (owner == OUTSIDE && config.devices == 0) return 0;
  u8 operation = READ(request, opcode);
  if (operation < RING_OPERATIONS && (ring_harmless & (1ull << operation))) return 0;
  if (ended && READ(request, cqe.res) < 0) return 0;
  struct place place = {.state = PLACE_UNKNOWN};
  affect(owner, COUNT_URING, &place);
  return 0;
}

SEC("tp_btf/io_uring_submit_req")
int on_request(u64 *context) { return look_at_request((struct io_kiocb *)context[0], 0); }

SEC("tp_btf/io_uring_complete")
int on_request_end(u64 *context) { return look_at_request((struct io_kiocb *)context[1], 1); }

#endif
