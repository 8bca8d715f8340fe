/* The sources of a summary: one in its own fields, or several in its list `sources`. */
#include "exporter/score/summary.h"

#include "exporter/base/doc.h"
#include "exporter/base/problems.h"
#include "exporter/score/summary_read.h"

#include <inttypes.h>

enum {
    RANGE_DEFAULT_S = 3600,
    RANGE_MAX_S = 366 * 86400,
    STEP_DEFAULT_S = 60,
    STEP_MAX_S = 86400,
    POINTS_MAX = 11000, /* per series; Prometheus rejects more */
};

static const char *const source_keys[] = {
    "sourceType",
    "sourceEndpoint",
    "sourceEndpointAuthName",
    "sourceEndpointAuthKey",
    "sourceQuery",
    "sourceRange",
    "sourceStep",
    NULL,
};

static char *read_query(struct summary_reader *r)
{
    static const char what[] = "a PromQL query";
    struct str s = {0};
    size_t at = 0;

    if (!node_given(r->map, "sourceQuery"))
        node_missing(r->map, "sourceQuery", r->p, what);
    else if (!node_str(r->map, "sourceQuery", r->p, &s))
        return NULL;
    else if (summary_next_query(s, &at).n == 0)
        node_expected(node_get(r->map, "sourceQuery"), r->p, what);
    else
        return field_keep(r, s);
    return NULL;
}

static void check_points(struct summary_reader *r, int64_t range, int64_t step)
{
    const struct node *n = node_given(r->map, "sourceStep");

    if (range / step <= POINTS_MAX)
        return;
    node_problem(n ? n : node_get(r->map, "sourceRange"), r->p, PROBLEM_WARNING,
                 "%" PRId64 " s at a step of %" PRId64 " s is %" PRId64
                 " points per series; Prometheus rejects more than 11,000",
                 range, step, range / step + 1);
}

/* Reads the fields of the reader's map into *s; returns the type. */
static enum source_type read_source(struct summary_reader *r, struct summary_source *s)
{
    *s = (struct summary_source){.range_s = RANGE_DEFAULT_S, .step_s = STEP_DEFAULT_S};
    if (field_choice(r, "sourceType", "Prometheus", "None"))
        return SOURCE_NONE;
    s->endpoint = field_url(r, "sourceEndpoint", "/api/v1/query_range");
    field_secret(r, "sourceEndpointAuthName", "sourceEndpointAuthKey", &s->auth);
    s->query = read_query(r);
    s->range_s = field_seconds(r, "sourceRange", RANGE_MAX_S, RANGE_DEFAULT_S);
    s->step_s = field_seconds(r, "sourceStep", STEP_MAX_S, STEP_DEFAULT_S);
    check_points(r, s->range_s, s->step_s);
    return SOURCE_PROMETHEUS;
}

/* Takes the strings of *first. */
static void set_first(struct summary *s, const struct summary_source *first)
{
    s->source_endpoint = first->endpoint;
    s->source_auth = first->auth;
    s->source_query = first->query;
    s->source_range_s = first->range_s;
    s->source_step_s = first->step_s;
}

/* Entries of type None are skipped. */
static void read_source_entry(struct summary_reader *all, const struct node *map, struct summary *s)
{
    struct summary_reader r = {.map = map, .unknown = all->unknown, .p = all->p};
    struct summary_source one;

    if (map->kind != NODE_MAP) {
        node_expected(map, r.p, "a source: an object with sourceEndpoint, sourceQuery and so on");
        return;
    }
    node_only_keys(map, source_keys, r.unknown, r.p);
    if (read_source(&r, &one) == SOURCE_PROMETHEUS) {
        if (s->source_type == SOURCE_NONE)
            set_first(s, &one);
        else
            s->more_sources[s->n_more_sources++] = one;
        s->source_type = SOURCE_PROMETHEUS;
    }
    all->no_memory |= r.no_memory;
}

static void read_source_list(struct summary_reader *r, const struct node *list, struct summary *s)
{
    s->source_type = SOURCE_NONE;
    if (list->n > SUMMARY_MAX_SOURCES) {
        node_problem(list, r->p, PROBLEM_ERROR, "expected at most %d sources, got %zu", SUMMARY_MAX_SOURCES,
                     list->n);
        return;
    }
    s->more_sources = list->n > 1 ? calloc(list->n - 1, sizeof(*s->more_sources)) : NULL;
    if (list->n > 1 && !s->more_sources) {
        r->no_memory = true;
        return;
    }
    for (size_t i = 0; i < list->n; i++)
        read_source_entry(r, list->items[i], s);
}

void summary_read_sources(struct summary_reader *r, struct summary *s)
{
    const struct node *list = node_given(r->map, "sources");
    struct summary_source none = {.range_s = RANGE_DEFAULT_S, .step_s = STEP_DEFAULT_S}, one;

    set_first(s, &none);
    if (list && list->kind != NODE_LIST) {
        node_expected(list, r->p, "a list of sources");
    } else if (list && list->n) { /* a Go program writes none as an empty list */
        read_source_list(r, list, s);
    } else {
        s->source_type = read_source(r, &one);
        set_first(s, &one);
    }
}
