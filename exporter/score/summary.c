/* Summaries: the fields with their defaults and bounds, and sharing. */
#include "exporter/score/summary.h"
#include "exporter/base/alloc.h"
#include "exporter/base/arena.h"
#include "exporter/score/format.h"
#include "exporter/score/scoring_url.h"

#include "exporter/base/map.h"
#include "exporter/http/http.h"
#include "exporter/num/num.h"
#include "exporter/otlp/query.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum {
    SINCE_MAX = 40,
    SCORE_NAME_MAX = 1024,
    SECRET_NAME_MAX = 253, /* as Kubernetes names objects */
    INTERVAL_DEFAULT_S = 60,
    INTERVAL_MAX_S = 7 * 86400,
    ROUND_MIN_MS = 10 * 1000, /* without a timeout, a round may take this long even in a shorter interval */
    TIMEOUT_MAX_MS = 3600 * 1000,
    RANGE_DEFAULT_S = 3600,
    RANGE_MAX_S = 366 * 86400,
    STEP_DEFAULT_S = 60,
    STEP_MAX_S = 86400,
    TOLERANCE_MAX = 50,
    POINTS_MAX = 11000, /* per series; Prometheus rejects more, and so does the source OpenTelemetry */
    AGE_MARGIN_MS = 60 * 1000,
    CHUNK_BYTES = 1024,
};

/* How far before its own time a point of these queries reads samples. -EINVAL if one of them is not
 * supported, with its place in `why`. */
static int queries_reach(const char *queries, int64_t *ret_ms, char why[QUERY_WHY_BYTES])
{
    struct str text = str_of(queries), query;
    size_t at = 0;

    *ret_ms = 0;
    while ((query = summary_next_query(text, &at)).n) {
        CLEANUP(cleanup_query_free) struct query *q = NULL;
        int r = query_parse(&q, text, query, why);

        if (r < 0)
            return r;
        if (q->reach_ms > *ret_ms)
            *ret_ms = q->reach_ms;
    }
    return 0;
}

int64_t summaries_otlp_age(const struct summaries *s)
{
    int64_t longest = 0;

    for (size_t i = 0; i < s->n; i++)
        for (size_t k = 0; k < s->list[i].n_sources; k++) {
            const struct summary_source *from = &s->list[i].sources[k];
            char why[QUERY_WHY_BYTES];
            int64_t reach;

            if (from->type != SOURCE_OPENTELEMETRY || from->endpoint ||
                queries_reach(from->query, &reach, why) < 0)
                continue;
            reach += (from->range_s + from->step_s) * 1000 + AGE_MARGIN_MS;
            if (reach > longest)
                longest = reach;
        }
    return longest;
}

/* ---- In memory ---- */

/* What the copies of a summary share. */
struct summary_memory {
    unsigned refs;
    struct arena arena;
};

void summary_done(struct summary *s)
{
    if (s->memory && --s->memory->refs == 0) {
        arena_done(&s->memory->arena);
        free(s->memory);
    }
    *s = (struct summary){0};
}

struct summary summary_copy(const struct summary *s)
{
    if (s->memory)
        s->memory->refs++;
    return *s;
}

static bool text_is_same(const char *a, const char *b)
{
    return !a == !b && strcmp(cstr(a), cstr(b)) == 0;
}

static bool same_secret(const struct secret_ref *a, const struct secret_ref *b)
{
    return text_is_same(a->name, b->name) && text_is_same(a->key, b->key);
}

static bool same_source(const struct summary_source *a, const struct summary_source *b)
{
    return a->type == b->type && text_is_same(a->endpoint, b->endpoint) && same_secret(&a->auth, &b->auth) &&
           text_is_same(a->query, b->query) && a->range_s == b->range_s && a->step_s == b->step_s;
}

int64_t summary_round_ms(const struct summary *s)
{
    if (s->timeout_ms != 0)
        return s->timeout_ms;
    return s->interval_ms > ROUND_MIN_MS ? s->interval_ms : ROUND_MIN_MS;
}

