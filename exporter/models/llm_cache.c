#include "exporter/models/llm_cache.h"

#include <stdlib.h>

enum { CAP_MIN = 256, CAP_MAX = 128 << 10, SLOTS_PER_SERIES = 4 };

static struct llm_answer *cache_slot(const struct llm_cache *c, uint64_t series)
{
    return &c->answers[series & (c->cap - 1)];
}

void llm_cache_reserve(struct llm_cache *c, size_t n_series)
{
    struct llm_cache more = {.cap = CAP_MIN};

    while (more.cap < CAP_MAX && more.cap / SLOTS_PER_SERIES < n_series)
        more.cap *= 2;
    if (more.cap <= c->cap)
        return;
    more.answers = calloc(more.cap, sizeof(*more.answers));
    if (!more.answers)
        return;
    for (size_t i = 0; i < c->cap; i++)
        if (c->answers[i].is_set)
            *cache_slot(&more, c->answers[i].series) = c->answers[i];
    llm_cache_done(c);
    *c = more;
}

bool llm_cache_get(const struct llm_cache *c, uint64_t series, uint64_t values, double *ret)
{
    const struct llm_answer *a = c->cap ? cache_slot(c, series) : NULL;

    if (!a || !a->is_set || a->series != series || a->values != values)
        return false;
    *ret = a->score;
    return true;
}

void llm_cache_put(struct llm_cache *c, uint64_t series, uint64_t values, double score)
{
    if (c->cap)
        *cache_slot(c, series) =
            (struct llm_answer){.series = series, .values = values, .score = score, .is_set = true};
}

void llm_cache_done(struct llm_cache *c)
{
    free(c->answers);
    *c = (struct llm_cache){0};
}
