#include "exporter/agent/agent.h"

#include "exporter/agent/scorer.h"
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/escape.h"
#include "exporter/base/loop.h"
#include "exporter/http/httpd.h"
#include "exporter/metric/page.h"
#include "exporter/metric/series.h"
#include "exporter/otlp/receiver.h"
#include "exporter/otlp/series.h"
#include "exporter/score/round_error.h"
#include "exporter/score/scorer_state.h"
#include "exporter/score/summary.h"
#include "exporter/ui/out.h"
#include "exporter/ui/site.h"
#include "exporter/web/access.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

static const char *status_hint(enum round_error e, enum round_stage stage)
{
    /* A second one where the stages differ. */
    static const char *const hints[ROUND_ERRORS][2] = {
        [ROUND_OK] = {"nothing"},
        [ROUND_URL] = {"sourceEndpoint in the configuration", "scoringEndpoint in the configuration"},
        [ROUND_DNS] = {"the host name in sourceEndpoint, and DNS where the agent runs",
                       "the host name in scoringEndpoint, and DNS where the agent runs"},
        [ROUND_CONNECT] =
            {"that the server is running and listening, and firewalls and network policies in between"},
        [ROUND_TLS] = {"the server's certificate: it must be valid for this host name and signed by a CA in "
                       "SSL_CERT_FILE or the system's store"},
        [ROUND_TIMEOUT] =
            {"the query: select fewer series, a shorter sourceRange or a longer sourceStep; or raise "
             "timeout and limits.roundTime",
             "why the scoring API takes so long, or raise timeout and limits.roundTime"},
        [ROUND_TOO_LARGE] =
            {"the query: select fewer series or a longer sourceStep; or raise limits.responseBytes",
             "what the scoring API sends, or raise limits.responseBytes"},
        [ROUND_BROKEN] = {"what the server, or a proxy before it, sends: curl -v shows it"},
        [ROUND_MEMORY] = {"the memory limit of the agent, and limits.memory: fewer or smaller responses at a "
                          "time, or more memory"},
        [ROUND_HTTP_4XX] = {"the path of sourceEndpoint and its token",
                            "the path of scoringEndpoint, its token, and what the scoring API expects: "
                            "{\"data\":[{\"metric\":{...},\"values\":[...]}]}"},
        [ROUND_HTTP_5XX] = {"the log of the server at sourceEndpoint", "the log of the scoring API"},
        [ROUND_HTTP_OTHER] = {"the path of sourceEndpoint", "the path of scoringEndpoint"},
        [ROUND_QUERY] = {"the query in the UI of the query engine"},
        [ROUND_JSON] = {"that sourceEndpoint is the query API, not a web page or a login form",
                        "that scoringEndpoint is the scoring API, not a web page or a login form"},
        [ROUND_SHAPE] = {"that sourceEndpoint is the query API: /api/v1/query_range",
                         "the response of the scoring API: {\"results\":[{\"metric\":{...},\"score\":1.5}]}"},
        [ROUND_SECRET] = {"the names of the source's Secret and key, and --secrets.dir",
                          "the names of the scoring API's Secret and key, and --secrets.dir"},
        [ROUND_SERIES] = {"the query, or raise limits.series and limits.seriesPerScorer"},
    };
    const char *const *both = hints[e < ROUND_ERRORS ? e : ROUND_OK];

    return stage == STAGE_SCORING && both[1] ? both[1] : both[0];
}

struct totals {
    size_t by_state[SCORER_STATES];
    size_t series;
};

static struct totals scorer_totals(const struct agent_state *a)
{
    struct totals t = {0};

    for (size_t i = 0; i < a->n_scorers; i++) {
        t.by_state[scorer_state(a->scorers[i])]++;
        t.series += scorer_series(a->scorers[i]);
    }
    return t;
}

/* Times are RFC 3339 in UTC, null for never; durations are in seconds; scores that are not finite are the
 * strings "+Inf" and "-Inf". exporter/ui/README.md documents each member. */

enum { BEST_AND_WORST = 5 };

static void json_by_stage(struct buf *o, const char *key, const uint64_t v[2])
{
    member_object(o, key);
    for (enum round_stage stage = STAGE_SOURCE; stage <= STAGE_SCORING; stage++)
        member_count(o, round_stage_word(stage), v[stage]);
    buf_puts(o, "}");
}