bool summary_same(const struct summary *a, const struct summary *b)
{
    if (a->n_sources != b->n_sources || a->n_items != b->n_items)
        return false;
    for (size_t i = 0; i < a->n_items; i++)
        if (!text_is_same(a->items[i].format, b->items[i].format) ||
            a->items[i].aggregation != b->items[i].aggregation)
            return false;
    for (size_t i = 0; i < a->n_sources; i++)
        if (!same_source(&a->sources[i], &b->sources[i]))
            return false;
    return text_is_same(a->name, b->name) && text_is_same(a->score_name, b->score_name) &&
           text_is_same(a->scoring_endpoint, b->scoring_endpoint) &&
           same_secret(&a->scoring_auth, &b->scoring_auth) && a->interval_ms == b->interval_ms &&
           a->timeout_ms == b->timeout_ms && a->location == b->location && a->destination == b->destination &&
           a->has_range == b->has_range && a->range_min == b->range_min && a->range_max == b->range_max &&
           a->has_fallback == b->has_fallback && a->fallback == b->fallback &&
           a->score_tolerance == b->score_tolerance && text_is_same(a->suspended_since, b->suspended_since);
}

void summaries_done(struct summaries *s)
{
    for (size_t i = 0; i < s->n; i++)
        summary_done(&s->list[i]);
    free(s->list);
    *s = (struct summaries){0};
}

/* ---- Fields by type ---- */

/* Reads the fields of a summary or of one of its sources. */
struct summary_reader {
    struct arena *arena; /* of the strings */
    const struct node *map;
    enum problem_kind unknown; /* the kind of unknown keys */
    bool check_queries; /* those of the source OpenTelemetry, as an agent without an engine reads them */
    struct problems *p;
};

/* Whole seconds from 1 to max; the fallback for zero, which a Go program writes for a number that was never
 * set. */
static int64_t field_seconds(struct summary_reader *r, const char *key, int64_t max, int64_t fallback)
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

/* Whether the field has a value other than an empty string, or one of only white space. */
static bool field_is_set(const struct summary_reader *r, const char *key)
{
    const struct node *n = node_given(r->map, key);

    return n && !(n->kind == NODE_STRING && str_trim(n->text).n == 0);
}

/* A string that must be there; false after a problem. */
static bool field_required(struct summary_reader *r, const char *key, const char *what, struct str *ret)
{
    if (node_given(r->map, key))
        return node_str(r->map, key, r->p, ret);
    node_missing(r->map, key, r->p, what);
    return false;
}

static char *field_file_name(struct summary_reader *r, const char *key)
{
    struct str s = {0};

    if (!node_str(r->map, key, r->p, &s) || s.n == 0)
        return NULL;
    if (s.n <= SECRET_NAME_MAX && s.p[0] != '.' && str_has_only(s, "-_."))
        return arena_text(r->arena, s);
    node_expected(node_get(r->map, key), r->p,
                  "at most 253 letters, digits, '-', '_' and '.', not starting with '.'");
    return NULL;
}

/* Without a key, the Secret has credentials of other kinds. */
static struct secret_ref field_secret(struct summary_reader *r, const char *name_key, const char *key_key)
{
    struct secret_ref ref = {field_file_name(r, name_key), field_file_name(r, key_key)};

    if (field_is_set(r, key_key) && !field_is_set(r, name_key))
        node_problem(node_get(r->map, key_key), r->p, PROBLEM_ERROR, "%s must be set too", name_key);
    return ref;
}

/* The URL, with the path added if it has none; NULL if it is not a URL. */
static char *complete_url(struct summary_reader *r, const char *url, const char *path)
{
    CURLU *u = curl_url();
    char *there = NULL, *whole = NULL, *kept = NULL;
    CURLUcode c = curl_url_set(u, CURLUPART_URL, url, 0) ?: curl_url_get(u, CURLUPART_PATH, &there, 0);

    if (c == CURLUE_OK && strcmp(there, "/") == 0)
        c = curl_url_set(u, CURLUPART_PATH, path, 0) ?: curl_url_get(u, CURLUPART_URL, &whole, 0);
    if (c == CURLUE_OK)
        kept = arena_text(r->arena, str_of(whole ? whole : url));
    curl_free(there);
    curl_free(whole);
    curl_url_cleanup(u);
    return kept;
}

