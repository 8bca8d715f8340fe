/* One summary's fields: which there are, their defaults, their bounds. */
#include "exporter/score/summary_read.h"

#include "exporter/base/num.h"

#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <strings.h>

enum {
    SCORE_NAME_MAX = 1024,
    SECRET_NAME_MAX = 253, /* as Kubernetes names objects */
    RANGE_DEFAULT_S = 3600,
    RANGE_MAX_S = 366 * 86400,
    STEP_DEFAULT_S = 60,
    STEP_MAX_S = 86400,
    POINTS_MAX = 11000, /* Prometheus refuses more a series */
    INTERVAL_DEFAULT_S = 60,
    INTERVAL_MAX_S = 7 * 86400,
    TIMEOUT_MAX_MS = 3600 * 1000,
};

static const char *const keys[] = {
    "name",
    "scoreName",
    "sourceType",
    "sourceEndpoint",
    "sourceEndpointAuthName",
    "sourceEndpointAuthKey",
    "sourceQuery",
    "sourceRange",
    "sourceStep",
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

/* One entry while it is read. Memory that runs out is remembered, so that each field is one line. */
struct reader {
    const struct node *map;
    struct problems *p;
    bool no_memory;
};

static char *keep(struct reader *r, struct str text)
{
    char *copy = str_dup(text);

    if (!copy)
        r->no_memory = true;
    return copy;
}

/* A string; NULL when it is absent, empty or none. */
static char *read_text(struct reader *r, const char *key)
{
    struct str s = {0};

    return node_str(r->map, key, r->p, &s) && s.n ? keep(r, s) : NULL;
}

static char *read_score_name(struct reader *r)
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
        return keep(r, s);
    return NULL;
}

/* Which of two words, in any case; the first is the default. */
static bool read_choice(struct reader *r, const char *key, const char *first, const char *second)
{
    struct str s = {0};

    if (!node_str(r->map, key, r->p, &s) || s.n == 0 || str_eq_nocase(s, str_of(first)))
        return false;
    if (str_eq_nocase(s, str_of(second)))
        return true;
    node_expected(node_get(r->map, key), r->p, "%s or %s", first, second);
    return false;
}

/* Whole seconds. Zero is what a Go program writes for a number that was never set. */
static int64_t read_seconds(struct reader *r, const char *key, int64_t max, int64_t fallback)
{
    const struct node *n = node_given(r->map, key);
    int64_t v;

    if (!n || (node_to_int(n, &v) && v == 0))
        return fallback;
    if (node_to_int(n, &v) && v >= 1 && v <= max)
        return v;
    node_expected(n, r->p, "a whole number of seconds from 1 to %" PRId64, max);
    return fallback;
}

static bool is_file_name(struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
              c == '_' || c == '.'))
            return false;
    }
    return s.n > 0 && s.n <= SECRET_NAME_MAX && s.p[0] != '.';
}

static char *read_file_name(struct reader *r, const char *key)
{
    struct str s = {0};

    if (!node_str(r->map, key, r->p, &s) || s.n == 0)
        return NULL;
    if (is_file_name(s))
        return keep(r, s);
    node_expected(node_get(r->map, key), r->p,
                  "at most 253 letters, digits, '-', '_' and '.', not starting with '.'");
    return NULL;
}

static bool is_set(const struct reader *r, const char *key)
{
    const struct node *n = node_given(r->map, key);

    return n && !(n->kind == NODE_STRING && n->text.n == 0);
}

/* Name and key become parts of a path; one without the other would be a token silently not sent. */
static void read_secret(struct reader *r, const char *name_key, const char *key_key, struct secret_ref *ret)
{
    bool has_name = is_set(r, name_key), has_key = is_set(r, key_key);

    ret->name = read_file_name(r, name_key);
    ret->key = read_file_name(r, key_key);
    if (has_name && !has_key)
        node_problem(node_get(r->map, name_key), r->p, PROBLEM_ERROR, "%s must be set too", key_key);
    else if (has_key && !has_name)
        node_problem(node_get(r->map, key_key), r->p, PROBLEM_ERROR, "%s must be set too", name_key);
}

/* libcurl takes "http:/host" and "http:///host" too; nobody means them. */
static bool has_scheme_and_host(const char *url)
{
    size_t n = strncasecmp(url, "http://", 7) == 0 ? 7 : strncasecmp(url, "https://", 8) == 0 ? 8 : 0;

    return n && url[n] != '\0' && url[n] != '/';
}

/* *ret: the URL as written, or with the path put in where it has none. False for what is no URL. */
static bool complete_url(struct reader *r, const char *url, const char *path, char **ret)
{
    CURLU *u = curl_url();
    char *there = NULL, *whole = NULL;
    CURLUcode c = u ? curl_url_set(u, CURLUPART_URL, url, 0) : CURLUE_OUT_OF_MEMORY;

    if (c == CURLUE_OK)
        c = curl_url_get(u, CURLUPART_PATH, &there, 0);
    if (c == CURLUE_OK && strcmp(there, "/") == 0) {
        c = curl_url_set(u, CURLUPART_PATH, path, 0);
        if (c == CURLUE_OK)
            c = curl_url_get(u, CURLUPART_URL, &whole, 0);
    }
    if (c == CURLUE_OK)
        *ret = keep(r, str_of(whole ? whole : url));
    curl_free(there);
    curl_free(whole);
    curl_url_cleanup(u);
    if (c == CURLUE_OUT_OF_MEMORY)
        r->no_memory = true;
    return c == CURLUE_OK || c == CURLUE_OUT_OF_MEMORY;
}

