/* One HTTP call after the other, as the hub and an agent would make them; generated.c makes what is sent.
 * Owns the loop and the client while it runs, and what it has learned of the API. On the one thread of
 * check-scorer, which each call blocks. */
#include "controller/check/check.h"

#include "controller/check/generated.h"
#include "controller/hub/rules/effective.h"
#include "controller/hub/rules/spec.h"
#include "controller/kube/json.h"
#include "controller/placement/items.h"
#include "exporter/agent/config.h"
#include "exporter/agent/scorer.h"
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/doc.h"
#include "exporter/base/escape.h"
#include "exporter/base/loop.h"
#include "exporter/base/text.h"
#include "exporter/base/utf8.h"
#include "exporter/http/cause.h"
#include "exporter/http/http.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/batch_builder.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/series.h"
#include "exporter/score/answer.h"
#include "exporter/score/round_error.h"
#include "exporter/score/scoring_url.h"
#include "exporter/score/summary.h"
#include "exporter/ui/ranking.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>

enum { MAX_HEALTH_BYTES = 64 << 10, REQUEST_MAX_BYTES = 256 << 20 };

struct scoring_probe {
    const char *what;
    enum check_rule rule; /* that a failure breaks; RULE_SCORING: the answer tells */
    enum series_kind kind;
    size_t n; /* series */
};

/* What an agent makes of an answer, under its default limits. */
struct reading {
    enum round_error error; /* ROUND_OK: batch is set */
    enum check_rule rule;   /* that the error breaks */
    char why[ROUND_REASON_BYTES];
    struct answer_stats stats;
    struct batch *batch;
    size_t duplicates, not_finite;
    char odd_label[200]; /* the first label whose value is no string; empty: none */
};

struct check {
    const struct check_options *options;
    struct findings *findings;
    struct loop *loop;
    struct http *http;
    struct http_tls tls;
    char *origin;           /* scheme, host and port of the URL that is checked */
    char *prefix;           /* the URL of /config without that */
    struct summary summary; /* the scorer's, as an agent would have it */
    char *scoring_url;      /* that is called: at `origin`, whatever host /config names */
    const struct scoring_probe *first_probe;
    struct series_plan plan;
    struct buf body; /* of the running call to the scoring path */
    const struct agent_outcome *first;
    size_t first_not_finite; /* of its scores */
};

/* ---- A call ---- */

static void check_on_answer(void *arg, struct http_response *a)
{
    struct http_response *into = arg;

    *into = *a;
    into->body = buf_take(&a->body);
}

static void check_call_done(struct http_response *a)
{
    buf_done(&a->body);
}

static bool call_succeeded(const struct http_response *a)
{
    return a->error == HTTP_OK && a->status / 100 == 2;
}

/* Blocks. body: empty for GET. */
static void check_call(struct check *c, const char *url, struct str body, struct str token, size_t max_answer,
                       struct http_response *ret)
{
    const struct http_request q = {
        .url = url,
        .content_type = body.n ? "application/json" : NULL,
        .bearer = token,
        .body = &body,
        .body_parts = body.n > 0,
        .max_answer = max_answer,
        .timeout_ms = c->options->timeout_ms ?: scorer_timeout_ms(&c->summary, &limits_default),
        .tls = &c->tls,
        .trace = c->findings->trace,
    };
    struct http_call *call = NULL;

    *ret = (struct http_response){.error = HTTP_ERRORS}; /* no answer yet */
    if (http_start(&call, c->http, &q, check_on_answer, ret) < 0)
        *ret =
            (struct http_response){.cause = CAUSE_URL, .error = HTTP_URL, .reason = "the URL cannot be used"};
    while (ret->error == HTTP_ERRORS)
        (void)loop_turn(c->loop, 1000);
}

/* "HTTP 500 Internal Server Error: ...", or why there was no answer. */
static void call_describe(const struct http_response *a, char out[FINDINGS_TEXT_BYTES])
{
    if (a->error != HTTP_OK)
        text_line(out, FINDINGS_TEXT_BYTES, str_of(a->reason));
    else
        text_http_status(out, FINDINGS_TEXT_BYTES, a->status, "",
                         a->status / 100 == 2 ? STR("") : buf_str(&a->body));
}

