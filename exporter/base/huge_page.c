/* Decides which blocks are worth huge pages. Owns nothing. */
#include "exporter/base/huge_page.h"

#include "exporter/base/advice.h"

#include <sys/mman.h>

enum { HUGE_PAGE_BYTES = 2 << 20 };

void huge_page_advise(char *block, size_t n)
{
    if (n >= 2 * HUGE_PAGE_BYTES)
        advise_pages(block, n, MADV_HUGEPAGE);
}