static void json_last_round(struct buf *o, const struct scorer_status *s)
{
    if (!member_object_if(o, "lastRound", s->rounds))
        return;
    member_time(o, "startedAt", s->running ? 0 : s->started_ms);
    member_time(o, "endedAt", s->ended_ms);
    member_number(o, "fetchSeconds", s->last.fetch_s);
    member_number(o, "performSeconds", s->last.perform_s);
    member_count(o, "sourceSeries", s->last.source_series);
    member_count(o, "results", s->last.answer.results);
    member_count(o, "invalidResults", s->last.answer.invalid);
    member_words(o, "firstInvalid", s->last.answer.first_invalid);
    member_count(o, "duplicates", s->last.duplicates);
    member_count(o, "cutLabels", s->last.answer.cut);
    json_by_stage(o, "receivedBytes", s->last.received);
    json_by_stage(o, "sentBytes", s->last.sent);
    member_text(o, "traceId", s->last.trace);
    buf_puts(o, "}");
}

static void json_secret(struct buf *o, const char *key, const struct secret_ref *ref)
{
    if (!member_object_if(o, key, ref->name))
        return;
    member_text(o, "name", ref->name);
    member_text(o, "key", ref->key);
    buf_puts(o, "}");
}

static void json_source_members(struct buf *o, const struct summary_source *from)
{
    struct str query;
    size_t at = 0;

    member_text(o, "type", source_type_word(from->type));
    member_url(o, "endpoint", from->endpoint);
    json_secret(o, "secret", &from->auth);
    member_text(o, "query", from->query);
    member_list(o, "queries");
    while ((query = summary_next_query(str_of(from->query), &at)).n) {
        member_item(o);
        buf_put_json(o, query);
    }
    buf_puts(o, "]");
    member_count(o, "rangeSeconds", (uint64_t)from->range_s);
    member_count(o, "stepSeconds", (uint64_t)from->step_s);
}

/* The first source as an object; where there are several also all of them, as a list. */
static void json_source(struct buf *o, const struct summary *s)
{
    member_object(o, "source");
    if (s->n_sources)
        json_source_members(o, &s->sources[0]);
    else
        member_text(o, "type", source_type_word(SOURCE_NONE));
    buf_puts(o, "}");
    if (s->n_sources < 2)
        return;
    member_list(o, "sources");
    for (size_t i = 0; i < s->n_sources; i++) {
        member_item(o);
        buf_puts(o, "{");
        json_source_members(o, &s->sources[i]);
        buf_puts(o, "}");
    }
    buf_puts(o, "]");
}

static void json_scores(struct buf *o, const char *key, const struct batch *b, const size_t *series, size_t n)
{
    struct str labels[SHOWN_LABELS];

    member_list(o, key);
    for (size_t i = 0; i < n; i++) {
        shown_labels(b, series[i], labels);
        member_item(o);
        buf_puts(o, "{");
        member_object(o, "labels");
        for (size_t k = 0; k < SHOWN_LABELS; k++)
            if (labels[k].n) {
                member(o, shown_label_names[k]);
                buf_put_json(o, labels[k]);
            }
        buf_puts(o, "}");
        member_number(o, "score", b->values[series[i]]);
        buf_puts(o, "}");
    }
    buf_puts(o, "]");
}

