/* Request bodies.
 *
 * A frame is a body of remote write 1.0, a snappy block of a WriteRequest, for a fixed list of series, with
 * every value and timestamp as a literal at a known offset. A round writes its numbers into a copy, the
 * payload of a record. All other bodies are made from a payload on demand. */
#pragma once

#include "exporter/base/buf.h"
#include "remotewrite/config.h"
#include "remotewrite/labels.h"

enum { BODY_MAX = 256 << 20 };

/* Prometheus' stale marker, and the ordinary NaN. */
#define RW_STALE_BITS 0x7ff0000000000002ull
#define RW_NAN_BITS   0x7ff8000000000001ull

struct frame {
    char *block;
    size_t block_n;
    size_t n;           /* series */
    uint32_t *value_at; /* offset of each series' value; the timestamp follows one byte after it */
    uint32_t *series;   /* index of each series in its set, and so of its value in a batch */
    size_t time_n;      /* bytes of a timestamp */
    size_t raw_n;       /* bytes of the message before compression */
};

/* A frame of n series of l from `first` on, or of fewer if the message would exceed 48 MiB. It serves for
 * timestamps that take as many bytes as `at`. */
struct frame *frame_new(const struct label_bytes *l, size_t first, size_t n, int64_t at);
struct frame *frame_free(struct frame *f);
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

/* What follows appends to a buffer: -EBADMSG for what is no encoded request, -EFBIG past the ceiling. */

/* One block of several, a message of all their series. What a snappy block repeats it names by the distance,
 * so that it may follow another; only the length at its head goes. */
MUST_USE int body_join(const struct str *blocks, size_t n, struct buf *into);
/* The decompressed message. */
MUST_USE int body_unpack(struct str block, struct buf *into);
/* Splits a message into its series: a slice for each TimeSeries, with tag and length. *ret from malloc. */
MUST_USE int body_series(struct str message, struct str **ret, size_t *ret_n);
/* The labels of the series of a payload are appended; they get no indices. */
MUST_USE int body_labels(struct str block, struct label_bytes *into);
/* A body in this form with these series of a 1.0 message. For 2.0: `own` has the metadata of the program's
 * own metrics; NULL: they are scores. */
MUST_USE int body_make(enum rw_form form, const struct str *series, size_t n, const struct families *own,
                       struct buf *into);
/* A request of 1.0 or vm with metadata alone, which has no place beside samples; nothing without any. */
MUST_USE int metadata_body(enum rw_form form, const struct families *families, struct buf *into);
/* A hash of the series' labels. */
uint64_t body_series_hash(struct str series);
/* The name of an encoded series, `name{label="value",...}`. */
MUST_USE int body_series_name(struct str series, struct buf *into);
/* A line for each sample of a payload, `name{...} value timestamp`. */
MUST_USE int body_print(struct str block, struct buf *into);
