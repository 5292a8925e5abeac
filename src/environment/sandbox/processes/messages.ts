// The messages of CRIU's RPC and images that are used here, by the names and numbers of its .proto files.
import type { Table } from "./protobuf.ts";

export const requestType = { dump: 1, restore: 2, notify: 6 } as const;

export const networkLock = { nftables: 2, skip: 3 } as const;

/** criu_opts of rpc.proto. */
const options = {
  images_dir_fd: [1, "int"],
  pid: [2, "int"],
  leave_running: [3, "bool"],
  tcp_established: [5, "bool"],
  file_locks: [8, "bool"],
  log_level: [9, "int"],
  log_file: [10, "string"],
  notify_scripts: [12, "bool"],
  parent_img: [14, "string"],
  track_mem: [15, "bool"],
  link_remap: [18, "bool"],
  manage_cgroups_mode: [34, "int"],
  ghost_limit: [35, "int"],
  irmap_scan_paths: [36, "strings"],
  tcp_skip_in_flight: [46, "bool"],
  orphan_pts_master: [50, "bool"],
  network_lock: [64, "int"],
  images_dir: [68, "string"],
} as const satisfies Table;

export const criuRequest = {
  type: [1, "int"],
  opts: [2, options],
  notify_success: [3, "bool"],
} as const satisfies Table;

export const criuResponse = {
  type: [1, "int"],
  success: [2, "bool"],
  restore: [4, { pid: [1, "int"] }],
  notify: [5, { script: [1, "string"], pid: [2, "int"] }],
  cr_errno: [7, "int"],
  cr_errmsg: [9, "string"],
} as const satisfies Table;

/** stats.proto; microseconds. */
export const statistics = {
  dump: [
    1,
    {
      freezing_time: [1, "int"],
      frozen_time: [2, "int"],
      pages_written: [7, "int"],
      shpages_written: [14, "int"],
    },
  ],
} as const satisfies Table;

/** sk-inet.proto. */
const internetSocket = {
  family: [3, "int"],
  proto: [5, "int"],
  state: [6, "int"],
  src_port: [7, "int"],
  dst_port: [8, "int"],
  src_addr: [11, "ints"],
  dst_addr: [12, "ints"],
} as const satisfies Table;

/** fdinfo.proto: one open file, and one descriptor of a process that refers to it. */
export const file = {
  id: [2, "int"],
  reg: [3, { name: [6, "string"] }],
  isk: [4, internetSocket],
} as const satisfies Table;
export const descriptor = { id: [1, "int"], type: [3, "int"], fd: [4, "int"] } as const satisfies Table;

/** core.proto: what identifies a process. */
export const process = { tc: [3, { comm: [6, "string"] }] } as const satisfies Table;
export const sharedParts = { files_id: [2, "int"] } as const satisfies Table;

/** core.proto and rseq.proto: where a thread has the area that the kernel writes its processor into. */
export const threadArea = {
  thread_core: [5, { rseq_entry: [15, { rseq_abi_pointer: [1, "int"] }] }],
} as const satisfies Table;

/** pagemap.proto: the first message is its head, whose only field has the number of the others' address. */
export const pagemap = {
  vaddr_or_pages_id: [1, "int"],
  compat_nr_pages: [2, "int"],
  in_parent: [3, "bool"],
  flags: [4, "int"],
  nr_pages: [5, "int"],
} as const satisfies Table;
