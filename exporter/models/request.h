/* Reads the body of POST /scoring, {"data":[{"metric":{..},"values":[[seconds,"value"],..]},..]}, series by
 * series in one pass. A series may have `value`, one sample, instead of `values`, as instant queries give it.
 *
 *     request_begin(&rq, body);
 *     while (request_next(&rq, &series))
 *         ...
 *     r = request_end(&rq);
 *
 * The first error is kept: later calls return false, so loops end. */
#ifndef DS_MODELS_REQUEST_H
#define DS_MODELS_REQUEST_H

#include "exporter/base/json.h"

enum { REQUEST_MAX_SERIES = 1000000, REQUEST_WHY_BYTES = 256 };

struct input_series {
    struct str metric; /* the JSON object, as it came */
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
    char why[REQUEST_WHY_BYTES]; /* for -EINVAL and -E2BIG: "data[3].values[2]: expected ..." */
};

/* The body must outlive the reader. */
void request_begin(struct request *rq, struct str body);
/* False at the end, or after an error. */
bool request_next(struct request *rq, struct input_series *ret);
/* Frees the reader, but not `why`. Whatever has not been read is checked, too. -EINVAL, -E2BIG for more than
 * REQUEST_MAX_SERIES, -ENOMEM. */
MUST_USE int request_end(struct request *rq);

/* Frees the reader; the rest of the body is not read. */
void request_abandon(struct request *rq);

/* The value of a label, raw between its quotes (jr_unescape()); false if there is none. */
bool series_label(struct str metric, const char *name, struct str *ret_raw);

#endif
