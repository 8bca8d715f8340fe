/* Powers of ten for num_read.c and num_write.c, 128 significant bits each, the high half first; the top
 * bit is set. What does not fit is cut off, except that powers -27 to -1 are rounded up: for these alone a
 * reader must be able to tell an exact tie, and multiplying by the cut-off value would put it just below. */
#ifndef DS_BASE_NUM_POW10_H
#define DS_BASE_NUM_POW10_H

#include <stdint.h>

enum {
    NUM_POW10_FIRST = -342,
    NUM_POW10_LAST = 324,
    NUM_POW10_EXACT_LAST = 55, /* 0 to this are exact: 5^55 is the last power of five below 2^128 */
    NUM_POW10_UP_FIRST = -27   /* this to -1 are rounded up */
};

extern const uint64_t num_pow10[NUM_POW10_LAST - NUM_POW10_FIRST + 1][2]
    __attribute__((visibility("hidden")));

#endif