static void json_scorer(struct buf *o, const struct scorer *s, bool with_history)
{
    const struct scorer_status *st = &s->status;
    struct ranking r;

    member_item(o);
    buf_puts(o, "{");
    member_text(o, "name", s->summary.name);
    member_text(o, "scoreName", s->summary.score_name);
    member_text(o, "state", scorer_state_word(scorer_state(s)));
    member_words(o, "suspendedSince", s->summary.suspended_since);
    member_bool(o, "running", st->running);
    member_time(o, "runningSince", st->running ? st->started_ms : 0);
    member_count(o, "rounds", st->rounds);
    member_count(o, "failures", st->failures);
    json_last_round(o, st);
    member_time(o, "lastSuccessAt", st->succeeded_ms);
    member_time(o, "scoresAt", s->batch ? s->batch->at.ms : 0);
    member_time(o, "nextRoundAt", st->next_ms);
    member_number(o, "intervalSeconds", (double)s->summary.interval_ms / 1000);
    member_count(o, "series", scorer_series(s));
    if (member_object_if(o, "error", st->rounds && st->last.error != ROUND_OK)) {
        member_text(o, "stage", round_stage_word(st->last.stage));
        member_text(o, "class", round_error_word(st->last.error));
        member_words(o, "url", st->url);
        member_text(o, "text", st->last.reason);
        member_text(o, "hint", status_hint(st->last.error, st->last.stage));
        buf_puts(o, "}");
    }
    if (member_object_if(o, "warnings", st->last.source_warnings)) {
        member_count(o, "count", st->last.source_warnings);
        member_text(o, "first", st->last.source_warning);
        buf_puts(o, "}");
    }
    json_source(o, &s->summary);
    member_url(o, "scoringEndpoint", s->summary.scoring_endpoint);
    json_secret(o, "scoringSecret", &s->summary.scoring_auth);
    rank_scores(s->batch, BEST_AND_WORST, &r);
    json_scores(o, "highest", s->batch, r.highest, r.n);
    json_scores(o, "lowest", s->batch, r.lowest, r.n);
    member_count(o, "nanScores", r.nans);
    if (with_history)
        member_history(o, st->history, scorer_history_names);
    buf_puts(o, "}");
}

static void json_config(struct buf *o, const struct agent_state *a)
{
    const struct config *c = a->config;
    const struct reload_status *reload = &a->reload;
    CLEANUP(cleanup_free) char *configmap = a->configmap ? xasprintf("configmap %s", a->configmap) : NULL;

    member_text(o, "cluster", c ? c->cluster_name : NULL);
    member_time(o, "startedAt", a->started_ms);
    member_object(o, "config");
    member_text(o, "file", configmap ?: a->config_file);
    member_time(o, "loadedAt", c ? c->loaded_at_ms : 0);
    member_bool(o, "ok", reload->ok);
    member_time(o, "lastTriedAt", reload->at_ms);
    member_problems(o, reload->problems);
    member_list(o, "listen");
    for (size_t i = 0; c && i < c->n_listen; i++) {
        member_item(o);
        buf_put_json(o, str_of(c->listen[i]));
    }
    buf_puts(o, "]");
    member_text(o, "secretsFolder", c ? c->secrets_dir : NULL);
    member_text(o, "storageFolder", c ? c->storage_path : NULL);
    buf_puts(o, "}");
    member_web_config(o, a->access);
    if (!member_object_if(o, "limits", c))
        return;
    member_count(o, "responseBytes", c->limits.response_bytes);
    member_count(o, "seriesPerScorer", (uint64_t)c->limits.series_per_scorer);
    member_count(o, "series", (uint64_t)c->limits.series);
    member_count(o, "labelValueBytes", (uint64_t)c->limits.label_value_bytes);
    member_number(o, "roundTimeSeconds", (double)c->limits.round_ms / 1000);
    member_count(o, "staleAfterIntervals", (uint64_t)c->limits.stale_intervals);
    buf_puts(o, "}");
}

static void json_otlp(struct buf *o, const struct agent_state *a)
{
    struct otlp_status s;

    if (!member_object_if(o, "otlp", a->hooks.otlp && a->hooks.otlp(a->hooks.arg, &s)))
        return;
    member_text(o, "address", s.listen);
    member_count(o, "points", s.points[STORE_OK]);
    member_object(o, "rejected");
    for (unsigned i = 0; i < OTLP_RESULTS; i++)
        if (i != STORE_OK && s.points[i])
            member_count(o, otlp_result_word(i), s.points[i]);
    buf_puts(o, "}");
    member_time(o, "receivedAt", s.last_ms);
    member_count(o, "series", s.store.series);
    member_count(o, "samples", s.store.samples);
    member_count(o, "bytes", s.store.bytes);
    member_count(o, "maxBytes", s.store.max_bytes);
    member_count(o, "keptSeconds", (uint64_t)s.store.age_ms / 1000);
    buf_puts(o, "}");
}

