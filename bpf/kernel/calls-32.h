/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What each i386 system call (int 0x80) may change. A number that is not here is unknown. */
[0] = NONE, /* restart_syscall */ [1] = NONE, /* exit */ [2] = NONE, /* fork */ [3] = NONE, /* read */ [4] = WRITE(0), /* write */
[5] = OPEN(1), /* open */ [6] = NONE, /* close */ [7] = NONE, /* waitpid */ [8] = CREAT, /* creat */ [9] = NAME, /* link */ [10] = NAME, /* unlink */
[11] = NONE, /* execve */ [12] = NONE, /* chdir */ [13] = NONE, /* time */ [14] = NAME, /* mknod */ [15] = META, /* chmod */ [16] = META, /* lchown */
[18] = NONE, /* oldstat */ [19] = NONE, /* lseek */ [20] = NONE, /* getpid */ [21] = MOUNT, /* mount */ [22] = MOUNT, /* umount */
[23] = NONE, /* setuid */ [24] = NONE, /* getuid */ [26] = PEER, /* ptrace */ [27] = NONE, /* alarm */ [28] = NONE, /* oldfstat */
[29] = NONE, /* pause */ [30] = META, /* utime */ [33] = NONE, /* access */ [34] = NONE, /* nice */ [36] = NONE, /* sync */ [37] = NONE, /* kill */
[38] = NAME, /* rename */ [39] = NAME, /* mkdir */ [40] = NAME, /* rmdir */ [41] = NONE, /* dup */ [42] = NONE, /* pipe */ [43] = NONE, /* times */
[45] = NONE, /* brk */ [46] = NONE, /* setgid */ [47] = NONE, /* getgid */ [48] = NONE, /* signal */ [49] = NONE, /* geteuid */
[50] = NONE, /* getegid */ [52] = MOUNT, /* umount2 */ [54] = IOCTL(0), /* ioctl */ [55] = NONE, /* fcntl */ [57] = NONE, /* setpgid */
[59] = NONE, /* oldolduname */ [60] = NONE, /* umask */ [61] = MOUNT, /* chroot */ [63] = NONE, /* dup2 */ [64] = NONE, /* getppid */
[65] = NONE, /* getpgrp */ [66] = NONE, /* setsid */ [67] = NONE, /* sigaction */ [68] = NONE, /* sgetmask */ [69] = NONE, /* ssetmask */
[70] = NONE, /* setreuid */ [71] = NONE, /* setregid */ [72] = NONE, /* sigsuspend */ [73] = NONE, /* sigpending */ [74] = MOUNT, /* sethostname */
[75] = NONE, /* setrlimit */ [76] = NONE, /* getrlimit */ [77] = NONE, /* getrusage */ [78] = NONE, /* gettimeofday */ [80] = NONE, /* getgroups */
[81] = NONE, /* setgroups */ [82] = NONE, /* select */ [83] = NAME, /* symlink */ [84] = NONE, /* oldlstat */ [85] = NONE, /* readlink */
[87] = MOUNT, /* swapon */ [89] = NONE, /* readdir */ [91] = NONE, /* munmap */ [92] = SIZE_PATH, /* truncate */ [93] = SIZE(0), /* ftruncate */
[94] = META_FD(0), /* fchmod */ [95] = META_FD(0), /* fchown */ [96] = NONE, /* getpriority */ [97] = NONE, /* setpriority */
[99] = NONE, /* statfs */ [100] = NONE, /* fstatfs */ [104] = NONE, /* setitimer */ [105] = NONE, /* getitimer */ [106] = NONE, /* stat */
[107] = NONE, /* lstat */ [108] = NONE, /* fstat */ [109] = NONE, /* olduname */ [114] = NONE, /* wait4 */ [115] = MOUNT, /* swapoff */
[116] = NONE, /* sysinfo */ [117] = IPC, /* ipc */ [118] = NONE, /* fsync */ [119] = NONE, /* sigreturn */ [120] = NONE, /* clone */
[121] = MOUNT, /* setdomainname */ [122] = NONE, /* uname */ [125] = PROTECT, /* mprotect */ [126] = NONE, /* sigprocmask */
[132] = NONE, /* getpgid */ [133] = NONE, /* fchdir */ [136] = NONE, /* personality */ [138] = NONE, /* setfsuid */ [139] = NONE, /* setfsgid */
[140] = NONE, /* _llseek */ [141] = NONE, /* getdents */ [142] = NONE, /* _newselect */ [143] = NONE, /* flock */ [144] = NONE, /* msync */
[145] = NONE, /* readv */ [146] = WRITE(0), /* writev */ [147] = NONE, /* getsid */ [148] = NONE, /* fdatasync */ [150] = NONE, /* mlock */
[151] = NONE, /* munlock */ [152] = NONE, /* mlockall */ [153] = NONE, /* munlockall */ [154] = NONE, /* sched_setparam */
[155] = NONE, /* sched_getparam */ [156] = NONE, /* sched_setscheduler */ [157] = NONE, /* sched_getscheduler */ [158] = NONE, /* sched_yield */
[159] = NONE, /* sched_get_priority_max */ [160] = NONE, /* sched_get_priority_min */ [161] = NONE, /* sched_rr_get_interval */
[162] = NONE, /* nanosleep */ [163] = NONE, /* mremap */ [164] = NONE, /* setresuid */ [165] = NONE, /* getresuid */ [168] = NONE, /* poll */
[170] = NONE, /* setresgid */ [171] = NONE, /* getresgid */ [172] = NONE, /* prctl */ [173] = NONE, /* rt_sigreturn */
[174] = NONE, /* rt_sigaction */ [175] = NONE, /* rt_sigprocmask */ [176] = NONE, /* rt_sigpending */ [177] = NONE, /* rt_sigtimedwait */
[178] = NONE, /* rt_sigqueueinfo */ [179] = NONE, /* rt_sigsuspend */ [180] = NONE, /* pread64 */ [181] = WRITE(0), /* pwrite64 */
[182] = META, /* chown */ [183] = NONE, /* getcwd */ [184] = NONE, /* capget */ [185] = NONE, /* capset */ [186] = NONE, /* sigaltstack */
[187] = WRITE(0), /* sendfile */ [190] = NONE, /* vfork */ [191] = NONE, /* ugetrlimit */ [192] = MMAP(4), /* mmap2 */
[193] = SIZE_PATH, /* truncate64 */ [194] = SIZE(0), /* ftruncate64 */ [195] = NONE, /* stat64 */ [196] = NONE, /* lstat64 */
[197] = NONE, /* fstat64 */ [198] = META, /* lchown32 */ [199] = NONE, /* getuid32 */ [200] = NONE, /* getgid32 */ [201] = NONE, /* geteuid32 */
[202] = NONE, /* getegid32 */ [203] = NONE, /* setreuid32 */ [204] = NONE, /* setregid32 */ [205] = NONE, /* getgroups32 */
[206] = NONE, /* setgroups32 */ [207] = META_FD(0), /* fchown32 */ [208] = NONE, /* setresuid32 */ [209] = NONE, /* getresuid32 */
[210] = NONE, /* setresgid32 */ [211] = NONE, /* getresgid32 */ [212] = META, /* chown32 */ [213] = NONE, /* setuid32 */ [214] = NONE, /* setgid32 */
[215] = NONE, /* setfsuid32 */ [216] = NONE, /* setfsgid32 */ [217] = MOUNT, /* pivot_root */ [218] = NONE, /* mincore */
[219] = ADVISE, /* madvise */ [220] = NONE, /* getdents64 */ [221] = NONE, /* fcntl64 */ [224] = NONE, /* gettid */ [225] = NONE, /* readahead */
[226] = META, /* setxattr */ [227] = META, /* lsetxattr */ [228] = META_FD(0), /* fsetxattr */ [229] = NONE, /* getxattr */
[230] = NONE, /* lgetxattr */ [231] = NONE, /* fgetxattr */ [232] = NONE, /* listxattr */ [233] = NONE, /* llistxattr */
[234] = NONE, /* flistxattr */ [235] = META, /* removexattr */ [236] = META, /* lremovexattr */ [237] = META_FD(0), /* fremovexattr */
[238] = NONE, /* tkill */ [239] = WRITE(0), /* sendfile64 */ [240] = NONE, /* futex */ [241] = NONE, /* sched_setaffinity */
[242] = NONE, /* sched_getaffinity */ [243] = NONE, /* set_thread_area */ [244] = NONE, /* get_thread_area */ [245] = NONE, /* io_setup */
[246] = NONE, /* io_destroy */ [247] = NONE, /* io_getevents */ [248] = AIO, /* io_submit */ [249] = NONE, /* io_cancel */
[250] = NONE, /* fadvise64 */ [252] = NONE, /* exit_group */ [254] = NONE, /* epoll_create */ [255] = NONE, /* epoll_ctl */
[256] = NONE, /* epoll_wait */ [258] = NONE, /* set_tid_address */ [259] = NONE, /* timer_create */ [260] = NONE, /* timer_settime */
[261] = NONE, /* timer_gettime */ [262] = NONE, /* timer_getoverrun */ [263] = NONE, /* timer_delete */ [265] = NONE, /* clock_gettime */
[266] = NONE, /* clock_getres */ [267] = NONE, /* clock_nanosleep */ [268] = NONE, /* statfs64 */ [269] = NONE, /* fstatfs64 */
[270] = NONE, /* tgkill */ [271] = META, /* utimes */ [272] = NONE, /* fadvise64_64 */ [274] = NONE, /* mbind */ [275] = NONE, /* get_mempolicy */
[276] = NONE, /* set_mempolicy */ [277] = IPC, /* mq_open */ [278] = IPC, /* mq_unlink */ [279] = IPC, /* mq_timedsend */
[280] = IPC, /* mq_timedreceive */ [281] = NONE, /* mq_notify */ [282] = IPC, /* mq_getsetattr */ [284] = NONE, /* waitid */
[289] = NONE, /* ioprio_set */ [290] = NONE, /* ioprio_get */ [291] = NONE, /* inotify_init */ [292] = NONE, /* inotify_add_watch */
[293] = NONE, /* inotify_rm_watch */ [294] = PEER, /* migrate_pages */ [295] = OPEN(2), /* openat */ [296] = NAME, /* mkdirat */
[297] = NAME, /* mknodat */ [298] = META, /* fchownat */ [299] = META, /* futimesat */ [300] = NONE, /* fstatat64 */ [301] = NAME, /* unlinkat */
[302] = NAME, /* renameat */ [303] = NAME, /* linkat */ [304] = NAME, /* symlinkat */ [305] = NONE, /* readlinkat */ [306] = META, /* fchmodat */
[307] = NONE, /* faccessat */ [308] = NONE, /* pselect6 */ [309] = NONE, /* ppoll */ [310] = MOUNT, /* unshare */ [311] = NONE, /* set_robust_list */
[312] = NONE, /* get_robust_list */ [313] = WRITE(2), /* splice */ [314] = NONE, /* sync_file_range */ [315] = NONE, /* tee */
[316] = NONE, /* vmsplice */ [317] = PEER, /* move_pages */ [318] = NONE, /* getcpu */ [319] = NONE, /* epoll_pwait */ [320] = META, /* utimensat */
[321] = NONE, /* signalfd */ [322] = NONE, /* timerfd_create */ [323] = NONE, /* eventfd */ [324] = SIZE(0), /* fallocate */
[325] = NONE, /* timerfd_settime */ [326] = NONE, /* timerfd_gettime */ [327] = NONE, /* signalfd4 */ [328] = NONE, /* eventfd2 */
[329] = NONE, /* epoll_create1 */ [330] = NONE, /* dup3 */ [331] = NONE, /* pipe2 */ [332] = NONE, /* inotify_init1 */ [333] = NONE, /* preadv */
[334] = WRITE(0), /* pwritev */ [335] = NONE, /* rt_tgsigqueueinfo */ [336] = NONE, /* perf_event_open */ [337] = NONE, /* recvmmsg */
[338] = NONE, /* fanotify_init */ [339] = NONE, /* fanotify_mark */ [340] = NONE, /* prlimit64 */ [341] = NONE, /* name_to_handle_at */
[342] = OPEN(2), /* open_by_handle_at */ [344] = NONE, /* syncfs */ [345] = NONE, /* sendmmsg */ [346] = MOUNT, /* setns */
[347] = NONE, /* process_vm_readv */ [348] = PEER, /* process_vm_writev */ [349] = NONE, /* kcmp */ [351] = NONE, /* sched_setattr */
[352] = NONE, /* sched_getattr */ [353] = NAME, /* renameat2 */ [354] = NONE, /* seccomp */ [355] = NONE, /* getrandom */
[356] = NONE, /* memfd_create */ [358] = NONE, /* execveat */ [359] = NONE, /* socket */ [360] = NONE, /* socketpair */ [361] = BIND, /* bind */
[362] = NONE, /* connect */ [363] = NONE, /* listen */ [364] = NONE, /* accept4 */ [365] = NONE, /* getsockopt */ [366] = NONE, /* setsockopt */
[367] = NONE, /* getsockname */ [368] = NONE, /* getpeername */ [369] = NONE, /* sendto */ [370] = NONE, /* sendmsg */ [371] = NONE, /* recvfrom */
[372] = NONE, /* recvmsg */ [373] = NONE, /* shutdown */ [374] = NONE, /* userfaultfd */ [375] = NONE, /* membarrier */ [376] = NONE, /* mlock2 */
[377] = WRITE(2), /* copy_file_range */ [378] = NONE, /* preadv2 */ [379] = WRITE(0), /* pwritev2 */ [380] = PROTECT, /* pkey_mprotect */
[381] = NONE, /* pkey_alloc */ [382] = NONE, /* pkey_free */ [383] = NONE, /* statx */ [384] = NONE, /* arch_prctl */
[385] = NONE, /* io_pgetevents */ [386] = NONE, /* rseq */ [393] = IPC, /* semget */ [394] = IPC, /* semctl */ [395] = IPC, /* shmget */
[396] = IPC, /* shmctl */ [397] = NONE, /* shmat */ [398] = NONE, /* shmdt */ [399] = IPC, /* msgget */ [400] = IPC, /* msgsnd */
[401] = IPC, /* msgrcv */ [402] = IPC, /* msgctl */ [403] = NONE, /* clock_gettime64 */ [406] = NONE, /* clock_getres_time64 */
[407] = NONE, /* clock_nanosleep_time64 */ [408] = NONE, /* timer_gettime64 */ [409] = NONE, /* timer_settime64 */
[410] = NONE, /* timerfd_gettime64 */ [411] = NONE, /* timerfd_settime64 */ [412] = META, /* utimensat_time64 */ [413] = NONE, /* pselect6_time64 */
[414] = NONE, /* ppoll_time64 */ [416] = NONE, /* io_pgetevents_time64 */ [417] = NONE, /* recvmmsg_time64 */ [418] = IPC, /* mq_timedsend_time64 */
[419] = IPC, /* mq_timedreceive_time64 */ [420] = IPC, /* semtimedop_time64 */ [421] = NONE, /* rt_sigtimedwait_time64 */
[422] = NONE, /* futex_time64 */ [423] = NONE, /* sched_rr_get_interval_time64 */ [424] = NONE, /* pidfd_send_signal */
[425] = RING, /* io_uring_setup */ [426] = NONE, /* io_uring_enter */ [427] = NONE, /* io_uring_register */ [428] = MOUNT, /* open_tree */
[429] = MOUNT, /* move_mount */ [430] = MOUNT, /* fsopen */ [431] = MOUNT, /* fsconfig */ [432] = MOUNT, /* fsmount */ [433] = MOUNT, /* fspick */
[434] = NONE, /* pidfd_open */ [435] = NONE, /* clone3 */ [436] = NONE, /* close_range */ [437] = OPENAT2, /* openat2 */
[438] = PEER, /* pidfd_getfd */ [439] = NONE, /* faccessat2 */ [440] = PEER, /* process_madvise */ [441] = NONE, /* epoll_pwait2 */
[442] = MOUNT, /* mount_setattr */ [444] = NONE, /* landlock_create_ruleset */ [445] = NONE, /* landlock_add_rule */
[446] = NONE, /* landlock_restrict_self */ [447] = NONE, /* memfd_secret */ [448] = PEER, /* process_mrelease */ [449] = NONE, /* futex_waitv */
[450] = NONE, /* set_mempolicy_home_node */ [451] = NONE, /* cachestat */ [452] = META, /* fchmodat2 */ [453] = NONE, /* map_shadow_stack */
[454] = NONE, /* futex_wake */ [455] = NONE, /* futex_wait */ [456] = NONE, /* futex_requeue */ [457] = NONE, /* statmount */
[458] = NONE, /* listmount */ [459] = NONE, /* lsm_get_self_attr */ [460] = NONE, /* lsm_set_self_attr */ [461] = NONE, /* lsm_list_modules */
[462] = NONE, /* mseal */ [463] = META, /* setxattrat */ [464] = NONE, /* getxattrat */ [465] = NONE, /* listxattrat */
[466] = META, /* removexattrat */ [467] = MOUNT, /* open_tree_attr */ [468] = NONE, /* file_getattr */ [469] = META, /* file_setattr */
