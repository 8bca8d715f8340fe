/* Request bodies. A payload is one already: the block of a frame (frame.h), filled in. All others are made
 * from a payload on demand. */
#pragma once

#include "exporter/base/buf.h"
#include "remotewrite/config.h"
#include "remotewrite/labels.h"

enum { BODY_MAX = 256 << 20 };

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