/* The next row, from the answer. */
static struct call_row *call_add_row(struct check *c, const char *what, const struct http_response *a)
{
    struct call_row *row = &c->findings->rows[c->findings->n_rows++];

    *row = (struct call_row){.what = what, .ok = true, .status = a->status, .seconds = a->seconds};
    call_describe(a, row->text);
    return row;
}

static void call_check_type(struct check *c, const struct http_response *a)
{
    struct str type = str_trim((struct str){a->content_type, strcspn(a->content_type, ";")});
    bool is_json = str_eq_nocase(type, STR("application/json")) ||
                   (type.n > 5 && str_eq_nocase((struct str){type.p + type.n - 5, 5}, STR("+json")));

    if (!call_succeeded(a) || a->body.n == 0 || is_json)
        return;
    if (*a->content_type)
        findings_add(c->findings, RULE_CONTENT_TYPE, "it is %s", a->content_type);
    else
        findings_add(c->findings, RULE_CONTENT_TYPE, "there is none");
}

/* ---- /healthz and /config, as the hub reads them ---- */

static void check_health(struct check *c)
{
    CLEANUP(check_call_done) struct http_response a = {0};
    CLEANUP(cleanup_free) char *url = xasprintf("%s/healthz", c->origin);
    const struct call_row *row;

    check_call(c, url, STR(""), STR(""), MAX_HEALTH_BYTES, &a);
    if (a.error == HTTP_URL || a.error == HTTP_DNS || a.error == HTTP_CONNECT || a.error == HTTP_TLS) {
        call_describe(&a, c->findings->unreachable);
        return;
    }
    row = call_add_row(c, "GET /healthz", &a);
    if (!call_succeeded(&a))
        findings_add(c->findings, RULE_HEALTHZ, "%s", row->text);
}

/* Asks with the token if it must, which the hub does with spec.configAuth. */
static void config_ask(struct check *c, struct http_response *ret)
{
    check_call(c, c->findings->url, STR(""), STR(""), API_CONFIG_MAX_BYTES, ret);
    if (!c->options->token.n || (ret->status != 401 && ret->status != 403))
        return;
    buf_done(&ret->body);
    check_call(c, c->findings->url, STR(""), c->options->token, API_CONFIG_MAX_BYTES, ret);
}

/* Whether it is not something else, such as the JSON of an error. */
static bool config_is_one(struct str body)
{
    json_auto_t *o = kube_json_load(body);

    return kube_get(o, "source", NULL) || kube_get(o, "sources", NULL) || kube_get(o, "scoring", NULL);
}

static void config_check_source(struct check *c, const struct source_spec *s)
{
    const struct source_kind *kind = source_kind(s->type ?: SOURCE_PROMETHEUS);
    bool no_host = kind->path && !kind->endpoint_is_optional && !s->host;
    bool no_query = kind->query && !s->query;

    if (no_host && no_query)
        findings_add(c->findings, RULE_CONFIG_SOURCE, "source.host and source.params.query: missing");
    else if (no_host)
        findings_add(c->findings, RULE_CONFIG_SOURCE, "source.host: missing");
    else if (no_query)
        findings_add(c->findings, RULE_CONFIG_SOURCE, "source.params.query: missing");
}

static void config_check_members(struct check *c, const struct api_config *api)
{
    if (!api->scoring.score_name && api->name)
        findings_add(c->findings, RULE_CONFIG_NAME,
                     "scoring.params.name: missing; the hub uses name instead: %s", api->name);
    else if (!api->scoring.score_name)
        findings_add(c->findings, RULE_CONFIG_NAME, "scoring.params.name: missing");
    if (api->n_sources == 0)
        findings_add(c->findings, RULE_CONFIG_SOURCE, "source: missing");
    for (size_t i = 0; i < api->n_sources; i++)
        config_check_source(c, &api->sources[i]);
}

