/* Reads a DynamicScorer's spec and a /config, and names each fault by its field. Pure. */
#include "controller/hub/rules/spec.h"

#include "exporter/base/buf.h"

#include "exporter/base/doc.h"
#include "exporter/base/text.h"
#include "exporter/http/http.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

/* An object in the document. map is NULL when it is absent; then all its members read as absent. */
struct spec_place {
    const json_t *map;
    char path[160]; /* "spec.source.params."; empty at the top */
};

enum { SPEC_ERRORS_BYTES = 8192 };

/* What an api_config is read from. */
enum spec_document {
    DOCUMENT_SCORER, /* a DynamicScorer, the only one with tokens */
    DOCUMENT_CONFIG, /* a /config response */
    DOCUMENT_STATUS, /* from api_config_value(): has both `source` and, with all of them, `sources` */
};

/* ---- Writes status.lastSyncedConfig ---- */

static json_t *source_value(const struct source_spec *s)
{
    return json_pack("{s:s*, s:{s:s, s:I, s:I}, s:s, s:s*}", "host", s->host, "params", "query",
                     cstr(s->query), "range", (json_int_t)s->range_s, "step", (json_int_t)s->step_s, "path",
                     cstr(s->path), "type", source_type_word(s->type));
}

json_t *api_config_value(const struct api_config *c)
{
    const struct scoring_spec *s = &c->scoring;
    json_t *params =
        json_pack("{s:I, s:s}", "interval", (json_int_t)s->interval_s, "name", cstr(s->score_name));
    json_t *value;

    (void)json_object_update(params, (json_t *)(uintptr_t)s->params);
    value = json_pack("{s:s, s:s, s:{s:s*, s:o, s:s}, s:o}", "description", cstr(c->description), "name",
                      cstr(c->name), "scoring", "host", s->host, "params", params, "path", cstr(s->path),
                      "source", source_value(&c->sources[0]));
    if (c->n_sources < 2)
        return value;
    /* Another CRD may know one source only: a server that prunes the list keeps the first. */
    json_object_set_new(value, "sources", json_array());
    for (size_t i = 0; i < c->n_sources; i++)
        json_array_append_new(json_object_get(value, "sources"), source_value(&c->sources[i]));
    return value;
}

/* ---- Members of users' documents, and all errors in them, joined ---- */

static void PRINTF_LIKE(2, 3) spec_error(struct buf *errors, const char *fmt, ...)
{
    struct buf_mark mark = buf_mark(errors);
    va_list ap;

    text_join(errors, "; ");
    va_start(ap, fmt);
    buf_vprintf(errors, fmt, ap);
    va_end(ap);
    if (buf_failed(errors) < 0) /* past the ceiling, errors are left out */
        buf_rollback(errors, mark);
}

