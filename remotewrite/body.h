/* Request bodies, made from a record's payload: a snappy block of remote write 1.0. */
#ifndef DS_REMOTEWRITE_BODY_H
#define DS_REMOTEWRITE_BODY_H

#include "exporter/base/buf.h"
#include "remotewrite/config.h"

enum { BODY_MAX = 256 << 20 };

/* Appends the decompressed message. -EBADMSG if the block is not snappy, -EFBIG past BODY_MAX, -ENOMEM. */
MUST_USE int body_unpack(struct str block, struct buf *into);
/* Splits a message into its series: a slice for each TimeSeries, with tag and length. *ret from malloc.
 * -EBADMSG, -ENOMEM. */
MUST_USE int body_series(struct str message, struct str **ret, size_t *ret_n);
/* Appends a body in this form with the series [from, to) of a payload. -EBADMSG, -ENOMEM, -EFBIG. */
MUST_USE int body_make(enum rw_form form, struct str block, size_t from, size_t to, struct buf *into);
/* A metric family, for a request of 1.0 or vm that carries only metadata. */
struct body_family {
    const char *name, *help;
    unsigned type; /* MetricMetadata.Type */
};
MUST_USE int body_metadata(enum rw_form form, const struct body_family *list, size_t n, struct buf *into);
/* Appends the name of an encoded series, `name{label="value",...}`. -EBADMSG, -ENOMEM, -EFBIG. */
MUST_USE int body_series_name(struct str series, struct buf *into);
/* Appends a line for each sample of a payload, `name{...} value timestamp`. -EBADMSG, -ENOMEM, -EFBIG. */
MUST_USE int body_print(struct str block, struct buf *into);

#endif
