/* Large pages for large memory. */
#ifndef DS_BASE_HUGE_H
#define DS_BASE_HUGE_H

#include <stddef.h>

/* For memory that was just allocated or grown: asks the kernel to hand it out in pieces of 2 MiB, when it is large enough for
 * that. What is written once and freed costs mostly that handing out, page by page: a quarter of a large round.
 * A kernel that does not do so says no, which is fine. */
void huge_pages(void *p, size_t n);

#endif