/* A DynamicScorer that adds what /config may leave out. */
static json_t *config_make_scorer(const struct check *c, const char *name)
{
    json_t *scorer = json_object(), *spec = kube_set_object(scorer, "spec"), *source, *scoring;

    kube_set_str(spec, "configSyncMode", "Full");
    kube_set_str(spec, "configURL", c->findings->url);
    kube_set_str(spec, "scoreDimensionFormat", c->options->dimension_format);
    source = kube_set_object(spec, "source");
    kube_set_str(source, "host", "http://prometheus:9090");
    kube_set_str(kube_set_object(source, "params"), "query", "up");
    scoring = kube_set_object(spec, "scoring");
    kube_set_str(kube_set_object(scoring, "params"), "name", name);
    return scorer;
}

/* Sets the summary that agents get with this /config (NULL: without one). */
static void config_make_summary(struct check *c, const struct api_config *api, struct effective *e)
{
    const char *name = api && api->name ? api->name : "score";
    json_auto_t *o = config_make_scorer(c, name);
    CLEANUP(scorer_spec_done) struct scorer_spec spec = {0};
    CLEANUP(problems_done) struct problems p = {0};
    char why[SPEC_WHY_BYTES];

    if (scorer_spec_read(&spec, o, why) < 0)
        abort();
    effective_make(e, "scorer", &spec, api);
    if (e->reason != EFFECTIVE_OK)
        return;
    c->findings->summary = buf_take(&e->text);
    summary_parse(&c->summary, buf_str(&c->findings->summary), &p);
}

/* "cpu, every 60s, from Prometheus: range 3600s, step 60s; <warning>" */
static void config_describe(struct check *c, struct call_row *row, const struct effective *e)
{
    const struct summary *s = &c->summary;
    const struct summary_source *from = s->sources;
    BUF_AUTO(text, 1 << 20);

    buf_printf(&text, "%s, every %llds, ", s->score_name, (long long)s->interval_ms / 1000);
    if (s->n_sources) {
        buf_printf(&text, "from %s: ", source_type_word(from->type));
        buf_printf(&text, "range %llds, step %llds", (long long)from->range_s, (long long)from->step_s);
    } else {
        buf_puts(&text, "without a source");
    }
    if (scoring_url_uses_cluster(s->scoring_endpoint)) {
        buf_puts(&text, "; POST ");
        http_url_for_people(str_of(c->scoring_url), &text);
    }
    if (*e->warning)
        buf_printf(&text, "; %s", e->warning);
    text_line(row->text, sizeof(row->text), buf_failed(&text) < 0 ? STR("") : buf_str(&text));
}

/* Reads the answer, a 2xx; adds the finding if the hub would not take it, and returns false. */
static bool config_read_answer(struct check *c, struct call_row *row, const struct http_response *a)
{
    struct str body = buf_str(&a->body);
    int r;
    CLEANUP(api_config_done) struct api_config api = {0};
    CLEANUP(effective_done) struct effective e = {0};
    CLEANUP(cleanup_free) char *endpoint = NULL;
    char why[SPEC_WHY_BYTES];
    const char *path;

    r = api_config_parse(&api, body, why);
    if (r == -EBADMSG)
        text_show_body(why, sizeof(why), a->content_type, body);
    if (r < 0) {
        findings_add(c->findings, config_is_one(body) ? RULE_CONFIG_FIELDS : RULE_CONFIG, "%s", why);
        return false;
    }
    config_make_summary(c, &api, &e);
    if (e.reason != EFFECTIVE_OK) {
        findings_add(c->findings, RULE_CONFIG_FIELDS, "%s", e.error);
        return false;
    }
    config_check_members(c, &api);
    if (scoring_url_make(&endpoint, c->summary.scoring_endpoint, str_of(c->options->cluster_name)) < 0) {
        findings_add(c->findings, RULE_CONFIG_FIELDS,
                     "scoring.path: the cluster's name cannot be put for ${cluster} in the path");
        return false;
    }
    path = strstr(endpoint, "://") + strlen("://");
    c->scoring_url = xasprintf("%s%s", c->origin, path + strcspn(path, "/?#"));
    c->findings->scoring_url = TAKE_PTR(endpoint);
    config_describe(c, row, &e);
    return true;
}

