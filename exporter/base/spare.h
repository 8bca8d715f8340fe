/* Large blocks of memory that stay for the next large buffer. The kernel clears each fresh page, which was
 * half of the cost of a large round. Up to four blocks are kept; the kernel may take their pages when it
 * needs them, and until then they count as resident. Any thread. */
#pragma once

#include <stddef.h>

enum { SPARE_MIN_BYTES = 1 << 20 };

/* A block of n to 2 * n bytes, but of no more than max, which then belongs to the caller; sets *ret_size.
 * NULL without one. */
char *spare_take(size_t n, size_t max, size_t *ret_size);
/* Takes a block from malloc() of n bytes, at least SPARE_MIN_BYTES. */
void spare_keep(char *block, size_t n);
/* Frees one block, the oldest. */
void spare_trim(void);

/* Asks for huge pages in a new block of n bytes, where it is large enough to have several. */
void spare_use_huge_pages(char *block, size_t n);
