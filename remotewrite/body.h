/* Bodies as they go out, made from a record's payload (a snappy block of remote write 1.0). */
#ifndef DS_REMOTEWRITE_BODY_H
#define DS_REMOTEWRITE_BODY_H

#include "exporter/base/buf.h"
#include "remotewrite/config.h"

enum { BODY_MAX = 256 << 20 };

/* Appends the block's message. -EBADMSG for what is no snappy block, -EFBIG past BODY_MAX, -ENOMEM. */
MUST_USE int body_unpack(struct str block, struct buf *into);
/* Splits a message: one slice for each series (the TimeSeries' bytes with tag and length). *ret from malloc.
 * -EBADMSG, -ENOMEM. */
MUST_USE int body_series(struct str message, struct str **ret, size_t *ret_n);
/* The body, in this form, of the series [from, to) of a payload. In form 1.0 and for all series it is the payload itself.
 * -EBADMSG, -ENOMEM, -EFBIG. */
MUST_USE int body_make(enum rw_form form, struct str block, size_t from, size_t to, struct buf *into);
/* A request that only says type and help of families: for 1.0 and VictoriaMetrics' form. */
struct body_family {
    const char *name, *help;
    unsigned type; /* MetricMetadata.Type */
};
MUST_USE int body_metadata(enum rw_form form, const struct body_family *list, size_t n, struct buf *into);
/* Appends `name{label="value",...}` of the packed labels of a series, for logs and exports; or one line for each sample, `name{...} value
 * timestamp\n`. -EBADMSG, -ENOMEM, -EFBIG. */
MUST_USE int body_series_name(struct str series, struct buf *into);
MUST_USE int body_print(struct str block, struct buf *into);

#endif