static char *read_url(struct reader *r, const char *key, const char *path)
{
    static const char what[] = "an absolute http or https URL with a host";
    CLEANUP(cleanup_free) char *url = NULL;
    struct str s = {0};
    char *whole = NULL;

    if (!node_given(r->map, key)) {
        node_missing(r->map, key, r->p, what);
        return NULL;
    }
    if (!node_str(r->map, key, r->p, &s))
        return NULL;
    url = keep(r, str_trim(s));
    if (url && (!has_scheme_and_host(url) || !complete_url(r, url, path, &whole)))
        node_expected(node_get(r->map, key), r->p, what);
    return whole;
}

static char *read_query(struct reader *r)
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
        return keep(r, s);
    return NULL;
}

static void warn_of_points(struct reader *r, int64_t range, int64_t step)
{
    const struct node *n = node_given(r->map, "sourceStep");

    if (range / step <= POINTS_MAX)
        return;
    node_problem(n ? n : node_get(r->map, "sourceRange"), r->p, PROBLEM_WARNING,
                 "%" PRId64 " seconds in steps of %" PRId64 " are %" PRId64
                 " points a series, and Prometheus refuses more than 11,000",
                 range, step, range / step + 1);
}

static void read_source(struct reader *r, struct summary *s)
{
    s->source_range_s = RANGE_DEFAULT_S;
    s->source_step_s = STEP_DEFAULT_S;
    s->source_type = read_choice(r, "sourceType", "Prometheus", "None") ? SOURCE_NONE : SOURCE_PROMETHEUS;
    if (s->source_type == SOURCE_NONE)
        return;
    s->source_endpoint = read_url(r, "sourceEndpoint", "/api/v1/query_range");
    read_secret(r, "sourceEndpointAuthName", "sourceEndpointAuthKey", &s->source_auth);
    s->source_query = read_query(r);
    s->source_range_s = read_seconds(r, "sourceRange", RANGE_MAX_S, RANGE_DEFAULT_S);
    s->source_step_s = read_seconds(r, "sourceStep", STEP_MAX_S, STEP_DEFAULT_S);
    warn_of_points(r, s->source_range_s, s->source_step_s);
}

static void read_scoring(struct reader *r, struct summary *s)
{
    s->scoring_endpoint = read_url(r, "scoringEndpoint", "/scoring");
    read_secret(r, "scoringEndpointAuthName", "scoringEndpointAuthKey", &s->scoring_auth);
    s->interval_ms = 1000 * read_seconds(r, "scoringInterval", INTERVAL_MAX_S, INTERVAL_DEFAULT_S);
    (void)node_duration(r->map, "timeout", r->p, 0, TIMEOUT_MAX_MS, &s->timeout_ms);
    s->location = read_choice(r, "location", "Internal", "External") ? LOCATION_EXTERNAL : LOCATION_INTERNAL;
}

static enum score_aggregation read_aggregation(struct reader *r)
{
    static const char *const words[] = {[AGGREGATE_LAST] = "last",
                                        [AGGREGATE_AVG] = "avg",
                                        [AGGREGATE_MAX] = "max",
                                        [AGGREGATE_MIN] = "min",
                                        [AGGREGATE_SUM] = "sum"};
    struct str s = {0};

    if (!node_str(r->map, "scoreAggregation", r->p, &s) || s.n == 0)
        return AGGREGATE_LAST;
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (str_eq_nocase(s, str_of(words[i])))
            return (enum score_aggregation)i;
    node_expected(node_get(r->map, "scoreAggregation"), r->p, "last, avg, max, min or sum");
    return AGGREGATE_LAST;
}

static bool read_bound(struct reader *r, const struct node *range, const char *key, double *ret)
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

static void read_range(struct reader *r, struct summary *s)
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

/* What becomes of the scores on the hub. */
static void read_destination(struct reader *r, struct summary *s)
{
    int64_t fallback = 0;

    s->destination = read_choice(r, "scoreDestination", "AddOnPlacementScore", "None")
                         ? DESTINATION_NONE
                         : DESTINATION_PLACEMENT_SCORE;
    s->dimension_format = read_text(r, "scoreDimensionFormat");
    if (!s->dimension_format)
        s->dimension_format = keep(r, STR("${scoreName}"));
    s->aggregation = read_aggregation(r);
    read_range(r, s);
    s->has_fallback =
        node_given(r->map, "fallbackScore") && node_int(r->map, "fallbackScore", r->p, -100, 100, &fallback);
    s->fallback = (int)fallback;
}

int summary_read(struct summary *s, const struct node *map, enum problem_kind unknown, struct problems *p)
{
    struct reader r = {.map = map, .p = p};

    if (map->kind != NODE_MAP) {
        node_expected(map, p, "a summary: an object with scoreName, scoringEndpoint and so on");
        return 0;
    }
    node_only_keys(map, keys, unknown, p);
    s->line = map->line;
    s->column = map->column;
    s->score_name = read_score_name(&r);
    s->name = read_text(&r, "name");
    if (!s->name && s->score_name)
        s->name = keep(&r, str_of(s->score_name));
    read_source(&r, s);
    read_scoring(&r, s);
    read_destination(&r, s);
    return r.no_memory ? -ENOMEM : 0;
}
