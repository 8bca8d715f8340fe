/* Which document wins for each field. */
#include "controller/hub/rules/effective_internal.h"

#include <errno.h>

#define SCORING_PATH "/scoring"
enum { RANGE_S = 3600, STEP_S = 60, INTERVAL_S = 60 };

const struct source_spec *merged_fallback(const struct scorer_spec *spec, size_t i)
{
    if (spec->own.n_sources == 1)
        i = 0;
    return i < spec->own.n_sources ? &spec->own.sources[i] : NULL;
}

const struct source_spec *merged_token_source(const struct scorer_spec *spec, size_t i)
{
    if (i >= spec->own.n_sources)
        i = 0;
    return i < spec->own.n_sources ? &spec->own.sources[i] : NULL;
}

static struct source_spec merge_source(const struct merged *m, size_t i)
{
    static const struct source_spec nothing;
    const struct source_spec *own = merged_fallback(m->spec, i) ?: &nothing,
                             *owner = merged_token_source(m->spec, i) ?: &nothing,
                             *api = m->api && i < m->api->n_sources ? &m->api->sources[i] : &nothing;
    enum source_type type = api->type ?: own->type ?: SOURCE_PROMETHEUS;
    const char *path = source_of_type(type)->path; /* NULL: nothing is asked, so no token is needed */

    return (struct source_spec){
        .type = type,
        .host = api->host ?: own->host,
        .path = api->path ?: own->path ?: path,
        .query = api->query ?: own->query,
        .range_s = api->range_s ?: own->range_s ?: RANGE_S,
        .step_s = api->step_s ?: own->step_s ?: STEP_S,
        .auth = path ? owner->auth : nothing.auth,
    };
}

static void merge_sources(struct merged *m)
{
    size_t n = m->api && m->api->n_sources ? m->api->n_sources : m->spec->own.n_sources;

    m->has_sources = n > 0;
    for (size_t i = 0; i < n; i++) {
        struct source_spec s = merge_source(m, i);

        if (s.type == SOURCE_NONE)
            continue;
        m->index[m->n_sources] = i;
        m->sources[m->n_sources++] = s;
    }
}

static void merge_scoring(struct merged *m)
{
    static const struct scoring_spec nothing;
    const struct scoring_spec *own = &m->spec->own.scoring, *api = m->api ? &m->api->scoring : &nothing;

    m->scoring = (struct scoring_spec){
        .host = api->host ?: own->host ?: (*m->origin ? m->origin : NULL),
        .path = api->path ?: own->path ?: SCORING_PATH,
        .interval_s = api->interval_s ?: own->interval_s ?: INTERVAL_S,
        .auth = own->auth,
    };
}

static void merge_names(struct merged *m, const char *name)
{
    const struct api_config *own = &m->spec->own, *api = m->api;
    const char *api_name = api ? api->name : NULL;

    m->name = api_name ?: own->name ?: name;
    /* spec.name is an alias of the score's name; the name of /config is the last resort. */
    m->score_name = api ? api->scoring.score_name : NULL;
    m->score_name = m->score_name ?: own->scoring.score_name ?: own->name ?: api_name;
    if (!m->score_name && m->spec->mode == SYNC_NONE)
        m->score_name = name;
}

static int merge_params(struct merged *m)
{
    const json_t *own = m->spec->own.scoring.params, *api = m->api ? m->api->scoring.params : NULL;

    if (!own && !api)
        return 0;
    m->params = json_object();
    if (!m->params || (own && json_object_update(m->params, (json_t *)(uintptr_t)own) < 0) ||
        (api && json_object_update(m->params, (json_t *)(uintptr_t)api) < 0))
        return -ENOMEM;
    return 0;
}

int merged_init(struct merged *ret, const char *name, const struct scorer_spec *spec,
                const struct api_config *synced)
{
    CLEANUP(merged_done)
    struct merged m = {.spec = spec, .api = spec->mode == SYNC_FULL ? synced : NULL};
    int r = url_origin(cstr(spec->config_url), &m.origin);

    r = r ?: merge_params(&m);
    if (r < 0)
        return r;
    merge_names(&m, name);
    merge_sources(&m);
    merge_scoring(&m);
    *ret = m;
    m.origin = NULL;
    m.params = NULL;
    return 0;
}

void merged_done(struct merged *m)
{
    json_decref(m->params);
    free(m->origin);
    m->params = NULL;
    m->origin = NULL;
}