/* Capitals and digits, joined by '_': what documentation writes for a name, as in NODE_IP. */
static bool is_shouted(struct str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] == '_' ? !i || i + 1 == s.n || s.p[i - 1] == '_'
                          : !((s.p[i] >= 'A' && s.p[i] <= 'Z') || (s.p[i] >= '0' && s.p[i] <= '9')))
            return false;
    return s.n && memchr(s.p, '_', s.n);
}

/* What was never replaced in a URL's host, by the rule of the CRD: <NodeIP>, $NODE_IP or ${NODE_IP}, NODE_IP.
 * Empty if there is none. A user or password may have such characters, and must not be shown: an '@' behind
 * the host may end a password with a '/'. */
static struct str url_placeholder(const char *url)
{
    const char *host = strstr(url, "//"), *end, *at;

    host = host ? host + 2 : url;
    end = host + strcspn(host, "/?#");
    if (strchr(end, '@'))
        return STR("");
    at = memrchr(host, '@', (size_t)(end - host));
    for (host = at ? at + 1 : host; host < end;) {
        struct str label = {host, size_min(strcspn(host, ".:"), (size_t)(end - host))};

        at = label.n ? memchr(label.p, '$', label.n) ?: memchr(label.p, '<', label.n) : NULL;
        if (at)
            return (struct str){at, (size_t)(label.p + label.n - at)};
        if (is_shouted(label))
            return label;
        host += label.n + 1;
    }
    return STR("");
}

/* A required URL; `path` is added if it has none. */
static char *field_url(struct summary_reader *r, const char *key, const char *path)
{
    static const char what[] = "an absolute http or https URL with a host";
    CLEANUP(cleanup_free) char *url = NULL;
    struct str s = {0}, placeholder;
    BUF_AUTO(shown, 512);
    char *whole;

    if (!field_required(r, key, what, &s))
        return NULL;
    url = str_dup(str_trim(s));
    placeholder = url_placeholder(url);
    whole = !placeholder.n && http_is_url(str_of(url)) ? complete_url(r, url, path) : NULL;
    if (placeholder.n) {
        problem_quote(placeholder, &shown);
        node_problem(node_get(r->map, key), r->p, PROBLEM_ERROR, "expected %s: replace the placeholder %.*s",
                     what, STR_ARG(buf_str(&shown)));
    } else if (!whole) {
        node_expected(node_get(r->map, key), r->p, what);
    }
    return whole;
}

/* ---- Sources: one in its own fields, or several in the list `sources` ---- */

static const char *const source_keys[] = {"sourceType",
                                          "sourceEndpoint",
                                          "sourceEndpointAuthName",
                                          "sourceEndpointAuthKey",
                                          "sourceQuery",
                                          "sourceRange",
                                          "sourceStep",
                                          NULL};

static char *read_query(struct summary_reader *r, const char *what)
{
    const struct node *node = node_get(r->map, "sourceQuery");
    struct str s = {0};
    size_t at = 0, n = 0;

    if (!field_required(r, "sourceQuery", what, &s))
        return NULL;
    while (n <= SUMMARY_MAX_QUERIES && summary_next_query(s, &at).n)
        n++;
    if (n > 0 && n <= SUMMARY_MAX_QUERIES)
        return arena_text(r->arena, s);
    if (n == 0)
        node_expected(node, r->p, "%s", what);
    else
        node_problem(node, r->p, PROBLEM_ERROR, "more than %d queries", SUMMARY_MAX_QUERIES);
    return NULL;
}

