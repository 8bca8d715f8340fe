/* A frame: a body of remote write 1.0, a snappy block of a WriteRequest, for a fixed list of series, with
 * every value and timestamp as a literal at a known offset. A round writes its numbers into a copy, the
 * payload of a record:
 *
 *     raw length | labels: copies and literals | 0x09 VALUE 0x10 TIME | labels | 0x09 VALUE 0x10 TIME ...
 *                                                     ^ value_at[0]                   ^ value_at[1]
 */
#pragma once

#include "remotewrite/labels.h"

/* Prometheus' stale marker, and the ordinary NaN. */
#define RW_STALE_BITS 0x7ff0000000000002ull
#define RW_NAN_BITS   0x7ff8000000000001ull

enum { FRAME_RAW_MAX = 48 << 20 /* compressed, it is smaller than RECORD_MAX in any case */ };

struct frame {
    char *block;
    size_t block_n;
    size_t n;           /* series */
    uint32_t *value_at; /* offset of each series' value; the timestamp follows one byte after it */
    uint32_t *series;   /* index of each series in its set, and so of its value in a batch */
    size_t time_n;      /* bytes of a timestamp */
    size_t raw_n;       /* bytes of the message before compression */
    size_t packed_n;    /* bytes of the block when all of it was packed together, */
    size_t packed;      /* and its series then */
};

/* A frame of n series of l from `first` on, or of fewer if the message would exceed FRAME_RAW_MAX. It serves
 * for timestamps that take as many bytes as `at`. */
struct frame *frame_new(const struct label_bytes *l, size_t first, size_t n, int64_t at);
struct frame *frame_free(struct frame *f);
/* Whether so much of the frame was revised that it takes clearly more bytes than if it was made anew. */
bool frame_is_loose(const struct frame *f);
/* A list of frames, which owns them. */
struct frames {
    struct frame **list;
    size_t n;
};

void frames_add(struct frames *f, struct frame *one);
/* Frees the frames; the list is empty then. */
void frames_done(struct frames *f);

/* Copies the block to out (block_n bytes) with this timestamp and these values, by index in the set. Every
 * NaN becomes the ordinary one. */
void frame_fill(const struct frame *f, char *out, const double *values, int64_t at);
/* Likewise with stale markers. */
void frame_fill_markers(const struct frame *f, char *out, int64_t at);
