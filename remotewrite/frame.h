/* Bodies of remote write 1.0: a snappy block of a WriteRequest.
 *
 * A frame is such a block for a fixed list of series in which every value and timestamp is a literal at a
 * known offset. It is built once; a round copies it and writes its numbers into the copy, without packing
 * or compression. This works because the compressor here never emits a copy that reads from or writes to a
 * number. */
#ifndef DS_REMOTEWRITE_FRAME_H
#define DS_REMOTEWRITE_FRAME_H

#include "remotewrite/labels.h"

#include <string.h>

/* Prometheus' stale marker, and the ordinary NaN. */
#define RW_STALE_BITS 0x7ff0000000000002ull
#define RW_NAN_BITS   0x7ff8000000000001ull

struct frame {
    char *block;
    size_t block_n;
    size_t n; /* series */
    uint32_t
        *value_at;    /* offset of each series' value in the block; the timestamp follows one byte after it */
    uint32_t *series; /* index of each series in its set, and so of its value in a batch */
    unsigned time_n;  /* bytes of a timestamp */
    size_t raw_n;     /* bytes of the message before compression */
};

/* A frame of the series pick[0..n) of l, or of n series from `first` on if pick is NULL. It serves for
 * timestamps that take as many bytes as `at`. -ENOMEM, -EFBIG. */
MUST_USE int frame_new(struct frame **ret, const struct label_bytes *l, const uint32_t *pick, size_t first,
                       size_t n, int64_t at);
struct frame *frame_free(struct frame *f);
DEFINE_CLEANUP(struct frame, frame_free)
/* The bytes that a timestamp takes. */
unsigned frame_time_bytes(int64_t at);
/* Copies the block to out (block_n bytes) with this timestamp and these values, by index in the set, or
 * stale markers if values is NULL. Every NaN becomes the ordinary one. */
void frame_fill(const struct frame *f, char *out, const double *values, int64_t at);

#endif
