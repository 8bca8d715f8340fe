/* Large blocks of memory that stay for the next large buffer, as the kernel clears each fresh page. Any
 * thread.
 *
 * What it is worth: a round of 10,000 series x 60 points takes 23 ms of CPU, 42 ms without it
 * (test/bench/run round, November 2026). Its price: up to four blocks count as the process's until they
 * are used again or freed, one a minute (trim.h). Peak memory is 46.0 MB instead of 43.8, and after such a
 * round 32 MB are anonymous instead of 6. The kernel may take them when it needs pages, and a container's
 * working set does not count them: 6.0 MB either way. */
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
