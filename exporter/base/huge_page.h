/* Huge pages for large buffers, whose first use is mostly the kernel's clearing of pages. Any thread.
 *
 * What it is worth: a first answer of 100,000 results takes 78 ms of CPU, 108 ms without it
 * (test/bench/run answer, November 2026). A round of 10,000 series, whose buffers are used again
 * (spare.h), takes the same. Its price: a buffer's last huge page may be resident as a whole, 2 MiB at
 * most. Where huge pages are off, the advice has no effect. */
#pragma once

#include <stddef.h>

/* Asks for huge pages in a new block of n bytes, where it is large enough to have several. */
void huge_page_advise(char *block, size_t n);
