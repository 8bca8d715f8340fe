/* Merges a spec with a /config into the summary that agents get. Pure. */
#include "controller/hub/rules/effective.h"

#include "controller/hub/rules/spec.h"
#include "controller/kube/json.h"
#include "exporter/score/summary.h"

#include "exporter/base/alloc.h"
#include "exporter/base/doc.h"
#include "exporter/base/escape.h"
#include "exporter/base/text.h"
#include "exporter/http/http.h"
#include "exporter/num/num.h"
#include "exporter/score/feature.h"
#include "exporter/score/format.h"
#include "exporter/score/scoring_url.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct merged {
    const struct scorer_spec *spec;
    const struct api_config *api; /* an empty one if it is ignored */
    const char *name, *score_name;
    bool has_sources;                             /* in either document */
    struct source_spec sources[SPEC_MAX_SOURCES]; /* none of type None; with defaults */
    size_t index[SPEC_MAX_SOURCES];               /* of each in its document */
    size_t n_sources;                             /* 0: type None */
    struct scoring_spec scoring;                  /* without params */
    char *origin;                                 /* of configURL */
    json_t *params;                               /* of both documents; NULL for none */
};

enum { SUMMARY_MAX_BYTES = 256 * 1024 };

/* ---- Which document wins for each field ---- */

#define SCORING_PATH "/scoring"
enum { RANGE_S = 3600, STEP_S = 60, INTERVAL_S = 60 };

/* The DynamicScorer's source that supplies what the i-th of /config leaves out; an empty one for none. */
static const struct source_spec *merged_fallback(const struct scorer_spec *spec, size_t i)
{
    static const struct source_spec none;

    if (spec->own.n_sources == 1)
        i = 0;
    return i < spec->own.n_sources ? &spec->own.sources[i] : &none;
}

/* The source of the DynamicScorer whose token is sent to the i-th source; an empty one if it has none. */
static const struct source_spec *merged_token_source(const struct scorer_spec *spec, size_t i)
{
    return &spec->own.sources[i < spec->own.n_sources ? i : 0];
}

static struct source_spec merge_source(const struct merged *m, size_t i)
{
    static const struct source_spec nothing;
    const struct source_spec *own = merged_fallback(m->spec, i), *owner = merged_token_source(m->spec, i),
                             *api = i < m->api->n_sources ? &m->api->sources[i] : &nothing;
    enum source_type type = api->type ?: own->type ?: SOURCE_PROMETHEUS;
    const struct source_kind *kind = source_kind(type);
    const char *host = api->host ?: own->host;
    /* NULL: nothing is asked, so no token is needed. */
    const char *path = kind->endpoint_is_optional && !host ? NULL : kind->path;

    return (struct source_spec){
        .type = type,
        .host = host,
        .path = api->path ?: own->path ?: path,
        .query = api->query ?: own->query,
        .range_s = api->range_s ?: own->range_s ?: RANGE_S,
        .step_s = api->step_s ?: own->step_s ?: STEP_S,
        .auth = path ? owner->auth : nothing.auth,
    };
}

static void merged_done(struct merged *m)
{
    json_decref(m->params);
    free(m->origin);
}

