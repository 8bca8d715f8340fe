/* Where a summary's series come from: one source in the summary's own fields, or several in its list `sources`. */
#include "exporter/score/summary_read.h"

#include <inttypes.h>

enum {
    RANGE_DEFAULT_S = 3600,
    RANGE_MAX_S = 366 * 86400,
    STEP_DEFAULT_S = 60,
    STEP_MAX_S = 86400,
    POINTS_MAX = 11000, /* Prometheus refuses more a series */
};

static const char *const keys[] = {
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

static void warn_of_points(struct summary_reader *r, int64_t range, int64_t step)
{
    const struct node *n = node_given(r->map, "sourceStep");

    if (range / step <= POINTS_MAX)
        return;
    node_problem(n ? n : node_get(r->map, "sourceRange"), r->p, PROBLEM_WARNING,
                 "%" PRId64 " seconds in steps of %" PRId64 " are %" PRId64
                 " points a series, and Prometheus refuses more than 11,000",
                 range, step, range / step + 1);
}

/* The source in the reader's map; all but its type goes into *s. */
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
    warn_of_points(r, s->range_s, s->step_s);
    return SOURCE_PROMETHEUS;
}

/* Takes the source over. */
static void set_first(struct summary *s, const struct summary_source *first)
{
    s->source_endpoint = first->endpoint;
    s->source_auth = first->auth;
    s->source_query = first->query;
    s->source_range_s = first->range_s;
    s->source_step_s = first->step_s;
}

/* One entry of the list. Those that say None are left out. */
static void read_entry(struct summary_reader *all, const struct node *map, struct summary *s)
{
    struct summary_reader r = {.map = map, .unknown = all->unknown, .p = all->p};
    struct summary_source one;

    if (map->kind != NODE_MAP) {
        node_expected(map, r.p, "a source: an object with sourceEndpoint, sourceQuery and so on");
        return;
    }
    node_only_keys(map, keys, r.unknown, r.p);
    if (read_source(&r, &one) == SOURCE_PROMETHEUS) {
        if (s->source_type == SOURCE_NONE)
            set_first(s, &one);
        else
            s->more_sources[s->n_more_sources++] = one;
        s->source_type = SOURCE_PROMETHEUS;
    }
    all->no_memory |= r.no_memory;
}

static void read_list(struct summary_reader *r, const struct node *list, struct summary *s)
{
    s->source_type = SOURCE_NONE;
    if (list->n > SUMMARY_MAX_SOURCES) {
        node_problem(list, r->p, PROBLEM_ERROR, "%zu sources, and at most %d are allowed", list->n,
                     SUMMARY_MAX_SOURCES);
        return;
    }
    s->more_sources = list->n > 1 ? calloc(list->n - 1, sizeof(*s->more_sources)) : NULL;
    if (list->n > 1 && !s->more_sources) {
        r->no_memory = true;
        return;
    }
    for (size_t i = 0; i < list->n; i++)
        read_entry(r, list->items[i], s);
}

void summary_read_sources(struct summary_reader *r, struct summary *s)
{
    const struct node *list = node_given(r->map, "sources");
    struct summary_source none = {.range_s = RANGE_DEFAULT_S, .step_s = STEP_DEFAULT_S}, one;

    set_first(s, &none);
    if (list && list->kind != NODE_LIST) {
        node_expected(list, r->p, "a list of sources");
    } else if (list && list->n) { /* an empty one is what a Go program writes for none */
        read_list(r, list, s);
    } else {
        s->source_type = read_source(r, &one);
        set_first(s, &one);
    }
}
