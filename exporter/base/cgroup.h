/* What the machine or the container allows this process. Asked once, at the start. */
#pragma once

#include <stdint.h>

/* The lowest memory limit of the process's cgroup and those above it (version 2, or the memory controller
 * of version 1), or else the machine's memory. `root` is put before the paths of /proc and /sys; ""
 * outside of tests. */
uint64_t memory_limit(const char *root);
