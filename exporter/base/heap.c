/* The thresholds of glibc's malloc(). Owns nothing. */
#include "exporter/base/heap.h"

#include <malloc.h>

void heap_set_thresholds(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, 256 << 10);
    (void)mallopt(M_TRIM_THRESHOLD, 1 << 20);
}
