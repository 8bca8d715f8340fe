/* Random numbers of the C library, which the kernel seeds. Any thread. */
#pragma once

#include <stdint.h>

/* 64 random bits, for jitter and names. */
uint64_t rand_u64(void);
/* Uniform in [0, n); 0 for n = 0. */
uint64_t rand_below(uint64_t n);
