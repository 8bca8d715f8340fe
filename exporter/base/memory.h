/* How much memory the process may use. */
#ifndef DS_BASE_MEMORY_H
#define DS_BASE_MEMORY_H

#include <stdint.h>

/* The lowest limit of the process's cgroup and those above it (version 2, or the memory controller of version
 * 1), or else the machine's memory. `root` is put before the paths of /proc and /sys; "" outside of tests. */
uint64_t memory_limit(const char *root);

#endif
