/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What each x86-64 system call may change. A number that is not here is unknown. */
[0] = NONE, /* read */ [1] = WRITE(0), /* write */ [2] = OPEN(1), /* open */ [3] = NONE, /* close */ [4] = NONE, /* stat */ [5] = NONE, /* fstat */
[6] = NONE, /* lstat */ [7] = NONE, /* poll */ [8] = NONE, /* lseek */ [9] = MMAP(4), /* mmap */ [10] = PROTECT, /* mprotect */
[11] = NONE, /* munmap */ [12] = NONE, /* brk */ [13] = NONE, /* rt_sigaction */ [14] = NONE, /* rt_sigprocmask */ [15] = NONE, /* rt_sigreturn */
[16] = IOCTL(0), /* ioctl */ [17] = NONE, /* pread64 */ [18] = WRITE(0), /* pwrite64 */ [19] = NONE, /* readv */ [20] = WRITE(0), /* writev */
[21] = NONE, /* access */ [22] = NONE, /* pipe */ [23] = NONE, /* select */ [24] = NONE, /* sched_yield */ [25] = NONE, /* mremap */
[26] = NONE, /* msync */ [27] = NONE, /* mincore */ [28] = ADVISE, /* madvise */ [29] = IPC, /* shmget */ [30] = NONE, /* shmat */
[31] = IPC, /* shmctl */ [32] = NONE, /* dup */ [33] = NONE, /* dup2 */ [34] = NONE, /* pause */ [35] = NONE, /* nanosleep */
[36] = NONE, /* getitimer */ [37] = NONE, /* alarm */ [38] = NONE, /* setitimer */ [39] = NONE, /* getpid */ [40] = WRITE(0), /* sendfile */
[41] = NONE, /* socket */ [42] = NONE, /* connect */ [43] = NONE, /* accept */ [44] = NONE, /* sendto */ [45] = NONE, /* recvfrom */
[46] = NONE, /* sendmsg */ [47] = NONE, /* recvmsg */ [48] = NONE, /* shutdown */ [49] = BIND, /* bind */ [50] = NONE, /* listen */
[51] = NONE, /* getsockname */ [52] = NONE, /* getpeername */ [53] = NONE, /* socketpair */ [54] = NONE, /* setsockopt */
[55] = NONE, /* getsockopt */ [56] = NONE, /* clone */ [57] = NONE, /* fork */ [58] = NONE, /* vfork */ [59] = NONE, /* execve */
[60] = NONE, /* exit */ [61] = NONE, /* wait4 */ [62] = NONE, /* kill */ [63] = NONE, /* uname */ [64] = IPC, /* semget */ [65] = IPC, /* semop */
[66] = IPC, /* semctl */ [67] = NONE, /* shmdt */ [68] = IPC, /* msgget */ [69] = IPC, /* msgsnd */ [70] = IPC, /* msgrcv */ [71] = IPC, /* msgctl */
[72] = NONE, /* fcntl */ [73] = NONE, /* flock */ [74] = NONE, /* fsync */ [75] = NONE, /* fdatasync */ [76] = SIZE_PATH, /* truncate */
[77] = SIZE(0), /* ftruncate */ [78] = NONE, /* getdents */ [79] = NONE, /* getcwd */ [80] = NONE, /* chdir */ [81] = NONE, /* fchdir */
[82] = NAME, /* rename */ [83] = NAME, /* mkdir */ [84] = NAME, /* rmdir */ [85] = CREAT, /* creat */ [86] = NAME, /* link */
[87] = NAME, /* unlink */ [88] = NAME, /* symlink */ [89] = NONE, /* readlink */ [90] = META, /* chmod */ [91] = META_FD(0), /* fchmod */
[92] = META, /* chown */ [93] = META_FD(0), /* fchown */ [94] = META, /* lchown */ [95] = NONE, /* umask */ [96] = NONE, /* gettimeofday */
[97] = NONE, /* getrlimit */ [98] = NONE, /* getrusage */ [99] = NONE, /* sysinfo */ [100] = NONE, /* times */ [101] = PEER, /* ptrace */
[102] = NONE, /* getuid */ [104] = NONE, /* getgid */ [105] = NONE, /* setuid */ [106] = NONE, /* setgid */ [107] = NONE, /* geteuid */
[108] = NONE, /* getegid */ [109] = NONE, /* setpgid */ [110] = NONE, /* getppid */ [111] = NONE, /* getpgrp */ [112] = NONE, /* setsid */
[113] = NONE, /* setreuid */ [114] = NONE, /* setregid */ [115] = NONE, /* getgroups */ [116] = NONE, /* setgroups */ [117] = NONE, /* setresuid */
[118] = NONE, /* getresuid */ [119] = NONE, /* setresgid */ [120] = NONE, /* getresgid */ [121] = NONE, /* getpgid */ [122] = NONE, /* setfsuid */
[123] = NONE, /* setfsgid */ [124] = NONE, /* getsid */ [125] = NONE, /* capget */ [126] = NONE, /* capset */ [127] = NONE, /* rt_sigpending */
[128] = NONE, /* rt_sigtimedwait */ [129] = NONE, /* rt_sigqueueinfo */ [130] = NONE, /* rt_sigsuspend */ [131] = NONE, /* sigaltstack */
[132] = META, /* utime */ [133] = NAME, /* mknod */ [135] = NONE, /* personality */ [137] = NONE, /* statfs */ [138] = NONE, /* fstatfs */
[140] = NONE, /* getpriority */ [141] = NONE, /* setpriority */ [142] = NONE, /* sched_setparam */ [143] = NONE, /* sched_getparam */
[144] = NONE, /* sched_setscheduler */ [145] = NONE, /* sched_getscheduler */ [146] = NONE, /* sched_get_priority_max */
[147] = NONE, /* sched_get_priority_min */ [148] = NONE, /* sched_rr_get_interval */ [149] = NONE, /* mlock */ [150] = NONE, /* munlock */
[151] = NONE, /* mlockall */ [152] = NONE, /* munlockall */ [155] = MOUNT, /* pivot_root */ [157] = NONE, /* prctl */ [158] = NONE, /* arch_prctl */
[160] = NONE, /* setrlimit */ [161] = MOUNT, /* chroot */ [162] = NONE, /* sync */ [165] = MOUNT, /* mount */ [166] = MOUNT, /* umount2 */
[167] = MOUNT, /* swapon */ [168] = MOUNT, /* swapoff */ [170] = MOUNT, /* sethostname */ [171] = MOUNT, /* setdomainname */
[186] = NONE, /* gettid */ [187] = NONE, /* readahead */ [188] = META, /* setxattr */ [189] = META, /* lsetxattr */
[190] = META_FD(0), /* fsetxattr */ [191] = NONE, /* getxattr */ [192] = NONE, /* lgetxattr */ [193] = NONE, /* fgetxattr */
[194] = NONE, /* listxattr */ [195] = NONE, /* llistxattr */ [196] = NONE, /* flistxattr */ [197] = META, /* removexattr */
[198] = META, /* lremovexattr */ [199] = META_FD(0), /* fremovexattr */ [200] = NONE, /* tkill */ [201] = NONE, /* time */ [202] = NONE, /* futex */
[203] = NONE, /* sched_setaffinity */ [204] = NONE, /* sched_getaffinity */ [205] = NONE, /* set_thread_area */ [206] = NONE, /* io_setup */
[207] = NONE, /* io_destroy */ [208] = NONE, /* io_getevents */ [209] = AIO, /* io_submit */ [210] = NONE, /* io_cancel */
[211] = NONE, /* get_thread_area */ [213] = NONE, /* epoll_create */ [214] = NONE, /* epoll_ctl_old */ [215] = NONE, /* epoll_wait_old */
[217] = NONE, /* getdents64 */ [218] = NONE, /* set_tid_address */ [219] = NONE, /* restart_syscall */ [220] = IPC, /* semtimedop */
[221] = NONE, /* fadvise64 */ [222] = NONE, /* timer_create */ [223] = NONE, /* timer_settime */ [224] = NONE, /* timer_gettime */
[225] = NONE, /* timer_getoverrun */ [226] = NONE, /* timer_delete */ [228] = NONE, /* clock_gettime */ [229] = NONE, /* clock_getres */
[230] = NONE, /* clock_nanosleep */ [231] = NONE, /* exit_group */ [232] = NONE, /* epoll_wait */ [233] = NONE, /* epoll_ctl */
[234] = NONE, /* tgkill */ [235] = META, /* utimes */ [237] = NONE, /* mbind */ [238] = NONE, /* set_mempolicy */ [239] = NONE, /* get_mempolicy */
[240] = IPC, /* mq_open */ [241] = IPC, /* mq_unlink */ [242] = IPC, /* mq_timedsend */ [243] = IPC, /* mq_timedreceive */
[244] = NONE, /* mq_notify */ [245] = IPC, /* mq_getsetattr */ [247] = NONE, /* waitid */ [251] = NONE, /* ioprio_set */
[252] = NONE, /* ioprio_get */ [253] = NONE, /* inotify_init */ [254] = NONE, /* inotify_add_watch */ [255] = NONE, /* inotify_rm_watch */
[256] = PEER, /* migrate_pages */ [257] = OPEN(2), /* openat */ [258] = NAME, /* mkdirat */ [259] = NAME, /* mknodat */ [260] = META, /* fchownat */
[261] = META, /* futimesat */ [262] = NONE, /* newfstatat */ [263] = NAME, /* unlinkat */ [264] = NAME, /* renameat */ [265] = NAME, /* linkat */
[266] = NAME, /* symlinkat */ [267] = NONE, /* readlinkat */ [268] = META, /* fchmodat */ [269] = NONE, /* faccessat */ [270] = NONE, /* pselect6 */
[271] = NONE, /* ppoll */ [272] = MOUNT, /* unshare */ [273] = NONE, /* set_robust_list */ [274] = NONE, /* get_robust_list */
[275] = WRITE(2), /* splice */ [276] = NONE, /* tee */ [277] = NONE, /* sync_file_range */ [278] = NONE, /* vmsplice */ [279] = PEER, /* move_pages */
[280] = META, /* utimensat */ [281] = NONE, /* epoll_pwait */ [282] = NONE, /* signalfd */ [283] = NONE, /* timerfd_create */
[284] = NONE, /* eventfd */ [285] = SIZE(0), /* fallocate */ [286] = NONE, /* timerfd_settime */ [287] = NONE, /* timerfd_gettime */
[288] = NONE, /* accept4 */ [289] = NONE, /* signalfd4 */ [290] = NONE, /* eventfd2 */ [291] = NONE, /* epoll_create1 */ [292] = NONE, /* dup3 */
[293] = NONE, /* pipe2 */ [294] = NONE, /* inotify_init1 */ [295] = NONE, /* preadv */ [296] = WRITE(0), /* pwritev */
[297] = NONE, /* rt_tgsigqueueinfo */ [298] = NONE, /* perf_event_open */ [299] = NONE, /* recvmmsg */ [300] = NONE, /* fanotify_init */
[301] = NONE, /* fanotify_mark */ [302] = NONE, /* prlimit64 */ [303] = NONE, /* name_to_handle_at */ [304] = OPEN(2), /* open_by_handle_at */
[306] = NONE, /* syncfs */ [307] = NONE, /* sendmmsg */ [308] = MOUNT, /* setns */ [309] = NONE, /* getcpu */ [310] = NONE, /* process_vm_readv */
[311] = PEER, /* process_vm_writev */ [312] = NONE, /* kcmp */ [314] = NONE, /* sched_setattr */ [315] = NONE, /* sched_getattr */
[316] = NAME, /* renameat2 */ [317] = NONE, /* seccomp */ [318] = NONE, /* getrandom */ [319] = NONE, /* memfd_create */ [322] = NONE, /* execveat */
[323] = NONE, /* userfaultfd */ [324] = NONE, /* membarrier */ [325] = NONE, /* mlock2 */ [326] = WRITE(2), /* copy_file_range */
[327] = NONE, /* preadv2 */ [328] = WRITE(0), /* pwritev2 */ [329] = PROTECT, /* pkey_mprotect */ [330] = NONE, /* pkey_alloc */
[331] = NONE, /* pkey_free */ [332] = NONE, /* statx */ [333] = NONE, /* io_pgetevents */ [334] = NONE, /* rseq */
[424] = NONE, /* pidfd_send_signal */ [425] = RING, /* io_uring_setup */ [426] = NONE, /* io_uring_enter */ [427] = NONE, /* io_uring_register */
[428] = MOUNT, /* open_tree */ [429] = MOUNT, /* move_mount */ [430] = MOUNT, /* fsopen */ [431] = MOUNT, /* fsconfig */ [432] = MOUNT, /* fsmount */
[433] = MOUNT, /* fspick */ [434] = NONE, /* pidfd_open */ [435] = NONE, /* clone3 */ [436] = NONE, /* close_range */ [437] = OPENAT2, /* openat2 */
[438] = PEER, /* pidfd_getfd */ [439] = NONE, /* faccessat2 */ [440] = PEER, /* process_madvise */ [441] = NONE, /* epoll_pwait2 */
[442] = MOUNT, /* mount_setattr */ [444] = NONE, /* landlock_create_ruleset */ [445] = NONE, /* landlock_add_rule */
[446] = NONE, /* landlock_restrict_self */ [447] = NONE, /* memfd_secret */ [448] = PEER, /* process_mrelease */ [449] = NONE, /* futex_waitv */
[450] = NONE, /* set_mempolicy_home_node */ [451] = NONE, /* cachestat */ [452] = META, /* fchmodat2 */ [453] = NONE, /* map_shadow_stack */
[454] = NONE, /* futex_wake */ [455] = NONE, /* futex_wait */ [456] = NONE, /* futex_requeue */ [457] = NONE, /* statmount */
[458] = NONE, /* listmount */ [459] = NONE, /* lsm_get_self_attr */ [460] = NONE, /* lsm_set_self_attr */ [461] = NONE, /* lsm_list_modules */
[462] = NONE, /* mseal */ [463] = META, /* setxattrat */ [464] = NONE, /* getxattrat */ [465] = NONE, /* listxattrat */
[466] = META, /* removexattrat */ [467] = MOUNT, /* open_tree_attr */ [468] = NONE, /* file_getattr */ [469] = META, /* file_setattr */