/* Reads the fields of the reader's map; a source of type None is skipped. */
static void read_source(struct summary_reader *r, struct summary *into)
{
    struct summary_source s = {.type = SOURCE_UNSET};
    const struct node *step = node_given(r->map, "sourceStep");
    const struct source_kind *kind;
    char why[QUERY_WHY_BYTES];
    int64_t reach;

    s.type = source_type_of(source_type_words[node_choice(r->map, "sourceType", r->p, source_type_words)]);
    if (s.type == SOURCE_NONE)
        return;
    kind = source_kind(s.type);
    if (!kind->endpoint_is_optional || field_is_set(r, "sourceEndpoint")) {
        s.endpoint = field_url(r, "sourceEndpoint", kind->path);
        s.auth = field_secret(r, "sourceEndpointAuthName", "sourceEndpointAuthKey");
    }
    s.query = read_query(r, kind->query);
    if (s.query && summary_query_uses_cluster(str_of(s.query), false))
        node_problem(node_get(r->map, "sourceQuery"), r->p, PROBLEM_WARNING,
                     "${cluster} is replaced in string literals only, as in {cluster=\"${cluster}\"}");
    s.range_s = field_seconds(r, "sourceRange", RANGE_MAX_S, RANGE_DEFAULT_S);
    s.step_s = field_seconds(r, "sourceStep", STEP_MAX_S, STEP_DEFAULT_S);
    if (s.range_s / s.step_s > POINTS_MAX)
        node_problem(step ? step : node_get(r->map, "sourceRange"), r->p, PROBLEM_WARNING,
                     "%" PRId64 " s at a step of %" PRId64 " s is %" PRId64
                     " points per series; queries of more than 11,000 fail",
                     s.range_s, s.step_s, s.range_s / s.step_s + 1);
    if (s.type == SOURCE_OPENTELEMETRY && s.query && !field_is_set(r, "sourceEndpoint") && r->check_queries &&
        queries_reach(s.query, &reach, why) < 0)
        node_problem(node_get(r->map, "sourceQuery"), r->p, r->unknown, "%s", why);
    into->sources[into->n_sources++] = s;
}

static void read_source_entry(const struct summary_reader *all, const struct node *map, struct summary *s)
{
    struct summary_reader r = *all;

    r.map = map;
    if (map->kind != NODE_MAP) {
        node_expected(map, r.p, "a source: an object with sourceEndpoint, sourceQuery and so on");
        return;
    }
    node_only_keys(map, source_keys, r.unknown, r.p);
    read_source(&r, s);
}

static void read_sources(struct summary_reader *r, struct summary *s)
{
    const struct node *list = node_given(r->map, "sources");

    if (list && list->kind != NODE_LIST) {
        node_expected(list, r->p, "a list of sources");
    } else if (list && list->n > SUMMARY_MAX_SOURCES) {
        node_problem(list, r->p, PROBLEM_ERROR, "expected at most %d sources, got %zu", SUMMARY_MAX_SOURCES,
                     list->n);
    } else if (list && list->n) { /* a Go program writes none as an empty list */
        s->sources = arena_alloc(r->arena, list->n * sizeof(*s->sources));
        for (size_t i = 0; i < list->n; i++)
            read_source_entry(r, list->items[i], s);
    } else {
        s->sources = arena_alloc(r->arena, sizeof(*s->sources));
        read_source(r, s);
    }
}

/* ---- The summary ---- */

/* clang-format off */
static const char *const summary_keys[] = {
    "name", "scoreName", "sourceType", "sourceEndpoint", "sourceEndpointAuthName", "sourceEndpointAuthKey",
    "sourceQuery", "sourceRange", "sourceStep", "sources", "scoringEndpoint", "scoringInterval",
    "scoringEndpointAuthName", "scoringEndpointAuthKey", "location", "scoreDestination",
    "scoreDimensionFormat", "scoreAggregation", "scoreItems", "scoreRange", "scoreTolerance", "fallbackScore",
    "timeout", "since" /* of a suspended one */, NULL};
/* clang-format on */

