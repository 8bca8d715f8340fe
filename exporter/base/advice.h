/* Advice to the kernel about the pages of a block. Any thread. */
#pragma once

#include <stddef.h>

/* madvise() for the whole pages in these n bytes, of which there are several. Advice that the kernel does
 * not take costs nothing. */
void advise_pages(char *p, size_t n, int advice);
