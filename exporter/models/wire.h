/* The bodies of POST /scoring.
 *
 * A request, {"data":[{"metric":{..},"values":[[seconds,"value"],..]},..]}, is read series by series in one
 * pass. A series may have `value`, one sample, instead of `values`, as instant queries give it. One without
 * either, such as a native histogram, is skipped and counted. The first error of reading or writing is kept:
 * later calls do nothing, so loops end. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/base/json.h"

enum { REQUEST_MAX_SERIES = 1000000, WHY_BYTES = 256 };

struct input_series {
    struct str metric; /* the labels: a JSON object, as it came */
    /* Unix time in seconds, and the value, which may not be finite. Valid until the next series is read. */
    const double *times, *values;
    size_t n;
};

struct request {
    struct jr j;
    struct str body;
    bool in_data, has_data;
    size_t n_series; /* read so far, the current one and those without values included */
    size_t n_without_values;
    double *times, *values;
    size_t n, cap; /* samples of the current series; room */
    int error;
    char why[WHY_BYTES]; /* for -EINVAL and -E2BIG: "data[3].values[2]: expected ..." */
};

/* The body must outlive the reader. */
void request_begin(struct request *rq, struct str body);
/* False at the end, or after an error. */
bool request_next(struct request *rq, struct input_series *ret);
/* Frees the reader, after a check of the rest. -EINVAL, -E2BIG for more than REQUEST_MAX_SERIES. */
MUST_USE int request_end(struct request *rq);
/* Frees the reader; the rest of the body is not read. */
void request_abandon(struct request *rq);

/* The value of a label, raw between its quotes (jr_unescape()); false if there is none. */
bool series_label(struct str metric, const char *name, struct str *ret_raw);

struct result {
    struct str metric;  /* a JSON object, valid */
    struct str meta;    /* the label `meta`, which replaces one of the series; NULL: none */
    double score;       /* finite */
    struct str members; /* more members for people, which agents ignore: `,"error":0.5`; or empty */
};

/* The answer, {"results":[{"metric":{..},"score":1.5},..]} */
struct results {
    struct buf *out;
    struct buf_mark mark; /* where they begin in it */
    size_t n;             /* written so far */
};

/* Appends to `out`. The first error is kept. */
void results_begin(struct results *rs, struct buf *out);
void results_add(struct results *rs, const struct result *r);
/* -EFBIG past the ceiling of the buffer. */
MUST_USE int results_end(struct results *rs);
/* Appends a number as the documents print it: 10.0 rather than 10. */
void put_decimal(struct buf *o, double v);