static char *read_score_name(struct summary_reader *r)
{
    static const char what[] = "a name of 1 to 1024 bytes that is not blank";
    struct str s = {0};

    if (!field_required(r, "scoreName", what, &s))
        return NULL;
    if (str_trim(s).n && s.n <= SCORE_NAME_MAX)
        return arena_text(r->arena, s);
    node_expected(node_get(r->map, "scoreName"), r->p, what);
    return NULL;
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
    const struct node *n = node_object(r->map, "scoreRange", bounds, r->p);
    bool min, max;

    if (!n)
        return;
    min = read_bound(r, n, "min", &s->range_min);
    max = read_bound(r, n, "max", &s->range_max);
    s->has_range = min && max;
    if (s->has_range && (s->range_max - s->range_min == 0 || !isfinite(s->range_max - s->range_min)))
        node_problem(n, r->p, PROBLEM_ERROR, "min and max must differ, and their difference be finite");
}

static void read_scoring_endpoint(struct summary_reader *r, struct summary *s)
{
    BUF_AUTO(unknown, 256);
    BUF_AUTO(quoted, 512);

    s->scoring_endpoint = field_url(r, "scoringEndpoint", "/scoring");
    if (!s->scoring_endpoint)
        return;
    scoring_url_unknown(s->scoring_endpoint, &unknown);
    problem_quote(buf_str(&unknown), &quoted);
    if (buf_failed(&unknown) == 0 && buf_failed(&quoted) == 0 && unknown.n)
        node_problem(node_get(r->map, "scoringEndpoint"), r->p, PROBLEM_WARNING,
                     "unknown placeholder %.*s is sent as it is; known is ${cluster}",
                     STR_ARG(buf_str(&quoted)));
}

/* ---- Items: one in its own fields, or several in the list `scoreItems` ---- */

static struct summary_item read_item(struct summary_reader *r, const struct node *map, const char *format,
                                     const char *aggregation)
{
    static const char *const aggregations[] = {
        [AGGREGATE_LAST] = "last", [AGGREGATE_AVG] = "avg", [AGGREGATE_MAX] = "max",
        [AGGREGATE_MIN] = "min",   [AGGREGATE_SUM] = "sum", NULL};
    BUF_AUTO(text, 2048);
    struct buf_mark before;
    size_t empty;
    struct str mistake;
    struct summary_item item = {.format = node_text(map, format, r->p, r->arena),
                                .aggregation = node_choice(map, aggregation, r->p, aggregations)};

    mistake = format_mistake(cstr(item.format));
    if (!mistake.n)
        return item;
    buf_puts(&text, "unknown placeholder ");
    problem_quote(mistake, &text);
    buf_puts(&text, " stays as it is; known are ");
    format_put_placeholders(&text);
    before = buf_mark(&text);
    buf_puts(&text, "; ");
    empty = text.n;
    format_put_advice(&text, mistake);
    if (text.n == empty || buf_failed(&text) < 0)
        buf_rollback(&text, before); /* no advice, or about a name too long to repeat */
    node_problem(node_get(map, format), r->p, PROBLEM_WARNING, "%.*s", STR_ARG(buf_str(&text)));
    return item;
}

static void read_item_entry(struct summary_reader *r, const struct node *map, struct summary *s)
{
    static const char *const keys[] = {"format", "aggregation", NULL};
    static const char what[] = "a format of names such as ${node}";
    const struct node *format = node_given(map, "format");
    struct summary_item item;

    if (map->kind != NODE_MAP) {
        node_expected(map, r->p, "an object with format and aggregation");
        return;
    }
    node_only_keys(map, keys, r->unknown, r->p);
    item = read_item(r, map, keys[0], keys[1]);
    if (!format)
        node_missing(map, "format", r->p, what);
    else if (format->kind == NODE_STRING && format->text.n == 0)
        node_expected(format, r->p, what);
    for (size_t i = 0; item.format && i < s->n_items; i++)
        if (text_is_same(item.format, s->items[i].format))
            node_problem(format, r->p, PROBLEM_ERROR, "already the format of scoreItems[%zu]", i);
    s->items[s->n_items++] = item;
}

