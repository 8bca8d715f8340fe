/* Writes the summary as agents read it. */
#include "controller/hub/rules/effective_internal.h"
#include "exporter/score/summary.h"

#include <errno.h>

/* An object under construction, and the first error. */
struct text_object {
    json_t *o;
    int r;
};

static void text_set(struct text_object *m, const char *key, json_t *value)
{
    if (json_object_set_new(m->o, key, value) < 0)
        m->r = m->r ?: -ENOMEM;
}

/* A missing value is left out, for effective_check() to report. */
static void text_set_string(struct text_object *m, const char *key, const char *s)
{
    if (s)
        text_set(m, key, json_string(s));
}

static void text_set_secret(struct text_object *m, const char *name_key, const char *key_key,
                            struct token_ref ref)
{
    text_set_string(m, name_key, cstr(ref.name));
    text_set_string(m, key_key, cstr(ref.key));
}

static void text_set_endpoint(struct text_object *m, const char *key, const char *host, const char *path,
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
        text_set(m, key, json_stringn(url.p, url.n));
    m->r = m->r ?: r;
}

static void text_set_source(struct text_object *m, const struct source_spec *s, const char *query)
{
    text_set_string(m, "sourceType", source_type_word(s->type));
    if (!source_of_type(s->type)->path)
        text_set_string(m, "sourceEndpoint", "");
    else
        text_set_endpoint(m, "sourceEndpoint", s->host, s->path, NULL);
    text_set_secret(m, "sourceEndpointAuthName", "sourceEndpointAuthKey", s->auth.token);
    text_set_string(m, "sourceQuery", query);
    text_set(m, "sourceRange", json_integer(s->range_s));
    text_set(m, "sourceStep", json_integer(s->step_s));
}

static bool same_text(const char *a, const char *b)
{
    return strcmp(cstr(a), cstr(b)) == 0;
}

/* Whether both differ in the query alone: joined by `;`, they are one source, which older agents
 * understand, too. */
static bool same_place(const struct source_spec *a, const struct source_spec *b)
{
    return a->type == b->type && same_text(a->host, b->host) && same_text(a->path, b->path) &&
           a->range_s == b->range_s && a->step_s == b->step_s &&
           same_text(a->auth.token.name, b->auth.token.name) &&
           same_text(a->auth.token.key, b->auth.token.key);
}

/* Whether agents split it into the same queries, whatever quotes or comments the parts leave open. */
static bool splits_back(const struct merged *m, struct str joined)
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

/* Appends the queries of all sources as one, if *ret_joined becomes true. */
static int join_queries(const struct merged *m, struct buf *into, bool *ret_joined)
{
    int r = 0;

    *ret_joined = false;
    for (size_t i = 1; i < m->n_sources; i++)
        if (!same_place(&m->sources[0], &m->sources[i]))
            return 0;
    for (size_t i = 0; i < m->n_sources && r == 0; i++) {
        struct str query = str_trim(str_of(m->sources[i].query));

        r = (i ? buf_putc(into, ';') : 0) ?: buf_put_str(into, query);
    }
    *ret_joined = r == 0 && splits_back(m, buf_str(into));
    return r ?: buf_putc(into, '\0');
}

static json_t *text_sources(const struct merged *m, int *r)
{
    json_t *list = json_array();

    for (size_t i = 0; i < m->n_sources; i++) {
        struct text_object each = {.o = json_object()};

        text_set_source(&each, &m->sources[i], m->sources[i].query);
        if (json_array_append_new(list, each.o) < 0)
            each.r = each.r ?: -ENOMEM;
        *r = *r ?: each.r;
    }
    return list;
}

/* Sets *ret_list when `sources` is needed, too. */
static void text_set_sources(struct text_object *m, const struct merged *from, size_t source, bool all,
                             json_t **ret_list)
{
    const struct source_spec *s = &from->sources[source];
    BUF_AUTO(joined, SUMMARY_MAX_BYTES);
    bool is_joined = false;

    if (from->n_sources == 0) {
        text_set_source(m, &(struct source_spec){.type = SOURCE_NONE}, "");
        return;
    }
    if (all && from->n_sources > 1)
        m->r = m->r ?: join_queries(from, &joined, &is_joined);
    text_set_source(m, s, is_joined ? joined.p : s->query);
    if (all && from->n_sources > 1 && !is_joined)
        *ret_list = text_sources(from, &m->r);
}

static void text_set_value(struct text_object *m, const char *key, const json_t *v)
{
    int64_t n;

    if (v && kube_int(v, &n, NULL))
        text_set(m, key, json_integer(n));
    else if (v)
        text_set(m, key, json_incref((json_t *)(uintptr_t)v));
}

static void text_set_destination(struct text_object *m, const struct scorer_spec *spec)
{
    text_set_string(m, "location", spec->location ?: "Internal");
    text_set_string(m, "scoreDestination", spec->destination ?: "AddOnPlacementScore");
    text_set_string(m, "scoreDimensionFormat", spec->dimension_format ?: "${scoreName}");
    text_set_string(m, "scoreAggregation", spec->aggregation);
    text_set_value(m, "scoreRange", spec->score_range);
    text_set_value(m, "fallbackScore", spec->fallback_score);
    text_set_value(m, "timeout", spec->timeout);
}

int merged_summary(json_t **ret, const struct merged *m, size_t source, bool all)
{
    json_auto_t *o = json_object(), *sources = NULL;
    struct text_object to = {.o = o};

    text_set_string(&to, "name", m->name);
    text_set_string(&to, "scoreName", m->score_name);
    text_set_sources(&to, m, source, all, &sources);
    text_set_endpoint(&to, "scoringEndpoint", m->scoring.host, m->scoring.path, m->params);
    text_set(&to, "scoringInterval", json_integer(m->scoring.interval_s));
    text_set_secret(&to, "scoringEndpointAuthName", "scoringEndpointAuthKey", m->scoring.auth.token);
    text_set_destination(&to, m->spec);
    if (sources)
        text_set(&to, "sources", json_incref(sources));
    if (to.r < 0)
        return to.r;
    *ret = json_incref(o);
    return 0;
}
