/* The bodies of POST /scoring.
 *
 * A request, {"data":[{"metric":{..},"values":[[seconds,"value"],..]},..]}, is read series by series in one
 * pass. A series may have `value`, one sample, instead of `values`, as instant queries give it.
 *
 *     request_begin(&rq, body);
 *     while (request_next(&rq, &series))
 *         ...
 *     r = request_end(&rq);
 *
 * The first error of reading or writing is kept: later calls do nothing, so loops end. */
#ifndef DS_MODELS_WIRE_H
#define DS_MODELS_WIRE_H

#include "exporter/base/buf.h"
#include "exporter/base/json.h"

enum { REQUEST_MAX_SERIES = 1000000, WHY_BYTES = 256 };

struct input_series {
    struct str raw, metric; /* the series, and its labels: JSON objects, as they came */
    /* The samples, in their order: Unix time in seconds, and the value, which may be NaN or infinite. Valid
     * until the next series is read. */
    const double *times, *values;
    size_t n;
};

struct request {
    struct jr j;
    struct str body;
    bool in_data, has_data;
    size_t n_series; /* read so far, the current one included */
    double *times, *values;
    size_t n, cap; /* samples of the current series; room */
    int error;
    char why[WHY_BYTES]; /* for -EINVAL and -E2BIG: "data[3].values[2]: expected ..." */
};

/* The body must outlive the reader. */
void request_begin(struct request *rq, struct str body);
/* False at the end, or after an error. */
bool request_next(struct request *rq, struct input_series *ret);
/* Frees the reader, but not `why`. Whatever has not been read is checked, too. -EINVAL, -E2BIG for more than
 * REQUEST_MAX_SERIES. */
MUST_USE int request_end(struct request *rq);

/* Reads a series of an earlier request again, from its `raw`; request_abandon() follows. -ENOMEM, with an
 * empty series. */
MUST_USE int request_read_again(struct request *rq, struct str raw, struct input_series *ret);
/* Frees the reader; the rest of the body is not read. */
void request_abandon(struct request *rq);

/* The value of a label, raw between its quotes (jr_unescape()); false if there is none. */
bool series_label(struct str metric, const char *name, struct str *ret_raw);

/* A label that the model adds; it replaces one of the same name. */
struct result_label {
    const char *name;
    struct str value; /* UTF-8, not escaped */
};

struct result {
    struct str metric; /* a JSON object, valid */
    const struct result_label *labels;
    size_t n_labels;
    double score;       /* finite */
    struct str members; /* more members for people, which agents ignore: `,"error":0.5`; or empty */
};

/* The answer, {"results":[{"metric":{..},"score":1.5},..]} */
struct results {
    struct buf *out;
    size_t n; /* written so far */
    int error;
};

/* Appends to `out`. The first error is kept. */
void results_begin(struct results *rs, struct buf *out);
void results_add(struct results *rs, const struct result *r);
/* -ENOMEM; -EFBIG past the ceiling of the buffer. */
MUST_USE int results_end(struct results *rs);

#endif
