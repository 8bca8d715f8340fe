/* One call of a model, from a request's text to the answer's. */
#ifndef DS_TEST_UNIT_MODELS_MODEL_WORLD_H
#define DS_TEST_UNIT_MODELS_MODEL_WORLD_H

#include "exporter/base/buf.h"
#include "exporter/models/model.h"
#include "exporter/models/request.h"
#include "exporter/models/results.h"

/* A state with the settings' defaults; to be freed. NULL when out of memory. */
static inline void *model_state(const struct model *m)
{
    char *state = calloc(1, m->size);

    for (const struct setting *s = m->settings; state && s && s->name; s++) {
        if (!s->otherwise)
            continue;
        if (s->kind == SETTING_NUMBER)
            *(double *)(void *)(state + s->field) = strtod(s->otherwise, NULL);
        else if (s->kind == SETTING_COUNT)
            *(int64_t *)(void *)(state + s->field) = strtoll(s->otherwise, NULL, 10);
    }
    return state;
}

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

#endif
