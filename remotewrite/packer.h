/* Packs series into a snappy block (frame.h): a compressor that knows where the numbers are. It copies labels
 * from earlier series, and never a value or a timestamp, which change each round. What it writes for a series
 * begins and ends with an element of its own, and no element reaches into two series:
 *
 *     labels, with tag and length: copies and literals | the rest of the labels 0x12 N 0x09 VALUE 0x10 TIME
 *                                                        one literal, in which the value is
 *
 * Any thread; whoever has a packer calls it. */
#pragma once

#include "exporter/base/str.h"
#include "exporter/num/num.h"

enum {
    PACKER_WINDOW = 65535, /* the reach of a copy element of three bytes */
    SAMPLE_FIXED = 10,     /* bytes of a Sample beside its timestamp: tag, value, tag */
    VALUE_TO_TIME = 9,     /* from a value to its timestamp */
};

/* Where four bytes were seen, and the end of their labels, past which a copy must not read. */
struct packer_seen {
    uint32_t at, end; /* end 0: unused */
};

/* The message is never whole in memory: what copies can reach is enough. Positions count its bytes. */
struct packer {
    char *raw; /* the end of the message so far, from position `begin` on; owned */
    size_t raw_cap;
    char *end;                /* of what is in raw */
    uint32_t begin;           /* position of raw */
    uint32_t oldest;          /* nothing before this position is copied */
    uint32_t literal;         /* start of the bytes not yet packed */
    char *out;                /* end of the block so far, which the caller owns and has room for */
    struct packer_seen *seen; /* owned */
};

/* Bytes of a TimeSeries of one sample, uncompressed, with tag and length. */
static inline size_t packer_series_size(size_t labels_n, size_t time_n)
{
    size_t n = labels_n + 2 + SAMPLE_FIXED + time_n;

    return 1 + varint_size(n) + n;
}

/* The room that a series of so many bytes takes in a block, at most. */
static inline size_t packer_series_room(size_t size)
{
    return size + size / 6 + 8;
}

void packer_init(struct packer *k);
void packer_done(struct packer *k);
/* Packs a series with the value zero to k->out. Returns where its value is there. */
char *packer_put(struct packer *k, struct str labels, size_t time_n, int64_t at);
/* The next series follows the one with these labels, wherever that was packed, and copies from it alone.
 * Empty labels: it copies from none. */
void packer_learn(struct packer *k, struct str labels, size_t time_n, int64_t at);
/* Writes an element that copies n >= 4 bytes from so far back; returns its end. */
char *packer_put_copy(char *out, size_t back, size_t n);
