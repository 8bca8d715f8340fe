#include "controller/hub/rules/effective.h"

#include "controller/hub/rules/spec.h"
#include "controller/hub/rules/url.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/problems.h"
#include "exporter/base/text.h"
#include "exporter/score/summary.h"
#include "exporter/ui/out.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>

struct merged {
    const struct scorer_spec *spec;
    const struct api_config *api; /* NULL: ignored */
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

/* The source of the DynamicScorer that supplies the fields which the i-th of /config leaves out: one
 * source serves all. NULL for none. */
static const struct source_spec *merged_fallback(const struct scorer_spec *spec, size_t i)
{
    if (spec->own.n_sources == 1)
        i = 0;
    return i < spec->own.n_sources ? &spec->own.sources[i] : NULL;
}

/* The source of the DynamicScorer whose token is sent to the i-th source. NULL for none. */
static const struct source_spec *merged_token_source(const struct scorer_spec *spec, size_t i)
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

static void merged_done(struct merged *m)
{
    json_decref(m->params);
    free(m->origin);
    m->params = NULL;
    m->origin = NULL;
}

/* The documents must outlive *ret. -ENOMEM. */
static int merged_init(struct merged *ret, const char *name, const struct scorer_spec *spec,
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

/* ---- Where tokens may go: the DynamicScorer decides, not the scoring API ---- */

/* A token, and the hosts that it may be sent to. */
struct token_gate {
    const struct auth *auth;
    const char *hosts[2]; /* in the DynamicScorer, the field's own first; NULL for none */
};

/* 1 for the same origin, else 0; -ENOMEM. */
static int same_origin(const char *origin, const char *url)
{
    CLEANUP(cleanup_free) char *other = NULL;
    int r = url_origin(url, &other);

    return r < 0 ? r : *other && strcmp(origin, other) == 0;
}

/* 1 or 0; -ENOMEM. */
static int gate_allows(const struct token_gate *g, const char *origin)
{
    const json_t *entry;
    int r = 0;
    size_t i;

    json_array_foreach(g->auth->allowed_hosts, i, entry)
    {
        const char *allowed = cstr(kube_str(entry, NULL));

        r = strcmp(allowed, "*") == 0 ? 1 : same_origin(origin, allowed);
        if (r != 0)
            return r;
    }
    for (i = 0; i < ARRAY_SIZE(g->hosts) && r == 0; i++)
        if (g->hosts[i])
            r = same_origin(origin, g->hosts[i]);
    return r;
}

static int gate_explain(char why[SPEC_WHY_BYTES], const struct token_gate *g, const char *host,
                        const char *origin, const char *field)
{
    BUF_AUTO(text, 16384);
    int r = buf_printf(&text, "the credentials in Secret %.253s may not be sent to ", g->auth->token.name);

    r = r ?: *origin ? buf_puts(&text, origin) : problem_quote(str_of(host), &text);
    r = r ?: buf_puts(&text, ", which /config names; ");
    if (r == 0 && *origin && !g->hosts[0]) /* the very line to add */
        r = buf_printf(&text, "to allow it, set %s.host: %s", field, origin);
    else if (r == 0)
        r = buf_printf(&text, "allow it in %s.auth.allowedHosts", field);
    if (r == 0)
        text_line(why, SPEC_WHY_BYTES, buf_str(&text));
    return r;
}

/* 1 with the reason when the token may not be sent to the host in /config; 0; -ENOMEM, -EFBIG. field:
 * where the gate is set. */
static int gate_refuses(const struct token_gate *g, const char *host, const char *field,
                        char why[SPEC_WHY_BYTES])
{
    CLEANUP(cleanup_free) char *origin = NULL;
    int r;

    if (!g->auth->token.name || !host)
        return 0;
    r = url_origin(host, &origin);
    if (r == 0)
        r = gate_allows(g, origin);
    if (r != 0)
        return r < 0 ? r : 0;
    return gate_explain(why, g, host, origin, field) ?: 1;
}

static int source_refuses(const struct scorer_spec *spec, const struct api_config *synced, size_t i,
                          char why[SPEC_WHY_BYTES])
{
    const struct source_spec *api = &synced->sources[i], *own = merged_token_source(spec, i),
                             *fallback = merged_fallback(spec, i);
    enum source_type type = api->type ?: (fallback ? fallback->type : SOURCE_UNSET) ?: SOURCE_PROMETHEUS;
    char field[32];

    if (!own || !source_kind(type)->path)
        return 0;
    (void)snprintf(field, sizeof(field), "spec.sources[%zu]", (size_t)(own - spec->own.sources));
    if (spec->own.n_sources == 1)
        (void)snprintf(field, sizeof(field), "spec.source");
    return gate_refuses(&(struct token_gate){.auth = &own->auth, .hosts = {own->host}}, api->host, field,
                        why);
}

bool effective_refuses(const struct scorer_spec *spec, const struct api_config *synced,
                       char why[SPEC_WHY_BYTES])
{
    const struct scoring_spec *own = &spec->own.scoring;
    int r = 0;

    if (spec->mode != SYNC_FULL || !synced)
        return false;
    for (size_t i = 0; i < synced->n_sources && r == 0; i++)
        r = source_refuses(spec, synced, i, why);
    if (r == 0)
        r = gate_refuses(&(struct token_gate){.auth = &own->auth, .hosts = {own->host, spec->config_url}},
                         synced->scoring.host, "spec.scoring", why);
    /* Refused when in doubt. */
    if (r < 0)
        (void)snprintf(why, SPEC_WHY_BYTES, "out of memory");
    return r != 0;
}

/* ---- A summary that is active ---- */

/* False when in doubt. */
static bool gate_permits(const struct token_gate *g, struct token_ref token, const char *endpoint)
{
    CLEANUP(cleanup_free) char *origin = NULL;

    return strcmp(cstr(g->auth->token.name), token.name) == 0 &&
           strcmp(cstr(g->auth->token.key), token.key) == 0 && url_origin(cstr(endpoint), &origin) == 0 &&
           gate_allows(g, origin) == 1;
}

static struct token_ref token_of(const json_t *source, const char *name, const char *key)
{
    return (struct token_ref){cstr(kube_str(source, name, NULL)), cstr(kube_str(source, key, NULL))};
}

static bool source_stays(const struct scorer_spec *spec, const json_t *source)
{
    struct token_ref token = token_of(source, "sourceEndpointAuthName", "sourceEndpointAuthKey");
    bool stays = !*token.name;

    for (size_t i = 0; i < spec->own.n_sources && !stays; i++) {
        const struct source_spec *own = &spec->own.sources[i];
        stays = gate_permits(&(struct token_gate){.auth = &own->auth, .hosts = {own->host}}, token,
                             kube_str(source, "sourceEndpoint", NULL));
    }
    return stays;
}

static bool scoring_stays(const struct scorer_spec *spec, const json_t *summary)
{
    struct token_ref token = token_of(summary, "scoringEndpointAuthName", "scoringEndpointAuthKey");
    const struct scoring_spec *own = &spec->own.scoring;

    return !*token.name ||
           gate_permits(&(struct token_gate){.auth = &own->auth, .hosts = {own->host, spec->config_url}},
                        token, kube_str(summary, "scoringEndpoint", NULL));
}

/* Whether the spec allows each token in the summary to go where the summary sends it. */
static bool effective_tokens_stay(const struct scorer_spec *spec, struct str summary)
{
    json_auto_t *o = NULL;
    const json_t *source;
    size_t i;

    if (kube_json_parse(&o, summary, NULL) < 0 || !source_stays(spec, o) || !scoring_stays(spec, o))
        return false;
    json_array_foreach(kube_list(o, "sources", NULL), i,
                       source) if (!source_stays(spec, source)) return false;
    return true;
}

/* ---- Writes the summary as agents read it ---- */

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
    const struct source_kind *kind = source_kind(s->type);

    text_set_string(m, "sourceType", source_type_word(s->type));
    if (!kind->path || (kind->endpoint_is_optional && !s->host))
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

/* The summary with all sources, or with the given one alone. A new reference. -ENOMEM, -EFBIG. */
static int merged_summary(json_t **ret, const struct merged *m, size_t source, bool all)
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

/* ---- What agents make of it ----
 *
 * Whether agents accept a summary; if not, which fields of the DynamicScorer or of /config are wrong. */

/* Where a DynamicScorer or /config sets a summary's member. */
static const struct field {
    const char *member, *path;
    bool is_of_source; /* path and offset are relative to a source */
    bool is_number, only_in_spec;
    size_t offset; /* in struct api_config or source_spec, of what /config says; unless only_in_spec */
} fields[] = {
    {"scoreName", "scoring.params.name", .offset = offsetof(struct api_config, scoring.score_name)},
    {"scoringEndpoint", "scoring.host", .offset = offsetof(struct api_config, scoring.host)},
    {"scoringInterval", "scoring.params.interval", .is_number = true,
     .offset = offsetof(struct api_config, scoring.interval_s)},
    {"scoringEndpointAuthName", "scoring.auth.tokenSecretRef.name", .only_in_spec = true},
    {"scoringEndpointAuthKey", "scoring.auth.tokenSecretRef.key", .only_in_spec = true},
    {"sourceType", "type", .is_of_source = true, .only_in_spec = true},
    {"sourceEndpoint", "host", .is_of_source = true, .offset = offsetof(struct source_spec, host)},
    {"sourceQuery", "params.query", .is_of_source = true, .offset = offsetof(struct source_spec, query)},
    {"sourceRange", "params.range", .is_of_source = true, .is_number = true,
     .offset = offsetof(struct source_spec, range_s)},
    {"sourceStep", "params.step", .is_of_source = true, .is_number = true,
     .offset = offsetof(struct source_spec, step_s)},
    {"sourceEndpointAuthName", "auth.tokenSecretRef.name", .is_of_source = true, .only_in_spec = true},
    {"sourceEndpointAuthKey", "auth.tokenSecretRef.key", .is_of_source = true, .only_in_spec = true},
};

static const struct field *find_field(struct str member)
{
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        if (str_eq(member, str_of(fields[i].member)))
            return &fields[i];
    return NULL;
}

/* Whether /config sets the field (of its i-th source). */
static bool is_from_api(const struct field *f, const struct merged *m, size_t i)
{
    const char *at;

    if (!m->api || f->only_in_spec || (f->is_of_source && i >= m->api->n_sources))
        return false;
    at = (f->is_of_source ? (const char *)&m->api->sources[i] : (const char *)m->api) + f->offset;
    return f->is_number ? *(const int64_t *)(const void *)at != 0
                        : *(const char *const *)(const void *)at != NULL;
}

static size_t count_sources(const struct merged *m, bool from_api)
{
    return from_api ? m->api->n_sources : m->spec->own.n_sources;
}

static int check_put_field(struct buf *into, const struct field *f, const struct merged *m, size_t i)
{
    bool api = is_from_api(f, m, i);
    int r = buf_puts(into, api ? "" : "spec.");

    if (f->is_of_source && count_sources(m, api) > 1)
        r = r ?: buf_printf(into, "sources[%zu].", i);
    else if (f->is_of_source)
        r = r ?: buf_puts(into, "source.");
    return r ?: buf_printf(into, "%s%s", f->path, api ? " in /config" : "");
}

/* Of "sources[1].sourceStep" the first part; empty for the summary as a whole. */
static struct str check_member(const struct problem *x)
{
    struct str key = {x->path.p, 0};

    while (key.n < x->path.n && !strchr(".[", key.p[key.n]))
        key.n++;
    return key;
}

/* Names the field as the DynamicScorer or /config spells it. */
static int check_put(struct buf *into, const struct problem *x, const struct merged *m, size_t source)
{
    struct str key = check_member(x);
    const struct field *f = find_field(key);
    int r = into->n ? buf_puts(into, "; ") : 0;

    if (key.n == 0)
        return r ?: buf_puts(into, x->text);
    if (f)
        r = r ?: check_put_field(into, f, m, m->n_sources ? m->index[source] : 0);
    else
        r = r ?: buf_puts(into, "spec.") ?: buf_put_str(into, key);
    return r ?: buf_puts(into, x->text + key.n);
}

/* Whether the value is the DynamicScorer's. A value missing from both is a fault of either. */
static bool is_spec_value(const struct problem *x, const struct merged *m, size_t source)
{
    const struct field *f = find_field(check_member(x));

    return f && !x->missing && !is_from_api(f, m, m->n_sources ? m->index[source] : 0);
}

/* Appends all problems of the kind. */
static int check_list(char out[SPEC_WHY_BYTES], const struct problems *p, enum problem_kind kind,
                      const struct merged *m, size_t source)
{
    BUF_AUTO(list, 64 * 1024);
    int r = buf_puts(&list, out);

    for (size_t i = 0; i < p->n && r == 0; i++)
        if (p->list[i].kind == kind)
            r = check_put(&list, &p->list[i], m, source);
    if (r == -ENOMEM)
        return r;
    text_line(out, SPEC_WHY_BYTES, buf_str(&list));
    return 0;
}

/* Sets reason and error, or interval and warning. `source`, `all`: what merged_summary() made the text from.
 * -ENOMEM. */
static int effective_check(struct effective *e, struct str text, const struct merged *m, size_t source,
                           bool all)
{
    CLEANUP(problems_done) struct problems p = {0};
    CLEANUP(summary_done) struct summary s = {0};

    summary_parse(&s, text, &p);
    if (p.errors) {
        e->reason = EFFECTIVE_INCOMPLETE;
        e->only_spec_is_wrong = true;
        for (size_t i = 0; i < p.n; i++)
            if (p.list[i].kind == PROBLEM_ERROR)
                e->only_spec_is_wrong &= is_spec_value(&p.list[i], m, source);
        return check_list(e->error, &p, PROBLEM_ERROR, m, source);
    }
    e->interval_ms = s.interval_ms;
    /* Several sources have been checked one by one. */
    return all && m->n_sources > 1 ? 0 : check_list(e->warning, &p, PROBLEM_WARNING, m, source);
}

/* ---- The effective configuration ---- */

/* Appends and checks the summary, with the members of one source or of all. */
static int effective_put_text(struct effective *e, struct buf *into, const struct merged *m, size_t source,
                              bool all)
{
    json_auto_t *o = NULL;
    int r = merged_summary(&o, m, source, all);

    r = r ?: kube_json_print(o, into);
    r = r ?: effective_check(e, buf_str(into), m, source, all);
    if (r != -EFBIG)
        return r;
    e->reason = EFFECTIVE_INCOMPLETE;
    (void)snprintf(e->error, sizeof(e->error), "spec: the summary exceeds 256 KiB");
    return 0;
}

static int effective_put_all(struct effective *e, const struct merged *m)
{
    BUF_AUTO(text, SUMMARY_MAX_BYTES);
    int r = 0;

    /* Several sources one by one, so that an error names its source. */
    for (size_t i = 0; m->n_sources > 1 && i < m->n_sources && r == 0 && e->reason == EFFECTIVE_OK; i++) {
        r = effective_put_text(e, &text, m, i, false);
        buf_truncate(&text, 0);
    }
    if (r == 0 && e->reason == EFFECTIVE_OK)
        r = effective_put_text(e, &text, m, 0, true);
    if (r < 0 || e->reason != EFFECTIVE_OK)
        return r;
    buf_shrink(&text);
    e->text = buf_take(&text);
    return 0;
}

/* Before the first /config, a field that the DynamicScorer leaves to it is no error. */
static void effective_wait(struct effective *e)
{
    char why[SPEC_WHY_BYTES];
    BUF_AUTO(text, 2 * SPEC_WHY_BYTES);

    memcpy(why, e->error, sizeof(why));
    e->reason = EFFECTIVE_WAITING;
    if (buf_printf(&text, "no configuration received from spec.configURL yet: %s", why) == 0)
        text_line(e->error, sizeof(e->error), buf_str(&text));
}

static int effective_decide(struct effective *e, const struct merged *m)
{
    bool is_waiting = m->spec->mode == SYNC_FULL && !m->api;
    int r = 0;

    if (m->api && effective_refuses(m->spec, m->api, e->error)) {
        e->reason = EFFECTIVE_TOKEN_HOST;
        return 0;
    }
    if (is_waiting && !m->has_sources) {
        e->reason = EFFECTIVE_INCOMPLETE;
        (void)snprintf(e->error, sizeof(e->error), "spec.source: missing");
    } else {
        r = effective_put_all(e, m);
    }
    if (r == 0 && is_waiting && e->reason == EFFECTIVE_INCOMPLETE)
        effective_wait(e);
    return r;
}

int effective_make(struct effective *ret, const char *name, const struct scorer_spec *spec,
                   const struct api_config *synced)
{
    CLEANUP(effective_done) struct effective e = {.reason = EFFECTIVE_OK};
    CLEANUP(merged_done) struct merged m = {0};
    int r = merged_init(&m, name, spec, synced);

    if (r < 0)
        return r;
    e.mode = spec->mode;
    e.source = m.api ? CONFIG_FROM_API : CONFIG_FROM_SPEC;
    if (m.score_name)
        e.score_name = xstrdup(m.score_name);
    r = effective_decide(&e, &m);
    if (r < 0)
        return r;
    *ret = e;
    e = (struct effective){0};
    return 0;
}

bool effective_keep(struct effective *now, struct effective *last, const struct scorer_spec *newest)
{
    struct effective keep = *last;

    if (now->reason != EFFECTIVE_INCOMPLETE || !effective_usable(last) || now->mode != last->mode ||
        (now->score_name && strcmp(now->score_name, cstr(last->score_name)) != 0) ||
        !effective_tokens_stay(newest, buf_str(&last->text)))
        return false;
    keep.reason = now->reason;
    memcpy(keep.error, now->error, sizeof(keep.error));
    keep.kept = true;
    effective_done(now);
    *now = keep;
    *last = (struct effective){0};
    return true;
}

int effective_resume(struct effective *ret, struct str text, enum config_source source)
{
    CLEANUP(effective_done)
    struct effective e = {.reason = EFFECTIVE_INCOMPLETE, .source = source, .kept = true};
    CLEANUP(problems_done) struct problems p = {0};
    CLEANUP(summary_done) struct summary s = {0};

    if (text.n <= SUMMARY_MAX_BYTES)
        summary_parse(&s, text, &p);
    if (text.n > SUMMARY_MAX_BYTES || p.errors)
        return -EINVAL;
    buf_init(&e.text, SUMMARY_MAX_BYTES);
    e.mode = source == CONFIG_FROM_API ? SYNC_FULL : SYNC_NONE;
    e.interval_ms = s.interval_ms;
    e.score_name = xstrdup(s.score_name);
    if (buf_put_str(&e.text, text) < 0)
        return -ENOMEM;
    *ret = e;
    e = (struct effective){0};
    return 0;
}

void effective_done(struct effective *e)
{
    free(e->score_name);
    buf_done(&e->text);
    *e = (struct effective){0};
}