/* A field that older agents read in place of the list: if it is set, it repeats the first item's. */
static void check_first_item(struct summary_reader *r, const char *key, const struct node *first,
                             const char *item_key, bool (*is_same)(struct str, struct str),
                             struct str fallback)
{
    const struct node *n = node_get(r->map, key), *other = node_given(first, item_key);

    if (field_is_set(r, key) &&
        !(n->kind == NODE_STRING && is_same(n->text, other && other->text.n ? other->text : fallback)))
        node_problem(n, r->p, PROBLEM_ERROR, "must equal scoreItems[0].%s, or be left out", item_key);
}

static void read_items(struct summary_reader *r, struct summary *s)
{
    const struct node *list = node_given(r->map, "scoreItems");

    if (list && list->kind != NODE_LIST) {
        node_expected(list, r->p, "a list of items");
    } else if (list && list->n > SUMMARY_MAX_ITEMS) {
        node_problem(list, r->p, PROBLEM_ERROR, "expected at most %d items, got %zu", SUMMARY_MAX_ITEMS,
                     list->n);
    } else if (list && list->n) { /* a Go program writes none as an empty list */
        for (size_t i = 0; i < list->n; i++)
            read_item_entry(r, list->items[i], s);
        check_first_item(r, "scoreDimensionFormat", list->items[0], "format", str_eq, STR(""));
        check_first_item(r, "scoreAggregation", list->items[0], "aggregation", str_eq_nocase, STR("last"));
    } else {
        s->items[s->n_items++] = read_item(r, r->map, "scoreDimensionFormat", "scoreAggregation");
        if (!s->items[0].format)
            s->items[0].format = arena_text(r->arena, STR("${scoreName}"));
    }
}

/* ---- Rounding: floored, so that only values from 0 to 1 become 0 ---- */

void rounding_add(struct rounding *r, double v)
{
    r->not_zero += v < 0 || v > 0;
    r->zeroed += v > 0 && v < 1;
    r->lowest = fmin(r->lowest, v);
    r->highest = fmax(r->highest, v);
}

bool rounding_loses(const struct rounding *r, const struct summary *s, char ret[ROUNDING_BYTES])
{
    double bound = pow(10, ceil(log10(fmax(r->highest, -r->lowest))));

    if (s->has_range || s->destination != DESTINATION_PLACEMENT_SCORE || 2 * r->zeroed <= r->not_zero)
        return false;
    (void)snprintf(ret, ROUNDING_BYTES,
                   "%zu of %zu values other than 0 become 0, as Placement takes whole numbers; set "
                   "scoreRange, such as {min: %.3g, max: %.3g}, to tell them apart",
                   r->zeroed, r->not_zero, r->lowest < 0 ? -bound : 0, bound);
    return true;
}

