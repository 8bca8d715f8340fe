/* The summary as agents read it. */
#include "controller/hub/rules/effective_internal.h"
#include "exporter/score/summary.h"

#include <errno.h>

/* An object in the making: the first failure stays. */
struct making {
    json_t *o;
    int r;
};

static void set(struct making *m, const char *key, json_t *value)
{
    if (json_object_set_new(m->o, key, value) < 0)
        m->r = m->r ?: -ENOMEM;
}

/* What is missing is left out, so that the summary's reader says so. */
static void set_text(struct making *m, const char *key, const char *s)
{
    if (s)
        set(m, key, json_string(s));
}

static void set_secret(struct making *m, const char *name_key, const char *key_key, struct token_ref ref)
{
    set_text(m, name_key, cstr(ref.name));
    set_text(m, key_key, cstr(ref.key));
}

static void set_endpoint(struct making *m, const char *key, const char *host, const char *path,
                         const json_t *params)
{
    BUF_AUTO(url, SUMMARY_MAX_BYTES);
    int r;

    if (!host)
        return;
    r = url_join(&url, host, path);
    if (r == 0 && params)
        r = url_add_params(&url, params);
    if (r == 0)
        set(m, key, json_stringn(url.p, url.n));
    m->r = m->r ?: r;
}

static void set_source(struct making *m, const struct source_spec *s, const char *query)
{
    set_text(m, "sourceType", "Prometheus");
    set_endpoint(m, "sourceEndpoint", s->host, s->path, NULL);
    set_secret(m, "sourceEndpointAuthName", "sourceEndpointAuthKey", s->auth.token);
    set_text(m, "sourceQuery", query);
    set(m, "sourceRange", json_integer(s->range_s));
    set(m, "sourceStep", json_integer(s->step_s));
}

static void set_no_source(struct making *m)
{
    set_text(m, "sourceType", "None");
    set_text(m, "sourceEndpoint", "");
    set_secret(m, "sourceEndpointAuthName", "sourceEndpointAuthKey", (struct token_ref){0});
    set_text(m, "sourceQuery", "");
    set(m, "sourceRange", json_integer(0));
    set(m, "sourceStep", json_integer(0));
}

static bool same_text(const char *a, const char *b)
{
    return strcmp(cstr(a), cstr(b)) == 0;
}

/* Whether one request form fits both: then agents that know of one source only get both queries. */
static bool same_place(const struct source_spec *a, const struct source_spec *b)
{
    return same_text(a->host, b->host) && same_text(a->path, b->path) && a->range_s == b->range_s &&
           a->step_s == b->step_s && same_text(a->auth.token.name, b->auth.token.name) &&
           same_text(a->auth.token.key, b->auth.token.key);
}

/* Whether agents would find the same queries in it, whatever quotes or comments the parts leave open. */
static bool reads_back(const struct merged *m, struct str joined)
{
    size_t at = 0;

    for (size_t i = 0; i < m->n_sources; i++) {
        struct str query = str_of(m->sources[i].query), one;
        size_t from = 0;

        while ((one = summary_next_query(query, &from)).n)
            if (!str_eq(one, summary_next_query(joined, &at)))
                return false;
    }
    return summary_next_query(joined, &at).n == 0;
}

/* Sets *can and, when it is true, appends the queries of all sources as one. */
static int join_queries(const struct merged *m, struct buf *into, bool *can)
{
    int r = 0;

    *can = false;
    for (size_t i = 1; i < m->n_sources; i++)
        if (!same_place(&m->sources[0], &m->sources[i]))
            return 0;
    for (size_t i = 0; i < m->n_sources && r == 0; i++) {
        struct str query = str_trim(str_of(m->sources[i].query));

        r = (i ? buf_putc(into, ';') : 0) ?: buf_put_str(into, query);
    }
    *can = r == 0 && reads_back(m, buf_str(into));
    return r ?: buf_putc(into, '\0');
}

static json_t *list_of_sources(const struct merged *m, int *r)
{
    json_t *list = json_array();

    for (size_t i = 0; i < m->n_sources; i++) {
        struct making each = {.o = json_object()};

        set_source(&each, &m->sources[i], m->sources[i].query);
        if (json_array_append_new(list, each.o) < 0)
            each.r = each.r ?: -ENOMEM;
        *r = *r ?: each.r;
    }
    return list;
}

/* Sets *list when `sources` is needed too. */
static void set_sources(struct making *m, const struct merged *from, size_t source, bool all, json_t **list)
{
    const struct source_spec *s = &from->sources[source];
    BUF_AUTO(joined, SUMMARY_MAX_BYTES);
    bool can = false;

    if (from->n_sources == 0) {
        set_no_source(m);
        return;
    }
    if (all && from->n_sources > 1)
        m->r = m->r ?: join_queries(from, &joined, &can);
    set_source(m, s, can ? joined.p : s->query);
    if (all && from->n_sources > 1 && !can)
        *list = list_of_sources(from, &m->r);
}

static void set_as_written(struct making *m, const char *key, const json_t *v)
{
    int64_t n;

    if (v && kube_int(v, &n, NULL))
        set(m, key, json_integer(n));
    else if (v)
        set(m, key, json_incref((json_t *)(uintptr_t)v));
}

static void set_destination(struct making *m, const struct scorer_spec *spec)
{
    set_text(m, "location", spec->location ?: "Internal");
    set_text(m, "scoreDestination", spec->destination ?: "AddOnPlacementScore");
    set_text(m, "scoreDimensionFormat", spec->dimension_format ?: "${scoreName}");
    set_text(m, "scoreAggregation", spec->aggregation);
    set_as_written(m, "scoreRange", spec->score_range);
    set_as_written(m, "fallbackScore", spec->fallback_score);
    set_as_written(m, "timeout", spec->timeout);
}

int merged_summary(json_t **ret, const struct merged *m, size_t source, bool all)
{
    json_auto_t *o = json_object(), *sources = NULL;
    struct making to = {.o = o};

    set_text(&to, "name", m->name);
    set_text(&to, "scoreName", m->score_name);
    set_sources(&to, m, source, all, &sources);
    set_endpoint(&to, "scoringEndpoint", m->scoring.host, m->scoring.path, m->params);
    set(&to, "scoringInterval", json_integer(m->scoring.interval_s));
    set_secret(&to, "scoringEndpointAuthName", "scoringEndpointAuthKey", m->scoring.auth.token);
    set_destination(&to, m->spec);
    if (sources)
        set(&to, "sources", json_incref(sources));
    if (to.r < 0)
        return to.r;
    *ret = json_incref(o);
    return 0;
}
