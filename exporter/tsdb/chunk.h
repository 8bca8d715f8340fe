/* Compression of samples. A chunk is a head, which holds the first sample, and a stream of bits that holds
 * the others; README.md describes both. Nothing else is needed to read it. */
#ifndef DS_TSDB_CHUNK_H
#define DS_TSDB_CHUNK_H

#include "exporter/base/def.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    CHUNK_MAX_SAMPLES = UINT8_MAX,
    CHUNK_MAX_SAMPLE_BITS = 2 * (10 + 7 + 64),
    CHUNK_MAX_BYTES = (CHUNK_MAX_SAMPLES * CHUNK_MAX_SAMPLE_BITS + 7) / 8,
    CHUNK_MODE_XOR = 13, /* modes below it: decimal numbers with as many digits after the point */
    CHUNK_PAD = 8,       /* readable bytes that follow the stream wherever it is read */
};

struct chunk_head {
    int64_t t;     /* of the first sample */
    uint64_t v;    /* bits of its value */
    uint16_t bits; /* length of the stream */
    uint8_t count; /* of samples, the first one included; 1 to CHUNK_MAX_SAMPLES */
    uint8_t mode;
    uint8_t sizes[3]; /* of the codec at the begin, in quarter bits; UINT8_MAX: unknown */
};

/* What the next sample is encoded against: the same for the writer and the reader. */
struct chunk_codec {
    int64_t t, dt;     /* last timestamp, and its difference from the one before */
    uint64_t v;        /* bits of the last value */
    int64_t i, di;     /* in a decimal mode: the last value as an integer, and its difference */
    uint16_t sizes[3]; /* mean lengths of residuals in 1/256 bits; UINT16_MAX: unknown */
    uint8_t mode;
    uint8_t lead, width; /* of the last XOR */
    uint8_t raws;        /* values in a row that the decimal mode cannot express */
};

struct chunk_bits {
    unsigned char bytes[32];
    unsigned n;
};

/* Starts a chunk with its first sample. The codec of the chunk before gives the sizes; all zeros and
 * chunk_codec_init() for the first. */
void chunk_codec_init(struct chunk_codec *c);
void chunk_start(struct chunk_head *head, struct chunk_codec *c, int64_t t, uint64_t v);
/* Appends one sample to `out`, at most CHUNK_MAX_SAMPLE_BITS. */
void chunk_encode(struct chunk_codec *c, struct chunk_bits *out, int64_t t, uint64_t v);

struct chunk_reader {
    const unsigned char *p;
    uint32_t at, end; /* in bits */
    uint32_t left;    /* samples */
    bool first;
    struct chunk_codec codec;
};

/* The bytes of the stream are followed by CHUNK_PAD readable ones. */
void chunk_reader_init(struct chunk_reader *r, const struct chunk_head *head, const unsigned char *p);
/* 1 and the next sample, 0 after the last, -EBADMSG if the stream is damaged. */
MUST_USE int chunk_next(struct chunk_reader *r, int64_t *ret_t, uint64_t *ret_v);

#endif
