/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The few structures of the kernel that are looked into, with the fields that are read. Their places are found when the programs are loaded (CO-RE). */
#ifndef AGENTREWIND_TYPES_H
#define AGENTREWIND_TYPES_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef int s32;
typedef _Bool bool;
#define true 1
#define false 0
#define NULL ((void *)0)
#define offsetof(type, field) __builtin_offsetof(type, field)

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct pt_regs {
  unsigned long bp, bx, r10, r9, r8, cx, dx, si, di, orig_ax;
};

struct thread_info {
  u32 status;
  u32 cpu;
};

struct kernfs_node {
  u64 id;
};

struct cgroup {
  int level;
  struct kernfs_node *kn;
  struct cgroup *ancestors[1];
};

struct css_set {
  struct cgroup *dfl_cgrp;
};

struct super_block {
  u32 s_dev;
  unsigned long s_flags;
};

struct inode {
  u16 i_mode;
  struct super_block *i_sb;
  unsigned long i_ino;
};

struct file {
  u32 f_mode;
  u32 f_flags;
  struct inode *f_inode;
};

struct fdtable {
  u32 max_fds;
  struct file **fd;
};

struct files_struct {
  struct fdtable *fdt;
};

struct ns_common {
  u32 inum;
};

struct mnt_namespace {
  struct ns_common ns;
};

struct nsproxy {
  struct mnt_namespace *mnt_ns;
};

struct signal_struct {
  int group_exit_code;
};

struct task_struct {
  struct thread_info thread_info;
  u32 flags;
  int on_cpu;
  u32 ptrace;
  int pid;
  int tgid;
  struct css_set *cgroups;
  struct files_struct *files;
  struct nsproxy *nsproxy;
  struct signal_struct *signal;
  struct task_struct *parent;
};

struct vm_area_struct {
  unsigned long vm_start;
  unsigned long vm_end;
  unsigned long vm_flags;
  struct file *vm_file;
};

struct io_cqe {
  s32 res;
};

struct io_kiocb {
  u8 opcode;
  struct io_cqe cqe;
};

struct in6_addr {
  union {
    u8 u6_addr8[16];
  } in6_u;
};

struct sock_common {
  u32 skc_daddr;
  u16 skc_dport;
  u16 skc_family;
  struct in6_addr skc_v6_daddr;
};

struct sock {
  struct sock_common __sk_common;
};

#pragma clang attribute pop

struct linux_binprm;
struct kernel_siginfo;
struct io_ring_ctx;

#endif
