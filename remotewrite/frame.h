/* Bodies of remote write 1.0: a snappy block that holds a WriteRequest.
 *
 * A frame is such a block for a fixed list of series, made once, in which every value and timestamp stands as a literal at
 * a known place. A round copies it and writes its numbers into the copy: no packing, no compression. That works because
 * the packing here never lets a copy element reach into a number, neither as what is copied nor as what it makes. */
#ifndef DS_REMOTEWRITE_FRAME_H
#define DS_REMOTEWRITE_FRAME_H

#include "remotewrite/labels.h"

#include <string.h>

/* Bits that say "this series has ended", and the ordinary NaN. */
#define RW_STALE_BITS 0x7ff0000000000002ull
#define RW_NAN_BITS   0x7ff8000000000001ull

struct frame {
    char *block;
    size_t block_n;
    size_t n; /* series */
    uint32_t *
        value_at; /* of each series, where in the block its value stands; the timestamp follows a byte after */
    uint32_t *series; /* of each series, its place in the set: where its value is in a batch */
    unsigned time_n;  /* bytes of a timestamp */
    size_t raw_n;     /* of the message before compression */
};

/* For series `pick[0..n)` of l, or all from `first` on when pick is NULL. Timestamps must have as many bytes as `at` has.
 * -ENOMEM, -EFBIG. */
MUST_USE int frame_new(struct frame **ret, const struct label_bytes *l, const uint32_t *pick, size_t first,
                       size_t n, int64_t at);
struct frame *frame_free(struct frame *f);
DEFINE_CLEANUP(struct frame, frame_free)
/* How many bytes the timestamp takes: a frame serves for others that take as many. */
unsigned frame_time_bytes(int64_t at);
/* Copies the block to out (block_n bytes) with these values (by place in the set) and this time. A NaN becomes the
 * ordinary one. */
void frame_fill(const struct frame *f, char *out, const double *values, int64_t at);
/* The same with stale markers for values. */
void frame_fill_stale(const struct frame *f, char *out, int64_t at);
/* Bytes held. */
size_t frame_memory(const struct frame *f);

#endif
