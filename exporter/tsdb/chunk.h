/* Compression of samples: a chunk is a stream of bits that is read from its begin, without anything else.
 *
 * A timestamp is the difference of its difference from the one before (0 at a steady interval: one bit). A
 * value that is a decimal number of few digits is scaled to an integer and stored as a difference, or as a
 * difference of differences, whichever was shorter lately; others are XORed with the one before. Sizes
 * adapt to what came before: README.md describes the format. */
#ifndef DS_TSDB_CHUNK_H
#define DS_TSDB_CHUNK_H

#include <stdbool.h>
#include <stdint.h>

/* What the next sample is encoded against: the same for who writes and who reads. */
struct chunk_codec {
    int64_t t, dt; /* last timestamp, and its difference from the one before */
    uint64_t v;    /* bits of the last value */
    int64_t i, di; /* in a decimal mode: the last value as an integer, and its difference */
    uint16_t t_size, d1_size, d2_size; /* mean size of residuals, in 1/256 bits */
    uint8_t mode, lead, width, raws;
};

struct chunk_reader {
    const unsigned char *p;
    uint32_t at, end; /* in bits */
    uint32_t left;    /* samples */
    struct chunk_codec codec;
};

#endif