/* Fills *s, which is zeroed; the caller frees it in any case. */
static void summary_read(struct summary *s, const struct node *map, enum problem_kind unknown,
                         bool check_queries, struct problems *p)
{
    static const char *const locations[] = {
        [LOCATION_INTERNAL] = "Internal", [LOCATION_EXTERNAL] = "External", NULL};
    static const char *const destinations[] = {
        [DESTINATION_PLACEMENT_SCORE] = "AddOnPlacementScore", [DESTINATION_NONE] = "None", NULL};
    struct summary_reader r = {.map = map, .unknown = unknown, .check_queries = check_queries, .p = p};
    int64_t fallback = 0, tolerance = 0;

    s->memory = xcalloc(1, sizeof(*s->memory));
    *s->memory = (struct summary_memory){.refs = 1, .arena = {.chunk_bytes = CHUNK_BYTES}};
    r.arena = &s->memory->arena;
    if (map->kind != NODE_MAP) {
        node_expected(map, p, "a summary: an object with scoreName, scoringEndpoint and so on");
        return;
    }
    node_only_keys(map, summary_keys, unknown, p);
    s->line = map->line;
    s->column = map->column;
    s->score_name = read_score_name(&r);
    s->name = node_text(r.map, "name", r.p, r.arena) ?: s->score_name;
    read_sources(&r, s);
    read_scoring_endpoint(&r, s);
    s->scoring_auth = field_secret(&r, "scoringEndpointAuthName", "scoringEndpointAuthKey");
    s->interval_ms = 1000 * field_seconds(&r, "scoringInterval", INTERVAL_MAX_S, INTERVAL_DEFAULT_S);
    (void)node_duration(map, "timeout", p, 0, TIMEOUT_MAX_MS, &s->timeout_ms);
    s->location = node_choice(map, "location", p, locations);
    s->destination = node_choice(map, "scoreDestination", p, destinations);
    read_items(&r, s);
    read_range(&r, s);
    s->has_fallback =
        node_given(map, "fallbackScore") && node_int(map, "fallbackScore", p, -100, 100, &fallback);
    s->fallback = (int)fallback;
    if (node_given(map, "scoreTolerance") && node_int(map, "scoreTolerance", p, 0, TOLERANCE_MAX, &tolerance))
        s->score_tolerance = (int)tolerance;
    s->suspended_since = node_text(r.map, "since", r.p, r.arena);
    if (strlen(cstr(s->suspended_since)) > SINCE_MAX ||
        !str_has_only(str_of(cstr(s->suspended_since)), "-:+."))
        node_expected(node_get(r.map, "since"), r.p, "a time such as 2026-11-26T07:30:00Z");
}

void summaries_parse(struct summaries *ret, const struct node *node, enum problem_kind unknown,
                     struct problems *p)
{
    CLEANUP(map_done) struct map names = {0};

    *ret = (struct summaries){0};
    if (node->kind != NODE_LIST) {
        node_expected(node, p, "a list of summaries");
        return;
    }
    ret->list = xcalloc(node->n + 1, sizeof(struct summary));
    for (size_t i = 0; i < node->n; i++) {
        struct summary *entry = &ret->list[ret->n];
        const struct summary *first;

        summary_read(entry, node->items[i], unknown, unknown == PROBLEM_ERROR, p);
        first = entry->score_name ? map_get(&names, entry->score_name) : NULL;
        if (first) {
            node_problem(node_get(node->items[i], "scoreName"), p, PROBLEM_WARNING,
                         "already used by the summary at line %u; the one at line %u is ignored", first->line,
                         entry->line);
            summary_done(entry);
            continue;
        }
        if (entry->score_name)
            map_set(&names, entry->score_name, entry);
        ret->n++;
    }
}

void summaries_append(struct summaries *s, struct summaries *more)
{
    CLEANUP(map_done) struct map names = {0};

    s->list = xreallocarray(s->list, s->n + more->n + 1, sizeof(struct summary));
    for (size_t i = 0; i < s->n; i++)
        map_set(&names, s->list[i].score_name, &s->list[i]);
    for (size_t i = 0; i < more->n; i++)
        if (map_get(&names, more->list[i].score_name))
            summary_done(&more->list[i]);
        else
            s->list[s->n++] = more->list[i];
    free(more->list);
    *more = (struct summaries){0};
}

void summary_parse(struct summary *ret, struct str text, struct problems *ret_problems)
{
    CLEANUP(cleanup_doc_free) struct doc *doc = NULL;
    struct problems *p = ret_problems;

    *ret = (struct summary){0};
    *p = (struct problems){0};
    problems_init(p, "summary");
    if (!str_starts(str_trim(text), STR("{"))) /* doc_parse() would read it as YAML */
        problems_add(p, PROBLEM_ERROR, 0, 0, "expected a JSON object");
    else if (doc_parse(&doc, text, p) == 0)
        summary_read(ret, doc->root, PROBLEM_WARNING, true, p);
    if (p->errors)
        summary_done(ret);
}
