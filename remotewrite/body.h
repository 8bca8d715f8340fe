/* Request bodies, made from a record's payload: a snappy block of remote write 1.0. */
#ifndef DS_REMOTEWRITE_BODY_H
#define DS_REMOTEWRITE_BODY_H

#include "exporter/base/buf.h"
#include "remotewrite/config.h"
#include "remotewrite/families.h"

enum { BODY_MAX = 256 << 20 };

/* Appends the decompressed message. -EBADMSG if the block is not snappy, -EFBIG past BODY_MAX, -ENOMEM. */
MUST_USE int body_unpack(struct str block, struct buf *into);
/* Splits a message into its series: a slice for each TimeSeries, with tag and length. *ret from malloc.
 * -EBADMSG, -ENOMEM. */
MUST_USE int body_series(struct str message, struct str **ret, size_t *ret_n);
/* A part of a payload. */
struct body_part {
    size_t from, to;            /* series [from, to) */
    const bool *skip;           /* by series: leave it out; NULL: none. Not all */
    const struct families *own; /* for 2.0: metadata of the program's own metrics; NULL: they are scores */
};
/* Appends a body in this form with a part of a payload. -EBADMSG, -ENOMEM, -EFBIG. */
MUST_USE int body_make(enum rw_form form, struct str block, const struct body_part *part, struct buf *into);
/* A hash of the series' labels. */
uint64_t body_series_hash(struct str series);
/* Appends a request of 1.0 or vm that carries only metadata; nothing if there is none. -ENOMEM, -EFBIG. */
MUST_USE int body_metadata(enum rw_form form, const struct families *families, struct buf *into);
/* Appends the name of an encoded series, `name{label="value",...}`. -EBADMSG, -ENOMEM, -EFBIG. */
MUST_USE int body_series_name(struct str series, struct buf *into);
/* Appends a line for each sample of a payload, `name{...} value timestamp`. -EBADMSG, -ENOMEM, -EFBIG. */
MUST_USE int body_print(struct str block, struct buf *into);

#endif
