/* Large pages for large memory. */
#ifndef DS_BASE_HUGE_H
#define DS_BASE_HUGE_H

#include <stddef.h>

/* For memory just allocated or grown: asks the kernel for pages of 2 MiB if it is large enough. Most of
 * the cost of memory that is written once and freed is page faults: a quarter of a large round. Kernels
 * without huge pages ignore it. */
void huge_pages(void *p, size_t n);

#endif
