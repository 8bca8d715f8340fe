#include "controller/hub/rules/spec.h"

#include "controller/hub/rules/url.h"
#include "exporter/base/buf.h"
#include "exporter/base/problems.h"
#include "exporter/base/text.h"
#include "exporter/score/summary.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* All errors of one document, joined. */
struct spec_reading {
    struct buf errors;
    bool no_memory;
};

/* An object in the document. map is NULL when it is absent; then all its members read as absent. */
struct spec_place {
    const json_t *map;
    char path[160]; /* "spec.source.params"; empty at the top of /config */
};

enum { SPEC_ERRORS_BYTES = 8192 };

/* What an api_config is read from. */
enum spec_document {
    DOCUMENT_SCORER, /* a DynamicScorer, the only one with tokens */
    DOCUMENT_CONFIG, /* a /config response */
    DOCUMENT_STATUS, /* from api_config_value(): has both `source` and, with all of them, `sources` */
};

/* ---- Writes status.lastSyncedConfig ---- */

/* An object under construction. jansson accepts NULL for a value that could not be made, and fails. */
struct value_object {
    json_t *o;
    bool no_memory;
};

static void value_set(struct value_object *m, const char *key, json_t *value)
{
    if (json_object_set_new(m->o, key, value) < 0)
        m->no_memory = true;
}

static void value_set_string(struct value_object *m, const char *key, const char *s)
{
    value_set(m, key, json_string(cstr(s)));
}

static void value_set_if_any(struct value_object *m, const char *key, const char *s)
{
    if (s)
        value_set_string(m, key, s);
}

static json_t *value_end(struct value_object *m)
{
    if (!m->no_memory)
        return m->o;
    json_decref(m->o);
    return NULL;
}

static json_t *scoring_params(const struct scoring_spec *s)
{
    struct value_object m = {.o = json_object()};

    value_set(&m, "interval", json_integer(s->interval_s));
    value_set_string(&m, "name", s->score_name);
    if (s->params && json_object_update(m.o, (json_t *)(uintptr_t)s->params) < 0)
        m.no_memory = true;
    return value_end(&m);
}

static json_t *scoring_value(const struct scoring_spec *s)
{
    struct value_object m = {.o = json_object()};

    value_set_if_any(&m, "host", s->host);
    value_set(&m, "params", scoring_params(s));
    value_set_string(&m, "path", s->path);
    return value_end(&m);
}

static json_t *source_params(const struct source_spec *s)
{
    struct value_object m = {.o = json_object()};

    value_set_string(&m, "query", s->query);
    value_set(&m, "range", json_integer(s->range_s));
    value_set(&m, "step", json_integer(s->step_s));
    return value_end(&m);
}

static json_t *source_value(const struct source_spec *s)
{
    struct value_object m = {.o = json_object()};

    value_set_if_any(&m, "host", s->host);
    value_set(&m, "params", source_params(s));
    value_set_string(&m, "path", s->path);
    value_set_if_any(&m, "type", source_type_word(s->type));
    return value_end(&m);
}

static json_t *sources_value(const struct api_config *c)
{
    json_t *list = json_array();

    for (size_t i = 0; i < c->n_sources; i++) {
        if (json_array_append_new(list, source_value(&c->sources[i])) == 0)
            continue;
        json_decref(list);
        return NULL;
    }
    return list;
}

json_t *api_config_value(const struct api_config *c)
{
    struct value_object m = {.o = json_object()};

    value_set_string(&m, "description", c->description);
    value_set_string(&m, "name", c->name);
    value_set(&m, "scoring", scoring_value(&c->scoring));
    value_set(&m, "source", source_value(&c->sources[0]));
    /* Another CRD may know one source only: a server that prunes the list keeps the first. */
    if (c->n_sources > 1)
        value_set(&m, "sources", sources_value(c));
    return value_end(&m);
}

/* ---- Members of users' documents ---- */

/* Adds an error, formatted as by printf(). */
static void spec_error(struct spec_reading *rd, const char *fmt, ...)
{
    size_t mark = rd->errors.n;
    char text[SPEC_WHY_BYTES];
    va_list ap;
    int r;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    r = mark ? buf_puts(&rd->errors, "; ") : 0;
    r = r ?: buf_puts(&rd->errors, text);
    /* Errors past the ceiling are left out. */
    if (r < 0)
        buf_truncate(&rd->errors, mark);
    if (r == -ENOMEM)
        rd->no_memory = true;
}

