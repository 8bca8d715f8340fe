/* The fields that a DynamicScorer and /config have in common: source, scoring API, and their parameters. */
#include "controller/hub/rules/effective.h"
#include "controller/hub/rules/spec_internal.h"

#include <errno.h>
#include <stdio.h>

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

void spec_read_config(struct spec_reading *rd, struct api_config *c, json_t *owner,
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