/* The documents must outlive *m. */
static void merged_init(struct merged *m, const char *name, const struct scorer_spec *spec,
                        const struct api_config *synced)
{
    static const struct api_config none;
    const struct api_config *config = spec->mode == SYNC_FULL && synced ? synced : &none;
    const struct scoring_spec *own = &spec->own.scoring, *api = &config->scoring;
    size_t n = config->n_sources ?: spec->own.n_sources;

    *m = (struct merged){
        .spec = spec,
        .api = config,
        .name = config->name ?: spec->own.name ?: name,
        /* spec.name is an alias of the score's name; the name of /config is the last resort. */
        .score_name = api->score_name ?: own->score_name ?: spec->own.name ?: config->name,
        .has_sources = n > 0,
        .origin = url_origin(cstr(spec->config_url)),
        .params = json_object(),
    };
    if (!m->score_name && spec->mode == SYNC_NONE)
        m->score_name = name;
    (void)json_object_update(m->params, (json_t *)(uintptr_t)own->params);
    (void)json_object_update(m->params, (json_t *)(uintptr_t)api->params);
    for (size_t i = 0; i < n; i++) {
        struct source_spec s = merge_source(m, i);

        if (s.type == SOURCE_NONE)
            continue;
        m->index[m->n_sources] = i;
        m->sources[m->n_sources++] = s;
    }
    m->scoring = (struct scoring_spec){
        .host = api->host ?: own->host ?: (*m->origin ? m->origin : NULL),
        .path = api->path ?: own->path ?: SCORING_PATH,
        .interval_s = api->interval_s ?: own->interval_s ?: INTERVAL_S,
        .auth = own->auth,
    };
}

/* ---- Where tokens may go: the DynamicScorer decides, not the scoring API ---- */

static bool same_text(const char *a, const char *b)
{
    return strcmp(cstr(a), cstr(b)) == 0;
}

static bool same_origin(const char *origin, const char *url)
{
    CLEANUP(cleanup_free) char *other = url_origin(cstr(url));

    return *other && strcmp(origin, other) == 0;
}

static bool auth_allows(const struct auth *a, const char *url)
{
    CLEANUP(cleanup_free) char *origin = url_origin(url);
    const json_t *entry;
    size_t i;

    json_array_foreach(a->allowed_hosts, i, entry)
    {
        const char *allowed = kube_str(entry, NULL);

        if (same_text(allowed, "*") || same_origin(origin, allowed))
            return true;
    }
    return same_origin(origin, a->hosts[0]) || same_origin(origin, a->hosts[1]);
}

/* Whether the token may not be sent to the host in /config. field: where it is set. */
static bool auth_refuses(const struct auth *a, const char *host, const char *field, char why[SPEC_WHY_BYTES])
{
    CLEANUP(cleanup_free) char *origin = url_origin(cstr(host));
    BUF_AUTO(text, SIZE_MAX / 2);

    if (!a->token.name || !host || auth_allows(a, host))
        return false;
    buf_printf(&text, "the credentials in Secret %.253s may not be sent to ", a->token.name);
    if (*origin)
        buf_puts(&text, origin);
    else
        problem_quote(str_of(host), &text);
    buf_puts(&text, ", which /config names; ");
    if (*origin && !a->hosts[0])
        buf_printf(&text, "to allow it, set %s.host: %s", field, origin);
    else
        buf_printf(&text, "allow it in %s.auth.allowedHosts", field);
    if (buf_failed(&text) < 0)
        memory_exhausted(text.n);
    text_line(why, SPEC_WHY_BYTES, buf_str(&text));
    return true;
}

/* Whether `synced` would send a token to a host that is not allowed; `why` names the host and the field. */
static bool effective_refuses(const struct scorer_spec *spec, const struct api_config *synced,
                              char why[SPEC_WHY_BYTES])
{
    for (size_t i = 0; i < synced->n_sources; i++) {
        const struct source_spec *api = &synced->sources[i], *own = merged_token_source(spec, i);
        enum source_type type = api->type ?: merged_fallback(spec, i)->type ?: SOURCE_PROMETHEUS;
        char field[32] = "spec.source";

        if (spec->own.n_sources > 1)
            (void)snprintf(field, sizeof(field), "spec.sources[%zu]", (size_t)(own - spec->own.sources));
        if (source_kind(type)->path && auth_refuses(&own->auth, api->host, field, why))
            return true;
    }
    return auth_refuses(&spec->own.scoring.auth, synced->scoring.host, "spec.scoring", why);
}