static void config_check_again(struct check *c, struct str first)
{
    CLEANUP(check_call_done) struct http_response a = {0};
    json_auto_t *one = NULL, *other = NULL;
    char text[FINDINGS_TEXT_BYTES];

    config_ask(c, &a);
    if (!call_succeeded(&a)) {
        call_describe(&a, text);
        findings_add(c->findings, RULE_CONFIG, "the second call: %s", text);
        return;
    }
    if (kube_json_parse(&one, first, NULL) < 0 || kube_json_parse(&other, buf_str(&a.body), NULL) < 0 ||
        !json_equal(one, other))
        findings_add(c->findings, RULE_CONFIG_STABLE,
                     "the second call was answered with another configuration");
}

/* Sets c->summary and c->scoring_url, from defaults if /config cannot be read. */
static void check_config(struct check *c)
{
    CLEANUP(check_call_done) struct http_response a = {0};
    struct call_row *row;

    config_ask(c, &a);
    row = call_add_row(c, "GET /config", &a);
    call_check_type(c, &a);
    if (!call_succeeded(&a))
        findings_add(c->findings, RULE_CONFIG, "%s", row->text);
    if (call_succeeded(&a) && config_read_answer(c, row, &a)) {
        config_check_again(c, buf_str(&a.body));
    } else {
        CLEANUP(effective_done) struct effective e = {0};

        config_make_summary(c, NULL, &e);
        c->scoring_url = xasprintf("%s%s/scoring", c->origin, c->prefix);
        c->findings->scoring_url = xstrdup(c->summary.scoring_endpoint);
    }
}

/* ---- What an agent makes of an answer: read by the agent's own code ---- */

static void reading_drop(struct reading *a)
{
    a->batch = batch_unref(a->batch);
}

/* Finds a label that is no string: the agent takes some of them. */
static void reading_scan(struct str body, char out[200])
{
    json_auto_t *o = kube_json_load(body);
    json_t *result, *value;
    const char *name;
    size_t i;

    json_array_foreach(json_object_get(o, "results"), i, result)
    {
        json_object_foreach(json_object_get(result, "metric"), name, value)
        {
            if (!json_is_string(value) && !*out)
                (void)snprintf(out, 200, "results[%zu].metric.%.100s: expected a string", i, name);
        }
    }
}

static enum check_rule reading_rule(enum answer_fault fault)
{
    if (fault == ANSWER_FAULT_METRIC)
        return RULE_LABEL_STRINGS;
    return fault == ANSWER_FAULT_SCORE ? RULE_SCORE : RULE_RESULTS;
}

static void reading_make(struct reading *ret, const struct check *c, struct str body)
{
    CLEANUP(cleanup_batch_builder_free)
    struct batch_builder *b = batch_builder_new(c->options->cluster_name, c->summary.score_name,
                                                (size_t)limits_default.series_per_scorer);
    bool all_dropped;

    *ret = (struct reading){.error = ROUND_OK};
    ret->error = answer_parse(body, b, (size_t)limits_default.label_value_bytes, &ret->stats, ret->why);
    all_dropped = ret->stats.results && ret->stats.invalid == ret->stats.results;
    if (ret->error == ROUND_JSON)
        ret->rule = RULE_JSON;
    else if (ret->error != ROUND_OK && !all_dropped)
        ret->rule = RULE_RESULTS;
    else if (ret->stats.invalid)
        ret->rule = reading_rule(ret->stats.first_fault);
    if (ret->error != ROUND_OK)
        return;
    reading_scan(body, ret->odd_label);
    batch_seal(b, (unix_ms){0}, &ret->batch, &ret->duplicates);
    for (size_t i = 0; i < series_count(ret->batch->set); i++)
        ret->not_finite += isfinite(ret->batch->values[i]) ? 0 : 1;
}

/* The first series of `a` whose labels none of `b` has; SIZE_MAX without one. */
static size_t reading_new_series(const struct batch *a, const struct batch *b, bool with_meta)
{
    for (size_t i = 0; i < series_count(a->set); i++) {
        struct str own[DS_LABELS], other[DS_LABELS];
        bool found = false;

        series_labels(a->set, i, own);
        for (size_t k = 0; k < series_count(b->set) && !found; k++) {
            series_labels(b->set, k, other);
            found = true;
            for (unsigned n = 0; n < DS_LABELS; n++)
                found &= (n == DS_META && !with_meta) || str_eq(own[n], other[n]);
        }
        if (!found)
            return i;
    }
    return SIZE_MAX;
}

