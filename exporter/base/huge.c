#include "exporter/base/huge.h"

#include <stdint.h>
#include <sys/mman.h>

enum { PAGE_BYTES = 4096, HUGE_BYTES = 2 << 20 };

void huge_pages(void *p, size_t n)
{
    size_t skip = -(uintptr_t)p % PAGE_BYTES;

    if (n >= 2 * HUGE_BYTES)
        (void)madvise((char *)p + skip, (n - skip) / PAGE_BYTES * PAGE_BYTES, MADV_HUGEPAGE);
}