/* Whether the token in an active summary, or in one of its sources, may still go where it is sent. */
static bool token_may_stay(const struct scorer_spec *spec, bool of_source, const json_t *o)
{
    const char *name =
        cstr(kube_str(o, of_source ? "sourceEndpointAuthName" : "scoringEndpointAuthName", NULL));
    const char *key = kube_str(o, of_source ? "sourceEndpointAuthKey" : "scoringEndpointAuthKey", NULL);
    const char *url = cstr(kube_str(o, of_source ? "sourceEndpoint" : "scoringEndpoint", NULL));

    for (size_t i = 0; *name && i < (of_source ? spec->own.n_sources : 1); i++) {
        const struct auth *a = of_source ? &spec->own.sources[i].auth : &spec->own.scoring.auth;

        if (same_text(a->token.name, name) && same_text(a->token.key, key) && auth_allows(a, url))
            return true;
    }
    return !*name;
}

static bool effective_tokens_stay(const struct scorer_spec *spec, struct str summary)
{
    json_auto_t *o = NULL;
    const json_t *source;
    bool stay = kube_json_parse(&o, summary, NULL) == 0 && token_may_stay(spec, true, o) &&
                token_may_stay(spec, false, o);
    size_t i;

    json_array_foreach(kube_list(o, "sources", NULL), i, source)
    {
        stay = stay && token_may_stay(spec, true, source);
    }
    return stay;
}

/* ---- Writes the summary as agents read it ----
 *
 * A missing value is left out, for summary_parse() to report. URLs need no ceiling of their own: the
 * documents that they come from have one. */

/* Percent-encoded, but for each ${cluster}, which agents find and replace. */
static void url_put_text(struct buf *into, struct str text)
{
    const char *found;

    while (text.n && (found = memmem(text.p, text.n, CLUSTER_PLACEHOLDER.p, CLUSTER_PLACEHOLDER.n))) {
        struct str before = {text.p, (size_t)(found - text.p)};
        size_t taken = before.n + CLUSTER_PLACEHOLDER.n;

        buf_put_url(into, before);
        buf_put_str(into, CLUSTER_PLACEHOLDER);
        text = (struct str){text.p + taken, text.n - taken};
    }
    buf_put_url(into, text);
}

