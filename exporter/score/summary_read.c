/* The fields of a summary, their defaults and bounds. */
#include "exporter/score/summary_read.h"

#include "exporter/base/problems.h"
#include "exporter/num/num.h"

#include <errno.h>
#include <math.h>

enum {
    SCORE_NAME_MAX = 1024,
    INTERVAL_DEFAULT_S = 60,
    INTERVAL_MAX_S = 7 * 86400,
    TIMEOUT_MAX_MS = 3600 * 1000,
    CHUNK_BYTES = 1024,
};

static const char *const summary_keys[] = {
    "name",
    "scoreName",
    "sourceType",
    "sourceEndpoint",
    "sourceEndpointAuthName",
    "sourceEndpointAuthKey",
    "sourceQuery",
    "sourceRange",
    "sourceStep",
    "sources",
    "scoringEndpoint",
    "scoringInterval",
    "scoringEndpointAuthName",
    "scoringEndpointAuthKey",
    "location",
    "scoreDestination",
    "scoreDimensionFormat",
    "scoreAggregation",
    "scoreRange",
    "fallbackScore",
    "timeout",
    NULL,
};

static char *read_score_name(struct summary_reader *r)
{
    static const char what[] = "a name of 1 to 1024 bytes that is not blank";
    const struct node *n = node_given(r->map, "scoreName");
    struct str s = {0};

    if (!n)
        node_missing(r->map, "scoreName", r->p, what);
    else if (!node_str(r->map, "scoreName", r->p, &s))
        return NULL;
    else if (str_trim(s).n == 0 || s.n > SCORE_NAME_MAX)
        node_expected(n, r->p, what);
    else
        return field_keep(r, s);
    return NULL;
}

static void read_scoring_fields(struct summary_reader *r, struct summary *s)
{
    static const char *const locations[] = {
        [LOCATION_INTERNAL] = "Internal", [LOCATION_EXTERNAL] = "External", NULL};

    s->scoring_endpoint = field_url(r, "scoringEndpoint", "/scoring");
    field_secret(r, "scoringEndpointAuthName", "scoringEndpointAuthKey", &s->scoring_auth);
    s->interval_ms = 1000 * field_seconds(r, "scoringInterval", INTERVAL_MAX_S, INTERVAL_DEFAULT_S);
    (void)node_duration(r->map, "timeout", r->p, 0, TIMEOUT_MAX_MS, &s->timeout_ms);
    s->location = field_choice(r, "location", locations);
}

static bool read_bound(struct summary_reader *r, const struct node *range, const char *key, double *ret)
{
    static const char what[] = "a finite number";
    const struct node *n = node_given(range, key);

    if (!n) {
        node_missing(range, key, r->p, what);
        return false;
    }
    if ((n->kind == NODE_INT || n->kind == NODE_DOUBLE) && num_parse_word(n->text, ret) == NUM_OK &&
        isfinite(*ret))
        return true;
    node_expected(n, r->p, what);
    return false;
}

static void read_range(struct summary_reader *r, struct summary *s)
{
    static const char *const bounds[] = {"min", "max", NULL};
    const struct node *n = node_given(r->map, "scoreRange");
    bool min, max;

    if (!n)
        return;
    if (n->kind != NODE_MAP) {
        node_expected(n, r->p, "an object with min and max");
        return;
    }
    node_only_keys(n, bounds, PROBLEM_ERROR, r->p);
    min = read_bound(r, n, "min", &s->range_min);
    max = read_bound(r, n, "max", &s->range_max);
    s->has_range = min && max;
    if (s->has_range && !(s->range_min < s->range_max && isfinite(s->range_max - s->range_min)))
        node_problem(n, r->p, PROBLEM_ERROR, "min must be less than max, and their difference finite");
}

static void read_destination_fields(struct summary_reader *r, struct summary *s)
{
    static const char *const destinations[] = {
        [DESTINATION_PLACEMENT_SCORE] = "AddOnPlacementScore", [DESTINATION_NONE] = "None", NULL};
    static const char *const aggregations[] = {
        [AGGREGATE_LAST] = "last", [AGGREGATE_AVG] = "avg", [AGGREGATE_MAX] = "max",
        [AGGREGATE_MIN] = "min",   [AGGREGATE_SUM] = "sum", NULL};
    int64_t fallback = 0;

    s->destination = field_choice(r, "scoreDestination", destinations);
    s->dimension_format = field_text(r, "scoreDimensionFormat");
    if (!s->dimension_format)
        s->dimension_format = field_keep(r, STR("${scoreName}"));
    s->aggregation = field_choice(r, "scoreAggregation", aggregations);
    read_range(r, s);
    s->has_fallback =
        node_given(r->map, "fallbackScore") && node_int(r->map, "fallbackScore", r->p, -100, 100, &fallback);
    s->fallback = (int)fallback;
}

int summary_read(struct summary *s, const struct node *map, enum problem_kind unknown, bool check_queries,
                 struct problems *p)
{
    struct summary_reader r = {.map = map, .unknown = unknown, .check_queries = check_queries, .p = p};

    s->memory = xcalloc(1, sizeof(*s->memory));
    *s->memory = (struct summary_memory){.refs = 1, .arena = {.chunk_bytes = CHUNK_BYTES}};
    r.arena = &s->memory->arena;
    if (map->kind != NODE_MAP) {
        node_expected(map, p, "a summary: an object with scoreName, scoringEndpoint and so on");
        return 0;
    }
    node_only_keys(map, summary_keys, unknown, p);
    s->line = map->line;
    s->column = map->column;
    s->score_name = read_score_name(&r);
    s->name = field_text(&r, "name");
    if (!s->name && s->score_name)
        s->name = field_keep(&r, str_of(s->score_name));
    summary_read_sources(&r, s);
    read_scoring_fields(&r, s);
    read_destination_fields(&r, s);
    return r.no_memory ? -ENOMEM : 0;
}
