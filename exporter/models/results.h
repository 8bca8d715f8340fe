/* Writes the answer of POST /scoring: {"results":[{"metric":{..},"score":1.5},..]} */
#ifndef DS_MODELS_RESULTS_H
#define DS_MODELS_RESULTS_H

#include "exporter/base/buf.h"

/* A label that the model adds; it replaces one of the same name. */
struct result_label {
    const char *name;
    struct str value; /* UTF-8, not escaped */
};

struct result {
    struct str metric; /* a JSON object, valid */
    const struct result_label *labels;
    size_t n_labels;
    double score; /* finite */
    struct str
        members; /* more members for people, which agents ignore: `"error":0.5`, valid JSON; or empty */
};

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
