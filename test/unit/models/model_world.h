/* One call of a model, from a request's text to the answer's. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/models/model.h"
#include "exporter/models/wire.h"

/* Scores `in` into `out` at one of the model's endpoints; what else comes of it is in *s. */
static inline int model_call_endpoint(const struct model *m, const void *state, size_t endpoint,
                                      struct str in, struct buf *out, struct scoring *s)
{
    int r, e;

    *s = (struct scoring){.endpoint = endpoint};
    buf_truncate(out, 0);
    results_begin(&s->results, out);
    request_begin(&s->request, in);
    r = m->score(state, s);
    e = request_end(&s->request);
    return r ?: e ?: results_end(&s->results);
}

static inline int model_call(const struct model *m, const void *state, struct str in, struct buf *out,
                             struct scoring *s)
{
    return model_call_endpoint(m, state, 0, in, out, s);
}