static void json_scorers(struct buf *o, const struct agent_state *a, const struct list_query *q)
{
    static const unsigned urgency[SCORER_STATES] = {
        /* the worst first, for sort=state */
        [SCORER_STALE] = 0, [SCORER_FAILING] = 1, [SCORER_SUSPENDED] = 2,
        [SCORER_EMPTY] = 3, [SCORER_WAITING] = 4, [SCORER_OK] = 5,
    };
    CLEANUP(list_done) struct list l = {.query = q};

    for (size_t i = 0; i < a->n_scorers; i++) {
        const struct scorer *s = a->scorers[i];
        enum scorer_state state = scorer_state(s);

        if (list_matches(q, s->summary.score_name, s->summary.name) &&
            list_has_state(q, scorer_state_word(state)))
            list_add(&l, s->summary.score_name, urgency[state], s);
    }
    list_sort(&l);
    member_list(o, "scorers");
    for (size_t i = 0; i < l.n; i++)
        json_scorer(o, l.items[i].what, q->with_history);
    buf_puts(o, "]");
    list_metadata(o, "metadata", &l);
}

int status_json(const struct agent_state *a, const struct list_query *q, struct buf *into)
{
    struct buf_mark mark = buf_mark(into);
    struct totals t = scorer_totals(a);
    struct agent_election e;

    buf_puts(into, "{");
    member_text(into, "role", "agent");
    member_time(into, "now", loop_wall(a->loop).ms);
    member_build(into);
    member_bool(into, "leading", a->leading);
    if (member_object_if(into, "election", a->hooks.election && a->hooks.election(a->hooks.arg, &e))) {
        member_text(into, "identity", e.identity);
        member_words(into, "holder", e.holder);
        member_text(into, "error", e.error);
        buf_puts(into, "}");
    }
    json_config(into, a);
    member_object(into, "totals");
    member_count(into, "scorers", a->n_scorers);
    member_count(into, "series", t.series);
    member_count(into, "metricsPageBytes", page_memory(a->page));
    member_object(into, "states");
    for (enum scorer_state s = SCORER_WAITING; s < SCORER_STATES; s++)
        member_count(into, scorer_state_word(s), t.by_state[s]);
    buf_puts(into, "}}");
    member_list(into, "remoteWrite");
    if (a->hooks.endpoints)
        a->hooks.endpoints(a->hooks.arg, into);
    buf_puts(into, "]");
    json_otlp(into, a);
    json_scorers(into, a, q);
    buf_puts(into, "}\n");
    return buf_commit(into, mark);
}

/* ---- The table of `agent --once`, for people who write a scoring API: what each scorer did, and its scores
 * ---- */

enum { INDENT = 4 };

struct status_table {
    struct buf *o;
    bool colours;
};

/* A line of prose. */
static void table_line(struct status_table *t, int indent, const char *fmt, ...) PRINTF_LIKE(3, 4);
static void table_line(struct status_table *t, int indent, const char *fmt, ...)
{
    CLEANUP(cleanup_free) char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    text = xvasprintf(fmt, ap);
    va_end(ap);
    buf_printf(t->o, "%*s", indent, "");
    grid_clean(t->o, str_of(text));
    buf_puts(t->o, "\n");
}

static void table_headline(struct status_table *t, const struct scorer *s)
{
    static const struct {
        const char *mark, *colour;
    } looks[] = {
        [SCORER_WAITING] = {"… waiting", "\033[2m"}, [SCORER_OK] = {"✓ ok", "\033[32m"},
        [SCORER_EMPTY] = {"○ empty", "\033[33m"},    [SCORER_FAILING] = {"✗ failed", "\033[31m"},
        [SCORER_STALE] = {"✗ failed", "\033[31m"},   [SCORER_SUSPENDED] = {"… suspended", "\033[33m"},
    };
    const char *mark = looks[scorer_state(s)].mark, *colour = looks[scorer_state(s)].colour;

    buf_printf(t->o, t->colours ? "%s%s\033[0m  \033[1m" : "%s%s  ", t->colours ? colour : "", mark);
    grid_clean(t->o, str_of(s->summary.score_name));
    if (strcmp(s->summary.name, s->summary.score_name) != 0) {
        buf_puts(t->o, ", of ");
        grid_clean(t->o, str_of(s->summary.name));
    }
    buf_puts(t->o, t->colours ? "\033[0m\n" : "\n");
}