/* ---- The scoring path ----
 *
 * The first call, with plain series, decides whether there is anything more to ask; the others differ from
 * it in one thing each, so that a failure tells its rule. */

static const struct scoring_probe plain_probe = {"10 series", RULE_SCORING, SERIES_PLAIN, 10},
                                  sourceless_probe = {"no source", RULE_SCORING, SERIES_PLAIN, 0};
static const struct scoring_probe other_probes[] = {
    {"no series", RULE_EMPTY_DATA, SERIES_PLAIN, 0},
    {"a series of one point", RULE_SHORT_SERIES, SERIES_OF_ONE_POINT, 10},
    {"a series without points", RULE_SHORT_SERIES, SERIES_WITHOUT_POINTS, 10},
    {"NaN and infinite values", RULE_NAN_VALUES, SERIES_WITH_NAN, 10},
    {"unusual labels", RULE_LABELS_KEPT, SERIES_WITH_ODD_LABELS, 6},
    {"series with equal labels", RULE_DUPLICATE_SERIES, SERIES_TWICE, 10},
    {"10,000 series", RULE_MANY_SERIES, SERIES_PLAIN, 10000},
};

static struct call_row *scoring_call(struct check *c, const char *what, struct str body, struct str token,
                                     struct http_response *ret)
{
    struct call_row *row;

    check_call(c, c->scoring_url, body, token, limits_default.response_bytes, ret);
    row = call_add_row(c, what, ret);
    call_check_type(c, ret);
    return row;
}

/* The rule that a failure of the call breaks, or what it tells itself. */
static enum check_rule scoring_rule(const struct scoring_probe *p, enum check_rule of_answer)
{
    return p->rule == RULE_SCORING || p->rule == RULE_LABELS_STABLE ? of_answer : p->rule;
}

static enum check_rule failure_rule(const struct http_response *a)
{
    if (a->error == HTTP_TIMEOUT)
        return RULE_SCORING_TIME;
    if (a->error == HTTP_TOO_LARGE)
        return RULE_RESPONSE_SIZE;
    return a->status == 401 || a->status == 403 ? RULE_TOKEN_ACCEPTED : RULE_SCORING;
}

static void scoring_add_failure(struct check *c, const struct scoring_probe *p, const struct http_response *a,
                                const char *text)
{
    enum check_rule rule = scoring_rule(p, failure_rule(a));
    bool no_token = rule == RULE_TOKEN_ACCEPTED && c->options->token.n == 0;

    findings_add(c->findings, rule, "%s%s", text,
                 no_token ? " (no token was sent; --token-file sends one)" : "");
}

/* Faults of single results. A fault of the first call is no news in another. */
static void scoring_judge_results(struct check *c, const struct scoring_probe *p, const struct reading *a)
{
    bool is_first = p == c->first_probe;
    struct findings *findings = c->findings;

    if (a->stats.invalid && (is_first || c->first->stats.invalid == 0))
        findings_add(findings, is_first ? a->rule : p->rule, "%s (the agent drops %zu of %zu results)",
                     a->stats.first_invalid, a->stats.invalid, a->stats.results);
    if (*a->odd_label)
        findings_add(findings, RULE_LABEL_STRINGS, "%s", a->odd_label);
    if (a->not_finite && (is_first || c->first_not_finite == 0))
        findings_add(findings, is_first ? RULE_SCORE_FINITE : p->rule,
                     "%zu of %zu scores are NaN or infinite", a->not_finite, series_count(a->batch->set));
}

