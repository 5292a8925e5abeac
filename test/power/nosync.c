// Preloaded: a system whose fsync does nothing.
int fsync(int fd) { return fd < 0 ? -1 : 0; }
int fdatasync(int fd) { return fd < 0 ? -1 : 0; }
