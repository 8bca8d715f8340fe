/* Random numbers for jitter and names; not for secrets or keys. Any thread. */
#ifndef DS_BASE_RAND_H
#define DS_BASE_RAND_H

#include <stdint.h>

/* 64 random bits, seeded from the kernel on first use. */
uint64_t rand_u64(void);
/* Uniform in [0, n); 0 for n = 0. */
uint64_t rand_below(uint64_t n);

#endif
