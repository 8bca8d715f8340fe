#include "controller/check/check.h"

#include "controller/check/check_internal.h"
#include "controller/hub/rules/effective.h"
#include "controller/hub/rules/spec.h"
#include "controller/kube/json.h"
#include "exporter/agent/config.h"
#include "exporter/agent/scorer.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/base/problems.h"
#include "exporter/base/text.h"
#include "exporter/base/url.h"
#include "exporter/base/utf8.h"
#include "exporter/metric/version.h"

#include <errno.h>
#include <stdio.h>

/* One HTTP call after the other, as an agent would make them. */

struct call_wait {
    struct http_answer *into;
    bool ended;
};

static void check_on_answer(void *arg, struct http_answer *a)
{
    struct call_wait *w = arg;
    struct buf body = buf_take(&a->body);

    *w->into = *a;
    w->into->body = body;
    w->ended = true;
}

int check_call(struct check *c, const struct check_request *rq, struct http_answer *ret)
{
    const struct http_request q = {
        .url = rq->url,
        .content_type = rq->body.n ? "application/json" : NULL,
        .bearer = rq->token,
        .body = &rq->body,
        .body_parts = rq->body.n > 0,
        .max_answer = rq->max_answer,
        .timeout_ms = c->options->timeout_ms ?: scorer_timeout_ms(&c->summary, &limits_default),
        .tls = &c->tls,
    };
    struct call_wait wait = {.into = ret};
    struct http_call *call = NULL;
    int r = http_start(&call, c->http, &q, check_on_answer, &wait);

    while (r == 0 && !wait.ended)
        r = loop_turn(c->loop, 1000);
    if (r < 0 && !wait.ended)
        (void)http_cancel(call);
    if (r == 0 && ret->error == HTTP_MEMORY)
        r = -ENOMEM;
    if (r < 0 && wait.ended)
        buf_done(&ret->body);
    return r;
}

/* "HTTP 500 Internal Server Error: ...", or why there was no answer. */
static void check_describe(const struct http_answer *a, char out[FINDINGS_TEXT_BYTES])
{
    if (a->error != HTTP_OK)
        text_line(out, FINDINGS_TEXT_BYTES, str_of(a->reason));
    else
        text_http_status(out, FINDINGS_TEXT_BYTES, a->status,
                         a->status / 100 == 2 ? STR("") : buf_str(&a->body));
}

static bool call_is_json(const char *content_type)
{
    size_t n = strcspn(content_type, ";");
    struct str type = str_trim((struct str){content_type, n});

    return str_eq_nocase(type, STR("application/json")) ||
           (type.n > 5 && str_eq_nocase((struct str){type.p + type.n - 5, 5}, STR("+json")));
}

void check_take_answer(struct check *c, struct call_row *row, const struct http_answer *a)
{
    row->status = a->status;
    row->seconds = a->seconds;
    check_describe(a, row->text);
    if (a->error == HTTP_OK && a->status / 100 == 2 && a->body.n && !call_is_json(a->content_type))
        findings_add(c->findings, RULE_CONTENT_TYPE, "%s%s", *a->content_type ? "it is " : "there is none",
                     a->content_type);
}

/* /healthz and /config, as the hub reads them. */

enum { MAX_HEALTH_BYTES = 64 << 10 };

/* A DynamicScorer that adds what /config may leave out. */
static int config_make_spec(struct scorer_spec *ret, const struct check *c, const struct api_config *api)
{
    const char *name = api && api->name ? api->name : "score";
    char why[SPEC_WHY_BYTES];
    json_auto_t *o = json_pack("{s:{s:s, s:s, s:s, s:{s:s, s:{s:s}}, s:{s:{s:s}}}}", "spec", "configSyncMode",
                               "Full", "configURL", c->findings->url, "scoreDimensionFormat",
                               c->options->dimension_format, "source", "host", "http://prometheus:9090",
                               "params", "query", "up", "scoring", "params", "name", name);
    int r = o ? scorer_spec_read(ret, o, why) : -ENOMEM;

    return r == -EINVAL ? -ENOMEM : r;
}

/* The path and what follows of a URL that has an origin. */
static const char *config_path_of(const char *url)
{
    const char *host = strstr(url, "://");

    return host ? host + 3 + strcspn(host + 3, "/?#") : url + strlen(url);
}

static bool config_cannot_connect(const struct http_answer *a)
{
    return a->error == HTTP_URL || a->error == HTTP_DNS || a->error == HTTP_CONNECT || a->error == HTTP_TLS;
}

