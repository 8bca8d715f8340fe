/* Finds the whole pages in a block. A page has 4 KiB on amd64 and s390x, mostly 64 KiB on ppc64le, and
 * either on arm64. Owns nothing. */
#include "exporter/base/advice.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

void advise_pages(char *p, size_t n, int advice)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t skip = -(uintptr_t)p % page;

    (void)madvise(p + skip, (n - skip) / page * page, advice);
}