/* Keeps the answer, too. */
static void scoring_judge_first(struct check *c, const struct scoring_probe *p, struct reading *a)
{
    struct findings *findings = c->findings;
    struct agent_outcome *out = &findings->outcome;
    char rounded[ROUNDING_BYTES];

    if (a->duplicates)
        findings_add(findings, RULE_LABELS_DISTINCT, "of %zu results the agent keeps %zu", a->stats.results,
                     series_count(a->batch->set));
    if (a->stats.cut)
        findings_add(findings, RULE_LABEL_LENGTH, "the agent cuts %zu values", a->stats.cut);
    if (a->stats.results == 0 && p->n)
        findings_add(findings, RULE_NO_RESULTS, "%zu series of %zu points each have no result", p->n,
                     c->plan.points);
    out->items = items_make(a->batch, &c->summary, &(struct adjuster){0});
    out->stats = a->stats;
    out->duplicates = a->duplicates;
    out->batch = TAKE_PTR(a->batch);
    c->first_not_finite = a->not_finite;
    (void)object_name(str_of(c->summary.score_name), out->object);
    if (rounding_loses(&out->items.formats[0].rounding, &c->summary, rounded))
        findings_add(findings, RULE_SCORE_ROUNDED, "%s", rounded);
    if (out->items.clamped)
        findings_add(findings, RULE_SCORE_RANGE, "%zu of %zu values are clamped", out->items.clamped,
                     out->items.n);
}

/* Adds a finding about the series: "<before>: pod="a", meta="b"", cut in the middle if it is long. */
static void scoring_add_series(struct check *c, enum check_rule rule, const char *before,
                               const struct batch *b, size_t series)
{
    struct str labels[SHOWN_LABELS];
    char line[FINDINGS_TEXT_BYTES];
    BUF_AUTO(text, 1 << 20);

    shown_labels(b, series, labels);
    for (size_t i = 0; i < SHOWN_LABELS; i++)
        if (labels[i].n) {
            buf_printf(&text, "%s%s=", text.n ? ", " : "", shown_label_names[i]);
            buf_put_json(&text, labels[i]);
        }
    text_line(line, sizeof(line), buf_failed(&text) == 0 && text.n ? buf_str(&text) : STR("no labels"));
    findings_add(c->findings, rule, "%s: %s", before, line);
}

/* The answer that keeps all labels. */
static void scoring_expect(struct check *c, const struct scoring_probe *p, struct reading *ret)
{
    BUF_AUTO(text, REQUEST_MAX_BYTES);

    series_put_answer(&text, &c->plan, p->kind, p->n);
    reading_make(ret, c, buf_str(&text));
}

/* Results may be about something else than the series: then their labels say nothing. */
static void scoring_judge_labels(struct check *c, const struct scoring_probe *p, const struct reading *a)
{
    CLEANUP(reading_drop) struct reading plain, sent;
    size_t changed;

    scoring_expect(c, c->first_probe, &plain);
    scoring_expect(c, p, &sent);
    if (reading_new_series(c->first->batch, plain.batch, false) != SIZE_MAX)
        return;
    changed = reading_new_series(a->batch, sent.batch, false);
    if (changed != SIZE_MAX)
        scoring_add_series(c, p->rule, "no series was sent with these labels", a->batch, changed);
    else if (c->first->stats.results == c->first_probe->n && a->stats.results < p->n)
        findings_add(c->findings, p->rule, "%zu of %zu series have no result", p->n - a->stats.results, p->n);
}

static void scoring_judge(struct check *c, const struct scoring_probe *p, struct call_row *row,
                          struct reading *a)
{
    double interval = (double)c->summary.interval_ms / 1000;
    size_t changed;

    if (a->error != ROUND_OK) {
        text_line(row->text, sizeof(row->text), str_of(a->why));
        findings_add(c->findings, scoring_rule(p, a->rule), "%s", a->why);
        return;
    }
    if (p->rule == RULE_LABELS_STABLE) { /* with the body of the first call */
        changed = reading_new_series(a->batch, c->first->batch, true);
        text_line(row->text, sizeof(row->text),
                  changed == SIZE_MAX ? STR("the same series") : STR("other series"));
        if (changed != SIZE_MAX)
            scoring_add_series(c, RULE_LABELS_STABLE, "new in the second call", a->batch, changed);
        return;
    }
    (void)snprintf(row->text, sizeof(row->text), "%zu result%s, %zu series", a->stats.results,
                   a->stats.results == 1 ? "" : "s", series_count(a->batch->set));
    scoring_judge_results(c, p, a);
    if (row->seconds > interval && (p == c->first_probe || p->rule == RULE_MANY_SERIES))
        findings_add(c->findings, p == c->first_probe ? RULE_SCORING_TIME : p->rule,
                     "the answer took %.3g s, the interval is %.3g s", row->seconds, interval);
    if (p == c->first_probe)
        scoring_judge_first(c, p, a);
    else if (p->kind == SERIES_WITH_ODD_LABELS)
        scoring_judge_labels(c, p, a);
}