static int config_check_health(struct check *c)
{
    CLEANUP(cleanup_free) char *url = NULL;
    struct http_answer a = {0};
    struct call_row *row;
    int r = asprintf(&url, "%s/healthz", c->origin) < 0 ? -ENOMEM : 0;

    r = r ?: check_call(c, &(struct check_request){.url = url, .max_answer = MAX_HEALTH_BYTES}, &a);
    if (r < 0)
        return r;
    if (config_cannot_connect(&a)) {
        check_describe(&a, c->findings->unreachable);
        return 0;
    }
    row = findings_add_row(c->findings, "GET /healthz");
    row->status = a.status;
    row->seconds = a.seconds;
    check_describe(&a, row->text);
    if (a.error != HTTP_OK || a.status / 100 != 2)
        findings_add(c->findings, RULE_HEALTHZ, "%s", row->text);
    buf_done(&a.body);
    return 0;
}

/* Asks with the token if it must, which the hub does with spec.configAuth. */
static int config_ask(struct check *c, struct http_answer *ret)
{
    struct check_request rq = {.url = c->findings->url, .max_answer = API_CONFIG_MAX_BYTES};
    int r = check_call(c, &rq, ret);

    if (r < 0 || !c->options->token.n || (ret->status != 401 && ret->status != 403))
        return r;
    buf_done(&ret->body);
    rq.token = c->options->token;
    return check_call(c, &rq, ret);
}

/* Whether it is not something else, such as the JSON of an error. */
static bool config_is_one(struct str body, char why[256])
{
    json_auto_t *o = NULL;

    if (kube_json_parse(&o, body, why) < 0)
        return false;
    (void)snprintf(why, 256, "%s",
                   json_is_object(o) ? "it has neither source nor scoring" : "it is no object");
    return kube_get(o, "source", NULL) || kube_get(o, "sources", NULL) || kube_get(o, "scoring", NULL);
}

static void config_check_members(struct check *c, const struct api_config *api)
{
    if (!api->scoring.score_name)
        findings_add(c->findings, RULE_CONFIG_NAME, "scoring.params.name: missing%s%s",
                     api->name ? "; the hub uses name instead: " : "", cstr(api->name));
    if (api->n_sources == 0)
        findings_add(c->findings, RULE_CONFIG_SOURCE, "source: missing");
    for (size_t i = 0; i < api->n_sources; i++) {
        const struct source_spec *s = &api->sources[i];
        const struct source_kind *type = source_kind(s->type ?: SOURCE_PROMETHEUS);
        bool no_host = type->path && !type->endpoint_is_optional && !s->host;
        bool no_query = type->query && !s->query;

        if (no_host || no_query)
            findings_add(c->findings, RULE_CONFIG_SOURCE, "%s%s%s: missing", no_host ? "source.host" : "",
                         no_host && no_query ? " and " : "", no_query ? "source.params.query" : "");
    }
}

/* The scorer with this /config, or without one: what agents get. */
static int config_make_summary(struct check *c, const struct api_config *api, const char **ret_error,
                               struct effective *e)
{
    CLEANUP(scorer_spec_done) struct scorer_spec spec = {0};
    CLEANUP(problems_done) struct problems p = {0};
    int r = config_make_spec(&spec, c, api);

    if (r < 0)
        return r;
    effective_make(e, "scorer", &spec, api);
    *ret_error = e->reason == EFFECTIVE_OK ? NULL : e->error;
    if (*ret_error)
        return 0;
    buf_truncate(&c->findings->summary, 0);
    r = buf_put_str(&c->findings->summary, buf_str(&e->text));
    summary_parse(&c->summary, buf_str(&e->text), &p);
    return r;
}

static int config_set_default(struct check *c)
{
    CLEANUP(effective_done) struct effective e = {0};
    const char *error = NULL;
    int r = config_make_summary(c, NULL, &error, &e);

    return r ?: asprintf(&c->scoring_url, "%s%s/scoring", c->origin, c->prefix) < 0 ? -ENOMEM : 0;
}

static void config_describe(struct check *c, struct call_row *row, const struct effective *e)
{
    const struct summary *s = &c->summary;
    long long interval = s->interval_ms / 1000, range = s->source.range_s, step = s->source.step_s;

    if (s->source.type == SOURCE_NONE)
        (void)snprintf(row->text, sizeof(row->text), "%s, every %llds, without a source", s->score_name,
                       interval);
    else
        (void)snprintf(row->text, sizeof(row->text), "%s, every %llds, from %s: range %llds, step %llds",
                       s->score_name, interval, source_type_word(s->source.type), range, step);
    if (*e->warning) {
        size_t n = strlen(row->text);
        (void)snprintf(row->text + n, sizeof(row->text) - n, "; %s", e->warning);
    }
}