/* "12 series from the source in 3.1 ms → 12 results in 12 ms → 11 scores" */
static void table_flow(struct status_table *t, const struct scorer *s)
{
    const struct scorer_status *st = &s->status;
    const char *from = s->summary.n_sources > 1 ? "series from the sources in" : "series from the source in";
    bool has_source = s->summary.n_sources;

    table_line(t, INDENT, "%s%s%s → %s in %s → %s",
               has_source ? words_count(st->last.source_series, from, from).s : "no source",
               has_source ? " " : "", has_source ? words_seconds(st->last.fetch_s).s : "",
               words_count(st->last.answer.results, "result", "results").s,
               words_seconds(st->last.perform_s).s, words_count(scorer_series(s), "score", "scores").s);
}

static void table_error(struct status_table *t, const struct scorer *s)
{
    const struct scorer_status *st = &s->status;

    table_line(t, INDENT, "%s failed: %s (%s)", round_stage_word(st->last.stage), st->last.reason,
               round_error_word(st->last.error));
    if (*st->url)
        table_line(t, INDENT, "URL: %s, trace: %s", st->url, st->last.trace);
    if (st->last.stage == STAGE_SOURCE && st->last.source < s->summary.n_sources)
        table_line(t, INDENT, "query: %s", s->summary.sources[st->last.source].query);
    table_line(t, INDENT, "check %s", status_hint(st->last.error, st->last.stage));
    if (s->batch)
        table_line(t, INDENT, "the scores below are from an earlier round");
}

static void table_empty(struct status_table *t, const struct scorer *s)
{
    if (s->status.last.source_series || !s->summary.n_sources)
        table_line(t, INDENT, "the scoring API returned no results");
    else
        for (size_t i = 0; i < s->summary.n_sources; i++)
            table_line(t, INDENT, "the source has no series for this query: %s", s->summary.sources[i].query);
}

static void table_remarks(struct status_table *t, const struct scorer_status *st)
{
    if (st->last.source_warnings)
        table_line(t, INDENT, "%s: %s",
                   words_count(st->last.source_warnings, "warning from the source",
                               "warnings from the source, the first")
                       .s,
                   st->last.source_warning);
    if (st->last.answer.invalid)
        table_line(t, INDENT, "%s: %s",
                   words_count(st->last.answer.invalid, "invalid result ignored",
                               "invalid results ignored, the first")
                       .s,
                   st->last.answer.first_invalid);
    if (st->last.duplicates)
        table_line(t, INDENT, "%s: the last result of each label set is used",
                   words_count(st->last.duplicates, "duplicate result", "duplicate results").s);
    if (st->last.answer.cut)
        table_line(t, INDENT, "%s cut to limits.labelValueBytes",
                   words_count(st->last.answer.cut, "label value", "label values").s);
}

/* For a hub; on a laptop nobody rounds. */
static void table_rounding(struct status_table *t, const struct agent_state *a, const struct scorer *s)
{
    const struct batch *b = s->batch;
    struct rounding rounding = {0};
    char text[ROUNDING_BYTES];

    for (size_t i = 0; b && i < series_count(b->set); i++)
        if (isfinite(b->values[i]))
            rounding_add(&rounding, b->values[i]);
    if (a->configmap && rounding_loses(&rounding, &s->summary, text))
        table_line(t, INDENT, "%s", text);
}

static void table_scores(struct status_table *t, const struct scorer *s)
{
    struct ranking r;

    rank_scores(s->batch, RANKED_MAX, &r);
    if (r.n) {
        buf_puts(t->o, "\n");
        grid_scores(t->o, s->batch, r.highest, r.n, INDENT);
    }
    if (r.numbers > r.n)
        table_line(t, INDENT, "… and %s", words_count(r.numbers - r.n, "more", "more").s);
    if (r.nans)
        table_line(t, INDENT, "%s", words_count(r.nans, "score is NaN", "scores are NaN").s);
}

static void table_scorer(struct status_table *t, const struct agent_state *a, const struct scorer *s)
{
    const struct scorer_status *st = &s->status;

    table_headline(t, s);
    if (st->rounds && st->last.error != ROUND_OK)
        table_error(t, s);
    else if (st->rounds)
        table_flow(t, s);
    if (scorer_state(s) == SCORER_EMPTY)
        table_empty(t, s);
    table_remarks(t, st);
    table_rounding(t, a, s);
    table_scores(t, s);
    buf_puts(t->o, "\n");
}