static void scoring_run(struct check *c, const struct scoring_probe *p)
{
    CLEANUP(reading_drop) struct reading a = {.error = ROUND_OK};
    CLEANUP(check_call_done) struct http_response answer = {0};
    struct call_row *row;

    buf_clear(&c->body);
    series_put_request(&c->body, &c->plan, p->kind, p->n);
    row = scoring_call(c, p->what, buf_str(&c->body), c->options->token, &answer);
    if (!call_succeeded(&answer)) {
        scoring_add_failure(c, p, &answer, row->text);
        return;
    }
    reading_make(&a, c, buf_str(&answer.body));
    if (a.error == ROUND_JSON)
        text_show_body(a.why, sizeof(a.why), answer.content_type, buf_str(&answer.body));
    scoring_judge(c, p, row, &a);
}

/* A call that must be refused. */
static void scoring_refusal(struct check *c, const char *what, struct str body, struct str token,
                            enum check_rule rule)
{
    CLEANUP(check_call_done) struct http_response answer = {0};
    const struct call_row *row = scoring_call(c, what, body, token, &answer);
    long status = answer.status;
    bool refused = rule == RULE_TOKEN_REFUSED ? status == 401 || status == 403 : status / 100 == 4;

    if (answer.error != HTTP_OK || !refused)
        findings_add(c->findings, rule, "%s", row->text);
}

static void check_scoring(struct check *c)
{
    static const struct str not_json = STR("{\"data\":["), no_data = STR("{\"data\":[]}");
    bool has_source = c->summary.n_sources;
    const struct scoring_probe *plain = has_source ? &plain_probe : &sourceless_probe;
    const struct scoring_probe again = {"the same again", RULE_LABELS_STABLE, SERIES_PLAIN, plain->n};

    c->first_probe = plain;
    series_plan_make(&c->plan, &c->summary, loop_wall(c->loop).ms / 1000);
    scoring_run(c, plain);
    if (!c->first->batch)
        return;
    scoring_run(c, &again);
    for (size_t i = 0; has_source && i < ARRAY_SIZE(other_probes); i++)
        scoring_run(c, &other_probes[i]);
    if (has_source)
        scoring_refusal(c, "a body cut short", not_json, c->options->token, RULE_MALFORMED_BODY);
    if (c->options->token.n) {
        scoring_refusal(c, "without the token", no_data, STR(""), RULE_TOKEN_REFUSED);
        scoring_refusal(c, "a wrong token", no_data, STR("not-the-token-of-this-scoring-api"),
                        RULE_TOKEN_REFUSED);
    }
}

/* ---- The whole ---- */

static void check_done(struct check *c)
{
    summary_done(&c->summary);
    free(c->scoring_url);
    free(c->origin);
    free(c->prefix);
    buf_done(&c->body);
    (void)http_free(c->http);
    (void)loop_free(c->loop);
}

/* http://host:8000/performance/config, or the same without /config. -EINVAL. */
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
    c->findings->url =
        xasprintf("%s%s/config%s", c->origin, c->prefix, copy + host + strcspn(copy + host, "?#"));
    return 0;
}

int check_run(struct findings *ret, const struct check_options *options)
{
    CLEANUP(check_done)
    struct check c = {.options = options,
                      .findings = ret,
                      .tls.ca_file = options->ca_file,
                      .body.max = REQUEST_MAX_BYTES,
                      .first = &ret->outcome};
    int r = check_split_url(&c);

    r = r ?: loop_new(&c.loop, &clock_system);
    if (r < 0)
        return r;
    c.http = http_new(c.loop, ds_user_agent);
    http_trace_id(ret->trace);
    check_health(&c);
    if (*ret->unreachable)
        return 0;
    check_config(&c);
    check_scoring(&c);
    return 0;
}