/* Reads the body of a 2xx; the finding is added if the hub would not take it. */
static int config_read_body(struct check *c, struct call_row *row, struct str body, bool *ret_read)
{
    CLEANUP(api_config_done) struct api_config api = {0};
    CLEANUP(effective_done) struct effective e = {0};
    char why[SPEC_WHY_BYTES], not_one[256];
    const char *error = why;
    int r = 0;

    if (!config_is_one(body, not_one)) {
        findings_add(c->findings, RULE_CONFIG, "%s", not_one);
        return 0;
    }
    r = api_config_parse(&api, body, why);
    if (r == 0)
        r = config_make_summary(c, &api, &error, &e);
    if (r < 0 && r != -EINVAL)
        return r;
    if (error) {
        findings_add(c->findings, RULE_CONFIG_FIELDS, "%s", error);
        return 0;
    }
    config_check_members(c, &api);
    config_describe(c, row, &e);
    *ret_read = true;
    r = asprintf(&c->scoring_url, "%s%s", c->origin, config_path_of(c->summary.scoring_endpoint));
    return r < 0 ? -ENOMEM : 0;
}

static int config_check_again(struct check *c, struct str first)
{
    json_auto_t *one = NULL, *other = NULL;
    struct http_answer a = {0};
    int r = config_ask(c, &a);

    if (r == 0 && (kube_json_parse(&one, first, NULL) < 0 ||
                   kube_json_parse(&other, buf_str(&a.body), NULL) < 0 || !json_equal(one, other)))
        findings_add(c->findings, RULE_CONFIG_STABLE,
                     "the second call was answered with another configuration");
    buf_done(&a.body);
    return r;
}

static int config_check_config(struct check *c)
{
    struct http_answer a = {0};
    struct call_row *row;
    bool read = false;
    int r = config_ask(c, &a);

    if (r < 0)
        return r;
    row = findings_add_row(c->findings, "GET /config");
    check_take_answer(c, row, &a);
    if (a.error != HTTP_OK || a.status / 100 != 2)
        findings_add(c->findings, RULE_CONFIG, "%s", row->text);
    else
        r = config_read_body(c, row, buf_str(&a.body), &read);
    if (r == 0)
        r = read ? config_check_again(c, buf_str(&a.body)) : config_set_default(c);
    buf_done(&a.body);
    return r;
}

/* Asks for /healthz and /config, and sets c->summary and c->scoring_url, from defaults if /config cannot be
 * read. findings->unreachable is set if nothing answers. -ENOMEM. */
static int check_config(struct check *c)
{
    int r = config_check_health(c);

    if (r == 0 && !*c->findings->unreachable)
        r = config_check_config(c);
    if (r < 0 || *c->findings->unreachable)
        return r;
    c->findings->scoring_url = xstrdup(c->summary.scoring_endpoint);
    return 0;
}

static void check_done(struct check *c)
{
    summary_done(&c->summary);
    free(c->scoring_url);
    free(c->origin);
    free(c->prefix);
    (void)http_free(c->http);
    (void)loop_free(c->loop);
}

/* http://host:8000/performance/config, or the same without /config. */
static int check_split_url(struct check *c)
{
    static const struct str end = STR("/config");
    struct str url = str_trim(str_of(c->options->url)), path;
    CLEANUP(cleanup_free) char *copy = str_dup(url), *origin = url_origin(copy);
    size_t host;

    if (!*origin || utf8_valid_prefix(url) < url.n)
        return -EINVAL;
    host = (size_t)(strstr(copy, "://") - copy) + 3;
    host += strcspn(copy + host, "/?#");
    path = (struct str){url.p + host, strcspn(copy + host, "?#")};
    while (path.n && path.p[path.n - 1] == '/')
        path.n--;
    if (path.n >= end.n && str_eq((struct str){path.p + path.n - end.n, end.n}, end))
        path.n -= end.n;
    c->origin = str_dup((struct str){url.p, host});
    c->prefix = str_dup(path);
    if (!c->origin || !c->prefix ||
        asprintf(&c->findings->url, "%s%s/config%s", c->origin, c->prefix,
                 copy + host + strcspn(copy + host, "?#")) < 0)
        return -ENOMEM;
    return 0;
}

int check_run(struct findings *ret, const struct check_options *options)
{
    CLEANUP(check_done)
    struct check c = {.options = options, .findings = ret, .tls.ca_file = options->ca_file};
    int r = check_split_url(&c);

    r = r ?: loop_new(&c.loop, &clock_system);
    r = r ?: http_new(&c.http, c.loop, ds_user_agent);
    r = r ?: check_config(&c);
    if (r == 0 && !*ret->unreachable)
        r = check_scoring(&c);
    return r;
}