int status_table(const struct agent_state *a, bool on_terminal, struct buf *into)
{
    struct buf_mark mark = buf_mark(into);
    struct status_table t = {.o = into, .colours = on_terminal && !*cstr(getenv("NO_COLOR"))};
    struct totals totals = scorer_totals(a);

    for (size_t i = 0; i < a->n_scorers; i++)
        table_scorer(&t, a, a->scorers[i]);
    if (a->n_scorers)
        table_line(&t, 0, "%s: %zu ok, %zu empty, %zu failed, %zu waiting; %s",
                   words_count(a->n_scorers, "scorer", "scorers").s, totals.by_state[SCORER_OK],
                   totals.by_state[SCORER_EMPTY],
                   totals.by_state[SCORER_FAILING] + totals.by_state[SCORER_STALE],
                   totals.by_state[SCORER_WAITING], words_count(totals.series, "score", "scores").s);
    else
        buf_puts(t.o, "no scorers configured: add some under `summaries`\n");
    return buf_commit(into, mark);
}

/* ---- HTTP: /metrics is answered on the server's thread, all else on the loop, so that a probe of
 * /-/healthy finds a loop that hangs ---- */

enum { STATUS_MAX_BYTES = 256 << 20, RELOAD_SPACING_MS = 1000 };

static bool web_is_ready(void *arg, struct buf *ret_why)
{
    bool ready = agent_state(arg)->config;

    if (!ready)
        buf_puts(ret_why, "no configuration has been applied yet\n");
    return ready;
}

static void web_reload(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    BUF_AUTO(why, 4u << 20);
    int r = agent_reload(arg, &why), web = access_reload(agent_state(arg)->access, &why);

    (void)rq;
    r = r ?: web;
    if (r == 0)
        buf_puts(&why, "configuration applied\n");
    else
        buf_puts(&why, "configuration rejected; the last valid configuration stays active\n");
    if (buf_failed(&why) < 0)
        buf_clear(&why); /* the status code says enough */
    httpd_reply_text(reply, r == 0 ? 200 : r == -EINVAL ? 400 : 500, buf_str(&why));
}

static void web_no_reload(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    (void)arg, (void)rq;
    httpd_reply_text(reply, 403,
                     STR("Lifecycle API is not enabled: start the agent with --web.enable-lifecycle, or "
                         "send it SIGHUP.\n"));
}

static void web_api_status(void *arg, const struct httpd_request *rq, struct httpd_reply *reply)
{
    CLEANUP(list_query_done) struct list_query q = {0};
    BUF_AUTO(body, STATUS_MAX_BYTES);
    const char *why = "";
    int r = list_query_read(&q, rq, &why) ?: status_json(agent_state(arg), &q, &body);

    api_reply(reply, r, why, &body);
}

static void web_on_access_changed(void *arg)
{
    agent_touch(arg);
}

int web_start(struct site **ret, struct agent *a, struct site_options *o, bool lifecycle, char **ret_why)
{
    static const char *const pages[] = {"/", NULL};
    const struct agent_state *state = agent_state(a);
    const struct httpd_route routes[] = {
        {.method = "POST",
         .path = "/-/reload",
         .fn = lifecycle ? web_reload : web_no_reload,
         .arg = a,
         .spacing_ms = RELOAD_SPACING_MS},
        {.method = "GET", .path = "/api/v1/status", .fn = web_api_status, .arg = a},
    };
    int r;

    o->access.loop = state->loop;
    o->access.metrics = state->metrics;
    o->listen = state->config->listen;
    o->n_listen = state->config->n_listen;
    o->routes = routes;
    o->n_routes = ARRAY_SIZE(routes);
    o->pages = pages;
    o->page = state->page;
    o->is_ready = web_is_ready;
    o->agent_probes = true;
    o->access.changed = web_on_access_changed;
    o->access.arg = a;
    r = site_start(ret, o, ret_why);
    if (r == 0)
        agent_set_access(a, site_access(*ret));
    return r;
}
