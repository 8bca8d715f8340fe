/* Memory of the process: how much it may use, and large pages. */
#ifndef DS_BASE_MEMORY_H
#define DS_BASE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* The lowest limit of the process's cgroup and those above it (version 2, or the memory controller of version
 * 1), or else the machine's memory. `root` is put before the paths of /proc and /sys; "" outside of tests. */
uint64_t memory_limit(const char *root);
/* For memory just allocated or grown: asks the kernel for pages of 2 MiB if it is large enough. Most of
 * the cost of memory that is written once and freed is page faults: a quarter of a large round. */
void huge_pages(void *p, size_t n);

#endif