/* What a value is; NULL: absent. A misplaced string may be a token: not shown. */
static void spec_put_kind(struct buf *into, const json_t *value)
{
    static const char *const kinds[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list", [JSON_STRING] = "a string",
        [JSON_TRUE] = "true",        [JSON_FALSE] = "false",  [JSON_NULL] = "null",
    };

    if (!value)
        buf_puts(into, "nothing");
    else if (json_is_integer(value))
        buf_printf(into, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    else if (json_is_real(value))
        buf_printf(into, "%g", json_real_value(value));
    else if (json_is_string(value) && !*json_string_value(value))
        buf_puts(into, "an empty string");
    else
        buf_puts(into, kinds[json_typeof(value)]);
}

/* Adds "<path>.<key>: expected <what>, got <kind of value>". */
static void spec_expected(struct buf *errors, const struct spec_place *at, const char *key, const char *what,
                          const json_t *got)
{
    BUF_AUTO(kind, 64);

    spec_put_kind(&kind, got);
    spec_error(errors, "%s%.100s: expected %s, got %.*s", at->path, key, what, STR_ARG(buf_str(&kind)));
}

/* 0 without errors; else -EINVAL with all of them in `why`. */
static int spec_result(const struct buf *errors, char why[SPEC_WHY_BYTES])
{
    if (errors->n == 0)
        return 0;
    text_line(why, SPEC_WHY_BYTES, buf_str(errors));
    return -EINVAL;
}

/* The member, which must be an object. */
static struct spec_place spec_object(struct buf *errors, const struct spec_place *at, const char *key)
{
    struct spec_place in = {.map = kube_get(at->map, key, NULL)};

    (void)snprintf(in.path, sizeof(in.path), "%.100s%.50s.", at->path, key);
    if (in.map && !json_is_object(in.map)) {
        spec_expected(errors, at, key, "an object", in.map);
        in.map = NULL;
    }
    return in;
}

/* NULL when absent, null or empty, and after an error. */
static const char *spec_string(struct buf *errors, const struct spec_place *at, const char *key)
{
    const json_t *v = kube_get(at->map, key, NULL);
    const char *s = json_string_value(v);

    if (!v)
        return NULL;
    if (!s)
        spec_expected(errors, at, key, "a string", v);
    else if (strlen(s) != json_string_length(v))
        spec_error(errors, "%s%s: expected a string without NUL characters", at->path, key);
    else if (*s)
        return s;
    return NULL;
}

/* Whole seconds; 0 when absent or null, and after an error. */
static int64_t spec_seconds(struct buf *errors, const struct spec_place *at, const char *key)
{
    const json_t *v = kube_get(at->map, key, NULL);
    int64_t n;

    if (!v)
        return 0;
    if (kube_int(v, &n, NULL) && n >= 0)
        return n;
    spec_expected(errors, at, key, "a whole number of seconds", v);
    return 0;
}

/* One of the NULL-terminated words, which may be in any case, as listed. NULL as for spec_string(). */
static const char *spec_word(struct buf *errors, const struct spec_place *at, const char *key,
                             const char *const *words)
{
    const char *s = spec_string(errors, at, key);
    BUF_AUTO(list, 256);
    BUF_AUTO(quoted, 512);

    for (size_t i = 0; s && words[i]; i++)
        if (str_eq_nocase(str_of(s), str_of(words[i])))
            return words[i];
    problem_choices(words, &list);
    problem_quote(str_of(s), &quoted);
    if (s)
        spec_error(errors, "%s%s: expected %.*s, got %.*s", at->path, key, STR_ARG(buf_str(&list)),
                   STR_ARG(buf_str(&quoted)));
    return NULL;
}

/* The members name and key. */
static struct token_ref spec_token(struct buf *errors, const struct spec_place *at)
{
    size_t before = errors->n;
    struct token_ref ref = {.name = spec_string(errors, at, "name"), .key = spec_string(errors, at, "key")};

    if (errors->n == before && ref.key && !ref.name)
        spec_error(errors, "%.*s: a key needs the name of its Secret", (int)strlen(at->path) - 1, at->path);
    return ref;
}

/* ---- What a DynamicScorer and /config share ---- */

enum { MAX_PARAMS = 64, MAX_ALLOWED_HOSTS = 64, MAX_PLACEMENTS = 32 };

static const json_t *config_allowed_hosts(struct buf *errors, const struct spec_place *auth)
{
    const json_t *list = kube_get(auth->map, "allowedHosts", NULL), *entry;
    size_t i;

    if (!list)
        return NULL;
    if (!json_is_array(list) || json_array_size(list) > MAX_ALLOWED_HOSTS) {
        spec_expected(errors, auth, "allowedHosts", "a list of at most 64 hosts", list);
        return NULL;
    }
    json_array_foreach(list, i, entry)
    {
        const char *host = cstr(kube_str(entry, NULL));
        CLEANUP(cleanup_free) char *origin = url_origin(host);
        char key[40];

        (void)snprintf(key, sizeof(key), "allowedHosts[%zu]", i);
        /* One without an origin would silently allow nothing. */
        if (!*origin && strcmp(host, "*") != 0)
            spec_expected(errors, auth, key, "an origin such as https://prometheus.example:9090, or *",
                          entry);
    }
    return json_array_size(list) ? list : NULL;
}

static void config_auth(struct buf *errors, const struct spec_place *at, const char *host, struct auth *a)
{
    struct spec_place auth = spec_object(errors, at, "auth"),
                      ref = spec_object(errors, &auth, "tokenSecretRef");

    a->token = spec_token(errors, &ref);
    a->hosts[0] = host;
    a->allowed_hosts = config_allowed_hosts(errors, &auth);
}

static void config_source(struct buf *errors, const struct spec_place *at, enum spec_document document,
                          struct source_spec *s)
{
    struct spec_place params = spec_object(errors, at, "params"),
                      endpoint = spec_object(errors, at, "endpoint");
    bool is_text = json_is_string(kube_get(at->map, "query", NULL));
    struct spec_place query = is_text ? (struct spec_place){0} : spec_object(errors, at, "query");

    s->type = source_type_of(spec_word(errors, at, "type", source_type_words));
    s->host = spec_string(errors, at, "host") ?: spec_string(errors, &endpoint, "host");
    s->path = spec_string(errors, at, "path") ?: spec_string(errors, &endpoint, "path");
    s->query = spec_string(errors, &params, "query")
                   ?: (is_text ? spec_string(errors, at, "query") : spec_string(errors, &query, "query"));
    s->range_s = spec_seconds(errors, &params, "range") ?: spec_seconds(errors, &query, "range");
    s->step_s = spec_seconds(errors, &params, "step") ?: spec_seconds(errors, &query, "step");
    if (document == DOCUMENT_SCORER)
        config_auth(errors, at, s->host, &s->auth);
}

static void config_source_list(struct buf *errors, const struct spec_place *top, const json_t *list,
                               enum spec_document document, struct api_config *c)
{
    if (json_array_size(list) > SPEC_MAX_SOURCES) {
        spec_error(errors, "%ssources: expected at most %d, got %zu", top->path, SPEC_MAX_SOURCES,
                   json_array_size(list));
        return;
    }
    for (; c->n_sources < json_array_size(list); c->n_sources++) {
        struct spec_place at = {.map = json_array_get(list, c->n_sources)};
        char key[40];

        (void)snprintf(key, sizeof(key), "sources[%zu]", c->n_sources);
        (void)snprintf(at.path, sizeof(at.path), "%.100s%s.", top->path, key);
        if (json_is_object(at.map))
            config_source(errors, &at, document, &c->sources[c->n_sources]);
        else
            spec_expected(errors, top, key, "an object", at.map);
    }
}

static void config_sources(struct buf *errors, const struct spec_place *top, enum spec_document document,
                           struct api_config *c)
{
    const json_t *one = kube_get(top->map, "source", NULL), *many = kube_get(top->map, "sources", NULL);
    const struct source_spec *s = &c->sources[0];

    if (one && many && document != DOCUMENT_STATUS) {
        spec_error(errors, "%ssource and %ssources: only one may be set", top->path, top->path);
    } else if (json_is_array(many)) {
        config_source_list(errors, top, many, document, c);
    } else if (many) {
        spec_expected(errors, top, "sources", "a list", many);
    } else if (one) {
        struct spec_place at = spec_object(errors, top, "source");

        config_source(errors, &at, document, &c->sources[c->n_sources++]);
    }
    if (c->n_sources == 1 && s->type == SOURCE_UNSET && !s->host && !s->path && !s->query && !s->range_s &&
        !s->step_s && !s->auth.token.name && !s->auth.allowed_hosts)
        c->n_sources = 0;
}

/* The members of scoring.params but name and interval, in an object of their own beside the document. */
static void config_params(struct buf *errors, const struct spec_place *params, struct api_config *c)
{
    json_auto_t *others = json_object();
    const char *key;
    json_t *v;

    json_object_foreach((json_t *)(uintptr_t)params->map, key, v)
    {
        if (strcmp(key, "name") == 0 || strcmp(key, "interval") == 0)
            continue;
        if (json_is_number(v) || json_is_boolean(v) || kube_str(v, NULL))
            json_object_set(others, key, v);
        else
            spec_expected(errors, params, key, "a string, a number, true or false", v);
    }
    if (json_object_size(others) > MAX_PARAMS)
        spec_error(errors, "%.*s: expected at most %d parameters, got %zu", (int)strlen(params->path) - 1,
                   params->path, MAX_PARAMS, json_object_size(others));
    if (json_object_size(others) == 0)
        return;
    c->scoring.params = others;
    c->owner = json_pack("[o, O]", c->owner, others);
}

/* *c is zeroed; the caller releases it after an error. */
static void spec_read_config(struct buf *errors, struct api_config *c, json_t *owner,
                             const struct spec_place *top, enum spec_document document)
{
    struct spec_place at, params, endpoint;
    struct scoring_spec *s = &c->scoring;

    c->owner = json_incref(owner);
    c->name = spec_string(errors, top, "name");
    c->description = spec_string(errors, top, "description");
    config_sources(errors, top, document, c);
    at = spec_object(errors, top, "scoring");
    params = spec_object(errors, &at, "params");
    endpoint = spec_object(errors, &at, "endpoint");
    s->host = spec_string(errors, &at, "host") ?: spec_string(errors, &endpoint, "host");
    s->path = spec_string(errors, &at, "path") ?: spec_string(errors, &endpoint, "path");
    s->score_name = spec_string(errors, &params, "name");
    s->interval_s = spec_seconds(errors, &params, "interval");
    if (document == DOCUMENT_SCORER)
        config_auth(errors, &at, s->host, &s->auth);
    config_params(errors, &params, c);
}

static int spec_config_read(struct api_config *ret, json_t *value, enum spec_document document,
                            char why[SPEC_WHY_BYTES])
{
    BUF_AUTO(errors, SPEC_ERRORS_BYTES);
    struct api_config c = {0};
    const struct spec_place top = {.map = value};

    /* An error of a proxy may be JSON, too, but has neither member. */
    if (!json_is_object(value))
        spec_expected(&errors, &top, "configuration", "an object with source and scoring", value);
    else if (!kube_get(value, "source", NULL) && !kube_get(value, "sources", NULL) &&
             !kube_get(value, "scoring", NULL))
        spec_error(&errors, "not a configuration: it has neither source nor scoring");
    else
        spec_read_config(&errors, &c, value, &top, document);
    if (errors.n == 0)
        *ret = c;
    else
        api_config_done(&c);
    return spec_result(&errors, why);
}

int api_config_read(struct api_config *ret, json_t *value, char why[SPEC_WHY_BYTES])
{
    return spec_config_read(ret, value, DOCUMENT_STATUS, why);
}

int api_config_parse(struct api_config *ret, struct str body, char why[SPEC_WHY_BYTES])
{
    json_auto_t *value = NULL;

    if (kube_json_parse(&value, body, why) < 0)
        return -EBADMSG;
    return spec_config_read(ret, value, DOCUMENT_CONFIG, why);
}

void api_config_done(struct api_config *c)
{
    json_decref(c->owner);
    *c = (struct api_config){0};
}

/* ---- The spec of a DynamicScorer ---- */

static const char *const health_checks[] = {
    [HEALTH_CHECK_HUB] = "Hub", [HEALTH_CHECK_AGENTS] = "Agents", [HEALTH_CHECK_NONE] = "None", NULL};

const char *health_check_word(enum health_check c)
{
    return health_checks[c];
}

/* The values kept as written are checked with the summary. */
static void spec_destination(struct buf *errors, const struct spec_place *spec, struct scorer_spec *s)
{
    static const char *const locations[] = {"Internal", "External", NULL};
    static const char *const destinations[] = {"AddOnPlacementScore", "None", NULL};
    static const char *const aggregations[] = {"last", "avg", "max", "min", "sum", NULL};

    s->location = spec_word(errors, spec, "location", locations);
    s->destination = spec_word(errors, spec, "scoreDestination", destinations);
    s->dimension_format = spec_string(errors, spec, "scoreDimensionFormat");
    s->aggregation = spec_word(errors, spec, "scoreAggregation", aggregations);
    s->score_items = kube_get(spec->map, "scoreItems", NULL);
    s->score_range = kube_get(spec->map, "scoreRange", NULL);
    s->score_tolerance = kube_get(spec->map, "scoreTolerance", NULL);
    s->fallback_score = kube_get(spec->map, "fallbackScore", NULL);
    s->timeout = kube_get(spec->map, "timeout", NULL);
}

static const json_t *spec_placements(struct buf *errors, const struct spec_place *spec)
{
    const json_t *list = kube_get(spec->map, "placements", NULL), *entry;
    size_t i, wrong = json_is_array(list) && json_array_size(list) > MAX_PLACEMENTS;

    json_array_foreach(list, i, entry)
    {
        wrong += !*cstr(kube_str(entry, NULL));
    }
    if (wrong || (list && !json_is_null(list) && !json_is_array(list)))
        spec_expected(errors, spec, "placements", "a list of at most 32 names of Placements", list);
    return json_array_size(list) ? list : NULL;
}

int scorer_spec_read(struct scorer_spec *ret, json_t *object, char why[SPEC_WHY_BYTES])
{
    static const char *const modes[] = {"Full", "None", NULL};
    BUF_AUTO(errors, SPEC_ERRORS_BYTES);
    struct scorer_spec s = {0};
    const struct spec_place top = {.map = object};
    struct spec_place spec = spec_object(&errors, &top, "spec"), auth, ref;
    const char *health;

    if (!spec.map && errors.n == 0)
        spec_expected(&errors, &top, "spec", "an object", NULL);
    s.mode = spec_word(&errors, &spec, "configSyncMode", modes) == modes[0] ? SYNC_FULL : SYNC_NONE;
    health = spec_word(&errors, &spec, "healthCheck", health_checks);
    while (health && health_checks[s.health_check] != health)
        s.health_check++;
    auth = spec_object(&errors, &spec, "configAuth");
    ref = spec_object(&errors, &auth, "tokenSecretRef");
    s.config_url = spec_string(&errors, &spec, "configURL");
    s.config_token = spec_token(&errors, &ref);
    if (s.mode == SYNC_FULL && !s.config_url)
        spec_expected(&errors, &spec, "configURL", "a URL, as configSyncMode is Full",
                      kube_get(spec.map, "configURL", NULL));
    spec_read_config(&errors, &s.own, object, &spec, DOCUMENT_SCORER);
    s.own.scoring.auth.hosts[1] = s.config_url;
    spec_destination(&errors, &spec, &s);
    s.placements = spec_placements(&errors, &spec);
    ret->health_check = s.health_check;
    if (errors.n == 0)
        *ret = s;
    else
        scorer_spec_done(&s);
    return spec_result(&errors, why);
}

void scorer_spec_done(struct scorer_spec *s)
{
    api_config_done(&s->own);
    *s = (struct scorer_spec){0};
}