static void url_put_value(struct buf *into, const json_t *v)
{
    char number[NUM_MAX];

    if (json_is_string(v))
        url_put_text(into, (struct str){json_string_value(v), json_string_length(v)});
    else if (json_is_integer(v))
        buf_printf(into, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
    else if (json_is_real(v))
        buf_put_url(into, (struct str){number, num_put_double(number, json_real_value(v))});
    else
        buf_puts(into, json_is_true(v) ? "true" : "false");
}

/* Appends the params, sorted by name, as a query string. */
static void url_add_params(struct buf *url, const json_t *params)
{
    CLEANUP(cleanup_free) char *text = json_dumps(params, JSON_SORT_KEYS);
    json_auto_t *sorted = json_loads(cstr(text), 0, NULL);
    const char *fragment = json_object_size(sorted) ? memchr(url->p, '#', url->n) : NULL, *key;
    char before;
    json_t *v;

    /* A fragment is never sent, and would hide what follows. */
    if (fragment)
        buf_truncate(url, (size_t)(fragment - url->p));
    before = memchr(url->p, '?', url->n) ? '&' : '?';
    json_object_foreach(sorted, key, v)
    {
        buf_putc(url, before);
        buf_put_url(url, str_of(key));
        buf_putc(url, '=');
        url_put_value(url, v);
        before = '&';
    }
}

/* NULL without a host. */
static json_t *text_endpoint(const char *host, const char *path, const json_t *params)
{
    struct str h = str_trim(str_of(host)), p = str_trim(str_of(path));
    BUF_AUTO(url, SIZE_MAX);

    if (!host)
        return NULL;
    while (h.n && h.p[h.n - 1] == '/')
        h.n--;
    while (p.n && *p.p == '/')
        p = (struct str){p.p + 1, p.n - 1};
    buf_put_str(&url, h);
    buf_putc(&url, '/');
    buf_put_str(&url, p);
    url_add_params(&url, params);
    if (buf_failed(&url) < 0) /* it has no ceiling */
        memory_exhausted(url.n);
    return json_stringn(url.p, url.n);
}

/* Takes the reference; a NULL is left out. */
static void summary_set(json_t *summary, const char *key, json_t *value)
{
    if (value)
        json_object_set_new(summary, key, value);
}

static void summary_set_text(json_t *summary, const char *key, const char *value)
{
    summary_set(summary, key, value ? json_string(value) : NULL);
}

static json_t *text_source(const struct source_spec *s)
{
    const struct source_kind *kind = source_kind(s->type);
    bool no_endpoint = !kind->path || (kind->endpoint_is_optional && !s->host);

    json_t *source = json_object();

    summary_set_text(source, "sourceType", source_type_word(s->type));
    summary_set(source, "sourceEndpoint",
                no_endpoint ? json_string("") : text_endpoint(s->host, s->path, NULL));
    summary_set_text(source, "sourceEndpointAuthName", cstr(s->auth.token.name));
    summary_set_text(source, "sourceEndpointAuthKey", cstr(s->auth.token.key));
    summary_set_text(source, "sourceQuery", s->query);
    summary_set(source, "sourceRange", json_integer(s->range_s));
    summary_set(source, "sourceStep", json_integer(s->step_s));
    return source;
}

/* As written, but 5.0 as 5. */
static json_t *text_value(const json_t *v)
{
    int64_t n;

    return v && kube_int(v, &n, NULL) ? json_integer(n) : json_incref((json_t *)(uintptr_t)v);
}

/* The first source is in the summary's own fields, also where there are several. */
static void summary_set_first_source(json_t *summary, const struct merged *m)
{
    static const struct source_spec none = {.type = SOURCE_NONE, .query = ""};
    json_auto_t *first = text_source(m->n_sources ? &m->sources[0] : &none);

    json_object_update(summary, first);
}

static void summary_set_sources(json_t *summary, const struct merged *m)
{
    json_t *list;

    if (m->n_sources < 2)
        return;
    list = json_array();
    for (size_t i = 0; i < m->n_sources; i++)
        json_array_append_new(list, text_source(&m->sources[i]));
    json_object_set_new(summary, "sources", list);
}

static void summary_set_scoring(json_t *summary, const struct merged *m)
{
    const struct scoring_spec *scoring = &m->scoring;

    summary_set(summary, "scoringEndpoint", text_endpoint(scoring->host, scoring->path, m->params));
    summary_set(summary, "scoringInterval", json_integer(scoring->interval_s));
    summary_set_text(summary, "scoringEndpointAuthName", cstr(scoring->auth.token.name));
    summary_set_text(summary, "scoringEndpointAuthKey", cstr(scoring->auth.token.key));
}

/* What becomes of the scores. Older agents read the fields of the first item in place of the list. */
static void summary_set_scores(json_t *summary, const struct scorer_spec *spec)
{
    const json_t *first = json_array_get(spec->score_items, 0);
    const char *format = spec->dimension_format ?: kube_str(first, "format", NULL);

    summary_set_text(summary, "location", spec->location ?: "Internal");
    summary_set_text(summary, "scoreDestination", spec->destination ?: "AddOnPlacementScore");
    summary_set_text(summary, "scoreDimensionFormat", format ?: "${scoreName}");
    summary_set_text(summary, "scoreAggregation", spec->aggregation ?: kube_str(first, "aggregation", NULL));
    summary_set(summary, "scoreItems", text_value(spec->score_items));
    summary_set(summary, "scoreRange", text_value(spec->score_range));
    summary_set(summary, "scoreTolerance", text_value(spec->score_tolerance));
    summary_set(summary, "fallbackScore", text_value(spec->fallback_score));
}

/* The summary, a new reference. Its members keep their order: a summary with another text is a new one. */
static json_t *merged_summary(const struct merged *m)
{
    json_t *summary = json_object();

    summary_set_text(summary, "name", m->name);
    summary_set_text(summary, "scoreName", m->score_name);
    summary_set_first_source(summary, m);
    summary_set_scoring(summary, m);
    summary_set_scores(summary, m->spec);
    summary_set(summary, "timeout", text_value(m->spec->timeout));
    summary_set_sources(summary, m);
    return summary;
}

/* ---- What agents make of it ----
 *
 * Whether agents accept a summary; if not, which fields of the DynamicScorer or of /config are wrong. */

/* Where a DynamicScorer or /config sets a summary's member. */
static const struct field {
    const char *key, *path; /* key: NULL for a part of another field */
    enum { ONLY_IN_SPEC, TEXT, NUMBER } value;
    bool is_of_source; /* path and offset are relative to a source */
    size_t offset;     /* of the value, in struct api_config or source_spec; unless only in the spec */
} fields[] = {
    {"sourceType", "type", ONLY_IN_SPEC, true, 0},
    {"sourceEndpoint", "host", TEXT, true, offsetof(struct source_spec, host)},
    {NULL, "path", TEXT, true, offsetof(struct source_spec, path)},
    {"sourceQuery", "params.query", TEXT, true, offsetof(struct source_spec, query)},
    {"sourceRange", "params.range", NUMBER, true, offsetof(struct source_spec, range_s)},
    {"sourceStep", "params.step", NUMBER, true, offsetof(struct source_spec, step_s)},
    {"sourceEndpointAuthName", "auth.tokenSecretRef.name", ONLY_IN_SPEC, true, 0},
    {"sourceEndpointAuthKey", "auth.tokenSecretRef.key", ONLY_IN_SPEC, true, 0},
    {"scoringEndpoint", "scoring.host", TEXT, false, offsetof(struct api_config, scoring.host)},
    {NULL, "scoring.path", TEXT, false, offsetof(struct api_config, scoring.path)},
    {"scoreName", "scoring.params.name", TEXT, false, offsetof(struct api_config, scoring.score_name)},
    {"scoringInterval", "scoring.params.interval", NUMBER, false,
     offsetof(struct api_config, scoring.interval_s)},
    {"scoringEndpointAuthName", "scoring.auth.tokenSecretRef.name", ONLY_IN_SPEC, false, 0},
    {"scoringEndpointAuthKey", "scoring.auth.tokenSecretRef.key", ONLY_IN_SPEC, false, 0},
};

/* Whether the field is set in `in`, an api_config or source_spec; with `other`: in both, and differs. */
static bool config_field_is_set(const struct field *f, const void *in, const void *other)
{
    const void *a = (const char *)in + f->offset, *b = other ? (const char *)other + f->offset : NULL;
    const char *const *text = a, *const *other_text = b;
    const int64_t *number = a, *other_number = b;

    if (f->value == NUMBER)
        return *number && (!b || (*other_number && *number != *other_number));
    return f->value == TEXT && *text && (!b || (*other_text && strcmp(*text, *other_text) != 0));
}

static void overrides_add(struct buf *into, bool of_source, const void *api, const void *own,
                          const char *object)
{
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        if (fields[i].is_of_source == of_source && config_field_is_set(&fields[i], api, own)) {
            text_join(into, ", ");
            buf_printf(into, "%s.%s", object, fields[i].path);
        }
}

void effective_overrides(const struct scorer_spec *spec, const struct api_config *synced, struct buf *into)
{
    for (size_t i = 0; i < synced->n_sources; i++) {
        const struct source_spec *own = merged_fallback(spec, i), *api = &synced->sources[i];
        char object[40] = "spec.source";

        if (spec->own.n_sources > 1)
            (void)snprintf(object, sizeof(object), "spec.sources[%zu]", i);
        if (api->type && own->type && api->type != own->type) {
            text_join(into, ", ");
            buf_printf(into, "%s.type", object);
        }
        overrides_add(into, true, api, own, object);
    }
    overrides_add(into, false, synced, &spec->own, "spec");
}

/* A placeholder in the scoring endpoint: in its path or in one of its params, of either document. */
static bool check_is_of_scoring(const struct doc_problem *x, const struct field *f)
{
    return f && x->kind == PROBLEM_WARNING && strcmp(cstr(f->key), "scoringEndpoint") == 0;
}

/* Appends a problem of the summary, whose path is "sourceStep" or "sources[1].sourceStep", with the field as
 * the DynamicScorer or /config spells it. Returns whether it is the DynamicScorer's. */
static bool check_put(struct buf *into, const struct doc_problem *x, const struct merged *m)
{
    struct str path = x->path, key;
    const struct field *f = NULL; /* NULL: of the DynamicScorer alone, and named alike */
    const char *dot = str_starts(path, STR("sources[")) ? memchr(path.p, '.', path.n) : NULL;
    size_t source = m->n_sources ? m->index[dot ? strtoul(path.p + strlen("sources["), NULL, 10) : 0] : 0;
    char object[40] = "";
    bool api;

    if (dot)
        path = (struct str){dot + 1, path.n - (size_t)(dot + 1 - path.p)};
    key = (struct str){path.p, 0};
    while (key.n < path.n && !strchr(".[", path.p[key.n]))
        key.n++;
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        if (fields[i].key && str_eq(key, str_of(fields[i].key)))
            f = &fields[i];
    /* A source that /config does not have is empty: it sets nothing. */
    api =
        f && config_field_is_set(f, f->is_of_source ? (const void *)&m->api->sources[source] : m->api, NULL);
    if (f && f->is_of_source && (api ? m->api : &m->spec->own)->n_sources > 1)
        (void)snprintf(object, sizeof(object), "sources[%zu].", source);
    else if (f && f->is_of_source)
        (void)strcpy(object, "source.");
    text_join(into, "; ");
    if (check_is_of_scoring(x, f)) {
        buf_puts(into, "scoring");
    } else {
        if (!api && key.n)
            buf_puts(into, "spec.");
        buf_puts(into, object);
        buf_put_str(into, f ? str_of(f->path) : key);
        if (api)
            buf_puts(into, " in /config");
    }
    buf_puts(into, key.n ? path.p + key.n : x->text);
    return f && !x->missing && !api;
}

/* Returns whether all problems of the kind are the DynamicScorer's: a missing value is a fault of either. */
static bool check_list(char out[SPEC_WHY_BYTES], const struct problems *p, enum problem_kind kind,
                       const struct merged *m)
{
    BUF_AUTO(list, 64 * 1024);
    bool of_spec = true;

    for (size_t i = 0; i < p->n; i++)
        if (p->list[i].kind == kind && !check_put(&list, &p->list[i], m))
            of_spec = false;
    text_line(out, SPEC_WHY_BYTES, buf_str(&list));
    return of_spec;
}

/* ---- The effective configuration ---- */

static void effective_put_text(struct effective *e, const struct merged *m)
{
    CLEANUP(problems_done) struct problems p = {0};
    CLEANUP(summary_done) struct summary s = {0};
    json_auto_t *o = merged_summary(m);
    BUF_AUTO(text, SUMMARY_MAX_BYTES);
    BUF_AUTO(unknown, SUMMARY_MAX_BYTES);

    e->reason = EFFECTIVE_INCOMPLETE;
    kube_json_print(o, &text);
    if (buf_failed(&text) < 0) {
        (void)snprintf(e->error, sizeof(e->error), "spec: the summary exceeds 256 KiB");
        return;
    }
    summary_parse(&s, buf_str(&text), &p);
    if (p.errors) {
        e->only_spec_is_wrong = check_list(e->error, &p, PROBLEM_ERROR, m);
        return;
    }
    e->reason = EFFECTIVE_OK;
    e->interval_ms = s.interval_ms;
    e->needs = feature_needs(&s);
    for (size_t i = 0; i < s.n_items; i++)
        e->unknown_placeholder |= format_mistake(s.items[i].format).n > 0;
    scoring_url_unknown(s.scoring_endpoint, &unknown);
    e->unknown_placeholder |= unknown.n > 0;
    (void)check_list(e->warning, &p, PROBLEM_WARNING, m);
    buf_shrink(&text);
    e->text = buf_take(&text);
}

void effective_make(struct effective *ret, const char *name, const struct scorer_spec *spec,
                    const struct api_config *synced)
{
    CLEANUP(merged_done) struct merged m;
    struct effective e = {.reason = EFFECTIVE_OK, .mode = spec->mode};
    bool is_waiting;

    merged_init(&m, name, spec, synced);
    is_waiting = spec->mode == SYNC_FULL && !m.api->owner;
    e.source = m.api->owner ? CONFIG_FROM_API : CONFIG_FROM_SPEC;
    e.score_name = m.score_name ? xstrdup(m.score_name) : NULL;
    if (effective_refuses(spec, m.api, e.error)) {
        e.reason = EFFECTIVE_TOKEN_HOST;
    } else if (is_waiting && !m.has_sources) {
        e.reason = EFFECTIVE_INCOMPLETE;
        (void)snprintf(e.error, sizeof(e.error), "spec.source: missing");
    } else {
        effective_put_text(&e, &m);
    }
    /* Before the first /config, a field that the DynamicScorer leaves to it is no error. */
    if (is_waiting && e.reason == EFFECTIVE_INCOMPLETE) {
        char text[2 * SPEC_WHY_BYTES];

        e.reason = EFFECTIVE_WAITING;
        (void)snprintf(text, sizeof(text), "no configuration received from spec.configURL yet: %s", e.error);
        text_line(e.error, sizeof(e.error), str_of(text));
    }
    *ret = e;
}

bool effective_keep(struct effective *now, struct effective *last, const struct scorer_spec *newest,
                    bool unread)
{
    if (!(unread || now->reason == EFFECTIVE_INCOMPLETE) || !effective_usable(last) ||
        now->mode != last->mode ||
        (now->score_name && strcmp(now->score_name, cstr(last->score_name)) != 0) ||
        !effective_tokens_stay(newest, buf_str(&last->text)))
        return false;
    last->reason = now->reason;
    memcpy(last->error, now->error, sizeof(last->error));
    last->kept = true;
    effective_done(now);
    *now = *last;
    *last = (struct effective){0};
    return true;
}

bool effective_resume(struct effective *ret, struct str text, enum config_source source)
{
    CLEANUP(problems_done) struct problems p = {0};
    CLEANUP(summary_done) struct summary s = {0};

    if (text.n <= SUMMARY_MAX_BYTES)
        summary_parse(&s, text, &p);
    if (text.n > SUMMARY_MAX_BYTES || p.errors)
        return false;
    *ret = (struct effective){
        .reason = EFFECTIVE_INCOMPLETE,
        .mode = source == CONFIG_FROM_API ? SYNC_FULL : SYNC_NONE,
        .source = source,
        .interval_ms = s.interval_ms,
        .needs = feature_needs(&s),
        .score_name = xstrdup(s.score_name),
        .text.max = SUMMARY_MAX_BYTES,
        .kept = true,
    };
    buf_put_str(&ret->text, text);
    return true;
}

void effective_done(struct effective *e)
{
    free(e->score_name);
    buf_done(&e->text);
    *e = (struct effective){0};
}
