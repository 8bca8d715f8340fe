/* The sources of a summary: one in its own fields, or several in its list `sources`. */
#include "exporter/score/summary.h"

#include "exporter/base/arena.h"
#include "exporter/base/doc.h"
#include "exporter/base/problems.h"
#include "exporter/otlp/query.h"
#include "exporter/score/summary_read.h"

#include <errno.h>
#include <inttypes.h>

enum {
    RANGE_DEFAULT_S = 3600,
    RANGE_MAX_S = 366 * 86400,
    STEP_DEFAULT_S = 60,
    STEP_MAX_S = 86400,
    POINTS_MAX = 11000, /* per series; Prometheus rejects more, and so does the source OpenTelemetry */
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
static const struct summary_source no_source = {
    .type = SOURCE_NONE, .range_s = RANGE_DEFAULT_S, .step_s = STEP_DEFAULT_S};

static void check_placeholder(struct summary_reader *r, struct str queries)
{
    if (summary_query_uses_cluster(queries, false))
        node_problem(node_get(r->map, "sourceQuery"), r->p, PROBLEM_WARNING,
                     "${cluster} is replaced in string literals only, as in {cluster=\"${cluster}\"}");
}

static char *read_query(struct summary_reader *r, const char *what)
{
    struct str s = {0};
    size_t at = 0;

    if (!node_given(r->map, "sourceQuery"))
        node_missing(r->map, "sourceQuery", r->p, what);
    else if (!node_str(r->map, "sourceQuery", r->p, &s))
        return NULL;
    else if (summary_next_query(s, &at).n == 0)
        node_expected(node_get(r->map, "sourceQuery"), r->p, "%s", what);
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
                 " points per series; queries of more than 11,000 fail",
                 range, step, range / step + 1);
}

static void check_otlp(struct summary_reader *r, const char *queries)
{
    char why[QUERY_WHY_BYTES];
    int64_t reach;
    int e = summary_query_reach(queries, &reach, why);

    if (e == -EINVAL)
        node_problem(node_get(r->map, "sourceQuery"), r->p, r->unknown, "%s", why);
    r->no_memory |= e == -ENOMEM;
}

static bool has_endpoint(struct summary_reader *r)
{
    const struct node *n = node_given(r->map, "sourceEndpoint");

    return n && !(n->kind == NODE_STRING && str_trim(n->text).n == 0);
}

/* Reads the fields of the reader's map. */
static struct summary_source read_source(struct summary_reader *r)
{
    struct summary_source s = no_source;
    const struct source_ops *ops;

    s.type = source_type_at(field_choice(r, "sourceType", source_type_words));
    if (s.type == SOURCE_NONE)
        return s;
    ops = source_of_type(s.type);
    if (ops->path && (!ops->endpoint_is_optional || has_endpoint(r))) {
        s.endpoint = field_url(r, "sourceEndpoint", ops->path);
        field_secret(r, "sourceEndpointAuthName", "sourceEndpointAuthKey", &s.auth);
    }
    if (ops->query)
        s.query = read_query(r, ops->query);
    if (s.query)
        check_placeholder(r, str_of(s.query));
    s.range_s = field_seconds(r, "sourceRange", RANGE_MAX_S, RANGE_DEFAULT_S);
    s.step_s = field_seconds(r, "sourceStep", STEP_MAX_S, STEP_DEFAULT_S);
    check_points(r, s.range_s, s.step_s);
    if (s.type == SOURCE_OPENTELEMETRY && s.query && !has_endpoint(r) && r->check_queries)
        check_otlp(r, s.query);
    return s;
}

/* Entries of type None are skipped. */
static void read_source_entry(struct summary_reader *all, const struct node *map, struct summary *s)
{
    struct summary_reader r = *all;
    struct summary_source one;

    r.map = map;
    if (map->kind != NODE_MAP) {
        node_expected(map, r.p, "a source: an object with sourceEndpoint, sourceQuery and so on");
        return;
    }
    node_only_keys(map, source_keys, r.unknown, r.p);
    one = read_source(&r);
    if (s->source.type == SOURCE_NONE)
        s->source = one;
    else if (one.type != SOURCE_NONE)
        s->more_sources[s->n_more_sources++] = one;
    all->no_memory = r.no_memory;
}

static void read_source_list(struct summary_reader *r, const struct node *list, struct summary *s)
{
    if (list->n > SUMMARY_MAX_SOURCES) {
        node_problem(list, r->p, PROBLEM_ERROR, "expected at most %d sources, got %zu", SUMMARY_MAX_SOURCES,
                     list->n);
        return;
    }
    s->more_sources = arena_alloc(r->arena, list->n * sizeof(*s->more_sources));
    for (size_t i = 0; i < list->n; i++)
        read_source_entry(r, list->items[i], s);
}

void summary_read_sources(struct summary_reader *r, struct summary *s)
{
    const struct node *list = node_given(r->map, "sources");

    s->source = no_source;
    if (list && list->kind != NODE_LIST) {
        node_expected(list, r->p, "a list of sources");
    } else if (list && list->n) { /* a Go program writes none as an empty list */
        read_source_list(r, list, s);
    } else {
        s->source = read_source(r);
    }
}
