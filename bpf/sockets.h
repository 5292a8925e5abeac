/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Outbound TCP connections. The caller is known when one begins; that it stands is told by whatever the kernel does just then. */
#ifndef AGENTREWIND_SOCKETS_H
#define AGENTREWIND_SOCKETS_H

#include "owners.h"

enum { ESTABLISHED = 1, SYN_SENT = 2, INET = 2, INET6 = 10 };

INLINE void count_connection(const struct sock *socket, u32 slot) {
  u16 port = socket->__sk_common.skc_dport;
  struct connection_key key = {
      .slot = slot, .family = socket->__sk_common.skc_family, .port = (u16)(port << 8 | port >> 8)};
  if (key.family == INET) {
    u32 address = socket->__sk_common.skc_daddr;
    __builtin_memcpy(key.address, &address, sizeof(address));
  } else {
    read_kernel(key.address, sizeof(key.address), __builtin_preserve_access_index(&socket->__sk_common.skc_v6_daddr));
  }
  count_slot(slot, COUNT_CONNECT);
  u64 *found = map_lookup(&connections, &key);
  u64 one = 1;
  if (found != NULL)
    add(found, 1);
  else if (map_update(&connections, &key, &one, 0) != 0)
    count_slot(slot, COUNT_LOST);
}

SEC("tp_btf/inet_sock_set_state")
int on_socket(u64 *context) {
  if (config.levels == 0) return 0;
  const struct sock *socket = ARGUMENT(context, 0, const struct sock *);
  int before = context[1], now = context[2];
  u64 key = (u64)socket;
  if (now == SYN_SENT) {
    u32 owner = owner_of_current();
    if (owner != OUTSIDE && map_update(&connecting, &key, &owner, 0) != 0) count_lost(owner);
    return 0;
  }
  if (before != SYN_SENT) return 0;
  u32 *owner = map_lookup(&connecting, &key);
  if (owner == NULL) return 0;
  if (now == ESTABLISHED && *owner != OUTSIDE) count_connection(socket, *owner - 1);
  map_delete(&connecting, &key);
  return 0;
}

#endif