static void spec_describe(const json_t *v, char out[64])
{
    switch (v ? json_typeof(v) : JSON_NULL) {
    case JSON_OBJECT:
        (void)snprintf(out, 64, "an object");
        break;
    case JSON_ARRAY:
        (void)snprintf(out, 64, "a list");
        break;
    case JSON_STRING:
        (void)snprintf(out, 64, *json_string_value(v) ? "a string" : "an empty string");
        break;
    case JSON_INTEGER:
        (void)snprintf(out, 64, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
        break;
    case JSON_REAL:
        (void)snprintf(out, 64, "%g", json_real_value(v));
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        (void)snprintf(out, 64, json_is_true(v) ? "true" : "false");
        break;
    default:
        (void)snprintf(out, 64, v ? "null" : "nothing");
    }
}

static const char *spec_dot(const struct spec_place *at, const char *key)
{
    return *at->path && *key ? "." : "";
}

/* Adds "<path>.<key>: expected <what>, got <kind of value>". Strings are not shown, as a misplaced one may
 * be a token. */
static void spec_expected(struct spec_reading *rd, const struct spec_place *at, const char *key,
                          const char *what, const json_t *got)
{
    char kind[64];

    spec_describe(got, kind);
    spec_error(rd, "%s%s%.100s: expected %s, got %s", at->path, spec_dot(at, key), key, what, kind);
}

/* 0 without errors; else -EINVAL with all of them in `why`, or -ENOMEM. */
static int spec_result(const struct spec_reading *rd, char why[SPEC_WHY_BYTES])
{
    if (rd->no_memory)
        return -ENOMEM;
    if (rd->errors.n == 0)
        return 0;
    text_line(why, SPEC_WHY_BYTES, buf_str(&rd->errors));
    return -EINVAL;
}

/* The member, which must be an object. */
static struct spec_place spec_object(struct spec_reading *rd, const struct spec_place *at, const char *key)
{
    struct spec_place in = {.map = kube_get(at->map, key, NULL)};

    (void)snprintf(in.path, sizeof(in.path), "%.100s%s%.50s", at->path, spec_dot(at, key), key);
    if (in.map && !json_is_object(in.map)) {
        spec_expected(rd, at, key, "an object", in.map);
        in.map = NULL;
    }
    return in;
}

/* NULL when absent, null or empty, and after an error. */
static const char *spec_string(struct spec_reading *rd, const struct spec_place *at, const char *key)
{
    const json_t *v = kube_get(at->map, key, NULL);
    const char *s = json_string_value(v);

    if (!v)
        return NULL;
    if (!s)
        spec_expected(rd, at, key, "a string", v);
    else if (strlen(s) != json_string_length(v))
        spec_error(rd, "%s%s%s: expected a string without NUL characters", at->path, spec_dot(at, key), key);
    else if (*s)
        return s;
    return NULL;
}

/* Whole seconds; 0 when absent or null, and after an error. */
static int64_t spec_seconds(struct spec_reading *rd, const struct spec_place *at, const char *key)
{
    const json_t *v = kube_get(at->map, key, NULL);
    int64_t n;

    if (!v)
        return 0;
    if (kube_int(v, &n, NULL) && n >= 0)
        return n;
    spec_expected(rd, at, key, "a whole number of seconds", v);
    return 0;
}

static void spec_word_error(struct spec_reading *rd, const struct spec_place *at, const char *key,
                            const char *got, const char *const *words)
{
    BUF_AUTO(list, 256);
    BUF_AUTO(quoted, 512);
    int r = problem_choices(words, &list);

    r = r ?: problem_quote(str_of(got), &quoted);
    if (r < 0)
        rd->no_memory = true;
    else
        spec_error(rd, "%s%s%s: expected %.*s, got %.*s", at->path, spec_dot(at, key), key,
                   STR_ARG(buf_str(&list)), STR_ARG(buf_str(&quoted)));
}

/* One of the NULL-terminated words, as the list spells it; the value may be in any case. NULL as for
 * spec_string(). */
static const char *spec_word(struct spec_reading *rd, const struct spec_place *at, const char *key,
                             const char *const *words)
{
    const char *s = spec_string(rd, at, key);

    for (size_t i = 0; s && words[i]; i++)
        if (str_eq_nocase(str_of(s), str_of(words[i])))
            return words[i];
    if (s)
        spec_word_error(rd, at, key, s, words);
    return NULL;
}

/* The members name and key. */
static struct token_ref spec_token(struct spec_reading *rd, const struct spec_place *at)
{
    size_t before = rd->errors.n;
    struct token_ref ref = {.name = spec_string(rd, at, "name"), .key = spec_string(rd, at, "key")};

    if (rd->errors.n == before && ref.key && !ref.name)
        spec_error(rd, "%s: a key needs the name of its Secret", at->path);
    return ref;
}

/* ---- What a DynamicScorer and /config share ----
 *
 * The fields that a DynamicScorer and /config have in common: source, scoring API, and their parameters. */

enum { MAX_PARAMS = 64, MAX_ALLOWED_HOSTS = 64 };

/* Rejects an entry without an origin, as it would silently allow nothing. */
static bool is_allowed_host(struct spec_reading *rd, const json_t *v)
{
    const char *s = kube_str(v, NULL);
    CLEANUP(cleanup_free) char *origin = NULL;

    if (!s)
        return false;
    if (strcmp(s, "*") == 0)
        return true;
    if (url_origin(s, &origin) == 0)
        return *origin != '\0';
    rd->no_memory = true;
    return true;
}

static const json_t *config_allowed_hosts(struct spec_reading *rd, const struct spec_place *auth)
{
    const json_t *list = kube_get(auth->map, "allowedHosts", NULL), *entry;
    size_t i;

    if (!list)
        return NULL;
    if (!json_is_array(list) || json_array_size(list) > MAX_ALLOWED_HOSTS) {
        spec_expected(rd, auth, "allowedHosts", "a list of at most 64 hosts", list);
        return NULL;
    }
    json_array_foreach(list, i, entry)
    {
        char key[40];

        (void)snprintf(key, sizeof(key), "allowedHosts[%zu]", i);
        if (!is_allowed_host(rd, entry))
            spec_expected(rd, auth, key, "an origin such as https://prometheus.example:9090, or *", entry);
    }
    return json_array_size(list) ? list : NULL;
}

static void config_auth(struct spec_reading *rd, const struct spec_place *at, struct auth *a)
{
    struct spec_place auth = spec_object(rd, at, "auth"), ref = spec_object(rd, &auth, "tokenSecretRef");

    a->token = spec_token(rd, &ref);
    a->allowed_hosts = config_allowed_hosts(rd, &auth);
}

static void config_source(struct spec_reading *rd, const struct spec_place *at, enum spec_document document,
                          struct source_spec *s)
{
    struct spec_place params = spec_object(rd, at, "params"), endpoint = spec_object(rd, at, "endpoint");
    bool is_text = json_is_string(kube_get(at->map, "query", NULL));
    struct spec_place query = is_text ? (struct spec_place){0} : spec_object(rd, at, "query");

    s->type = source_type_of(spec_word(rd, at, "type", source_type_words));
    s->host = spec_string(rd, at, "host") ?: spec_string(rd, &endpoint, "host");
    s->path = spec_string(rd, at, "path") ?: spec_string(rd, &endpoint, "path");
    s->query = spec_string(rd, &params, "query")
                   ?: (is_text ? spec_string(rd, at, "query") : spec_string(rd, &query, "query"));
    s->range_s = spec_seconds(rd, &params, "range") ?: spec_seconds(rd, &query, "range");
    s->step_s = spec_seconds(rd, &params, "step") ?: spec_seconds(rd, &query, "step");
    if (document == DOCUMENT_SCORER)
        config_auth(rd, at, &s->auth);
}

static bool is_empty_source(const struct source_spec *s)
{
    return s->type == SOURCE_UNSET && !s->host && !s->path && !s->query && !s->range_s && !s->step_s &&
           !s->auth.token.name && !s->auth.allowed_hosts;
}

static void config_source_list(struct spec_reading *rd, const struct spec_place *top, const json_t *list,
                               enum spec_document document, struct api_config *c)
{
    if (json_array_size(list) > SPEC_MAX_SOURCES) {
        spec_error(rd, "%s%ssources: expected at most %d, got %zu", top->path, *top->path ? "." : "",
                   SPEC_MAX_SOURCES, json_array_size(list));
        return;
    }
    for (; c->n_sources < json_array_size(list); c->n_sources++) {
        struct spec_place at = {.map = json_array_get(list, c->n_sources)};

        (void)snprintf(at.path, sizeof(at.path), "%.100s%ssources[%zu]", top->path, *top->path ? "." : "",
                       c->n_sources);
        if (json_is_object(at.map))
            config_source(rd, &at, document, &c->sources[c->n_sources]);
        else
            spec_expected(rd, &at, "", "an object", at.map);
    }
}

static void config_sources(struct spec_reading *rd, const struct spec_place *top, enum spec_document document,
                           struct api_config *c)
{
    const json_t *one = kube_get(top->map, "source", NULL), *many = kube_get(top->map, "sources", NULL);

    if (one && many && document != DOCUMENT_STATUS) {
        const char *where = *top->path ? "spec." : "";

        spec_error(rd, "%ssource and %ssources: only one may be set", where, where);
    } else if (json_is_array(many)) {
        config_source_list(rd, top, many, document, c);
    } else if (many) {
        spec_expected(rd, top, "sources", "a list", many);
    } else if (one) {
        struct spec_place at = spec_object(rd, top, "source");

        config_source(rd, &at, document, &c->sources[c->n_sources++]);
    }
    if (c->n_sources == 1 && is_empty_source(&c->sources[0]))
        c->n_sources = 0;
}

static bool is_scalar(const json_t *v)
{
    return json_is_number(v) || json_is_boolean(v) || kube_str(v, NULL);
}

/* The members of scoring.params other than name and interval, in an object of their own beside the
 * document. */
static void config_params(struct spec_reading *rd, const struct spec_place *params, struct api_config *c)
{
    json_auto_t *others = json_object(), *owners = json_array();
    const char *key;
    json_t *v;

    if (!others || !owners)
        rd->no_memory = true;
    json_object_foreach((json_t *)(uintptr_t)params->map, key, v)
    {
        if (strcmp(key, "name") == 0 || strcmp(key, "interval") == 0)
            continue;
        if (!is_scalar(v))
            spec_expected(rd, params, key, "a string, a number, true or false", v);
        else if (json_object_set(others, key, v) < 0)
            rd->no_memory = true;
    }
    if (json_object_size(others) > MAX_PARAMS)
        spec_error(rd, "%s: expected at most %d parameters, got %zu", params->path, MAX_PARAMS,
                   json_object_size(others));
    if (json_object_size(others) == 0)
        return;
    c->scoring.params = others;
    if (json_array_append_new(owners, c->owner) < 0 || json_array_append(owners, others) < 0) {
        rd->no_memory = true;
        c->scoring.params = NULL;
    }
    c->owner = json_incref(owners);
}

static void config_scoring(struct spec_reading *rd, const struct spec_place *top, enum spec_document document,
                           struct api_config *c)
{
    struct spec_place at = spec_object(rd, top, "scoring"), params = spec_object(rd, &at, "params"),
                      endpoint = spec_object(rd, &at, "endpoint");
    struct scoring_spec *s = &c->scoring;

    s->host = spec_string(rd, &at, "host") ?: spec_string(rd, &endpoint, "host");
    s->path = spec_string(rd, &at, "path") ?: spec_string(rd, &endpoint, "path");
    s->score_name = spec_string(rd, &params, "name");
    s->interval_s = spec_seconds(rd, &params, "interval");
    if (document == DOCUMENT_SCORER)
        config_auth(rd, &at, &s->auth);
    config_params(rd, &params, c);
}

/* Reads the fields that both documents have. *c is zeroed; the caller releases it also after an error. */
static void spec_read_config(struct spec_reading *rd, struct api_config *c, json_t *owner,
                             const struct spec_place *top, enum spec_document document)
{
    c->owner = json_incref(owner);
    c->name = spec_string(rd, top, "name");
    c->description = spec_string(rd, top, "description");
    config_sources(rd, top, document, c);
    config_scoring(rd, top, document, c);
}

/* An error of a proxy may be JSON, too, but has neither member. */
static void config_check_top(struct spec_reading *rd, const json_t *value)
{
    if (!json_is_object(value)) {
        struct spec_place nowhere = {0};

        spec_expected(rd, &nowhere, "configuration", "an object with source and scoring", value);
    } else if (!kube_get(value, "source", NULL) && !kube_get(value, "sources", NULL) &&
               !kube_get(value, "scoring", NULL)) {
        spec_error(rd, "not a configuration: it has neither source nor scoring");
    }
}

static int config_read(struct api_config *ret, json_t *value, enum spec_document document,
                       char why[SPEC_WHY_BYTES])
{
    struct spec_reading rd = {.errors.max = SPEC_ERRORS_BYTES};
    CLEANUP(api_config_done) struct api_config c = {0};
    const struct spec_place top = {.map = value};
    int r;

    config_check_top(&rd, value);
    if (rd.errors.n == 0)
        spec_read_config(&rd, &c, value, &top, document);
    r = spec_result(&rd, why);
    buf_done(&rd.errors);
    if (r < 0)
        return r;
    *ret = c;
    c = (struct api_config){0};
    return 0;
}

int api_config_read(struct api_config *ret, json_t *value, char why[SPEC_WHY_BYTES])
{
    return config_read(ret, value, DOCUMENT_STATUS, why);
}

int api_config_parse(struct api_config *ret, struct str body, char why[SPEC_WHY_BYTES])
{
    json_auto_t *value = NULL;
    char error[256];
    int r = kube_json_parse(&value, body, error);

    if (r == -EINVAL)
        (void)snprintf(why, SPEC_WHY_BYTES, "%s", error);
    return r < 0 ? r : config_read(ret, value, DOCUMENT_CONFIG, why);
}

void api_config_done(struct api_config *c)
{
    json_decref(c->owner);
    *c = (struct api_config){0};
}

/* ---- The spec of a DynamicScorer ---- */

static enum sync_mode spec_mode(struct spec_reading *rd, const struct spec_place *spec)
{
    static const char *const modes[] = {"Full", "None", NULL};

    return spec_word(rd, spec, "configSyncMode", modes) == modes[0] ? SYNC_FULL : SYNC_NONE;
}

static const char *const health_checks[] = {
    [HEALTH_CHECK_HUB] = "Hub", [HEALTH_CHECK_AGENTS] = "Agents", [HEALTH_CHECK_NONE] = "None", NULL};

const char *health_check_word(enum health_check c)
{
    return health_checks[c];
}

static enum health_check spec_health_check(struct spec_reading *rd, const struct spec_place *spec)
{
    const char *word = spec_word(rd, spec, "healthCheck", health_checks);
    enum health_check c = HEALTH_CHECK_HUB;

    while (word && health_checks[c] != word)
        c++;
    return c;
}

enum health_check scorer_spec_health_check(const json_t *object)
{
    struct spec_reading rd = {.errors.max = SPEC_ERRORS_BYTES};
    const struct spec_place spec = {.map = kube_map(object, "spec", NULL)};
    enum health_check c = spec_health_check(&rd, &spec);

    buf_done(&rd.errors);
    return c;
}

static void spec_config_url(struct spec_reading *rd, const struct spec_place *spec, struct scorer_spec *s)
{
    struct spec_place auth = spec_object(rd, spec, "configAuth"),
                      ref = spec_object(rd, &auth, "tokenSecretRef");

    s->config_url = spec_string(rd, spec, "configURL");
    s->config_token = spec_token(rd, &ref);
    if (s->mode == SYNC_FULL && !s->config_url)
        spec_expected(rd, spec, "configURL", "a URL, as configSyncMode is Full",
                      kube_get(spec->map, "configURL", NULL));
}

/* The values kept as written are checked with the summary. */
static void spec_destination(struct spec_reading *rd, const struct spec_place *spec, struct scorer_spec *s)
{
    static const char *const locations[] = {"Internal", "External", NULL};
    static const char *const destinations[] = {"AddOnPlacementScore", "None", NULL};
    static const char *const aggregations[] = {"last", "avg", "max", "min", "sum", NULL};

    s->location = spec_word(rd, spec, "location", locations);
    s->destination = spec_word(rd, spec, "scoreDestination", destinations);
    s->dimension_format = spec_string(rd, spec, "scoreDimensionFormat");
    s->aggregation = spec_word(rd, spec, "scoreAggregation", aggregations);
    s->score_range = kube_get(spec->map, "scoreRange", NULL);
    s->fallback_score = kube_get(spec->map, "fallbackScore", NULL);
    s->timeout = kube_get(spec->map, "timeout", NULL);
}

int scorer_spec_read(struct scorer_spec *ret, json_t *object, char why[SPEC_WHY_BYTES])
{
    struct spec_reading rd = {.errors.max = SPEC_ERRORS_BYTES};
    CLEANUP(scorer_spec_done) struct scorer_spec s = {0};
    const struct spec_place top = {.map = object};
    struct spec_place spec = spec_object(&rd, &top, "spec");
    int r;

    if (!spec.map && rd.errors.n == 0)
        spec_expected(&rd, &top, "spec", "an object", NULL);
    s.mode = spec_mode(&rd, &spec);
    s.health_check = spec_health_check(&rd, &spec);
    spec_config_url(&rd, &spec, &s);
    spec_read_config(&rd, &s.own, object, &spec, DOCUMENT_SCORER);
    spec_destination(&rd, &spec, &s);
    r = spec_result(&rd, why);
    buf_done(&rd.errors);
    if (r < 0)
        return r;
    *ret = s;
    s = (struct scorer_spec){0};
    return 0;
}

void scorer_spec_done(struct scorer_spec *s)
{
    api_config_done(&s->own);
    *s = (struct scorer_spec){0};
}
