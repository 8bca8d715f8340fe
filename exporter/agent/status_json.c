/* /api/v1/status. Names are camelCase and stay; times are RFC 3339 in UTC, null for never; lengths of time
 * are in seconds; scores that are no finite number are the strings "+Inf", "-Inf". Scorers come in the order
 * of the configuration. */
#include "exporter/agent/status.h"

#include "exporter/agent/status_text.h"
#include "exporter/base/json.h"
#include "exporter/base/num.h"
#include "exporter/metric/version.h"

#include <math.h>

enum { BEST_AND_WORST = 5 };

/* Unless what comes next is the first in its object or list. */
static void comma_after(struct out *o, char open)
{
    if (o->b->n && o->b->p[o->b->n - 1] != open)
        out_puts(o, ",");
}

static void name(struct out *o, const char *key)
{
    comma_after(o, '{');
    out_printf(o, "\"%s\":", key);
}

static void put_str(struct out *o, struct str s)
{
    if (o->error == 0)
        o->error = json_put_string(o->b, s);
}

static void text(struct out *o, const char *key, const char *value)
{
    name(o, key);
    if (value)
        put_str(o, str_of(value));
    else
        out_puts(o, "null");
}

static void put_number(struct out *o, double v)
{
    char digits[NUM_MAX];
    struct str s = {digits, num_put_double(digits, v)};

    if (isfinite(v))
        out_str(o, s);
    else
        put_str(o, s);
}

static void number(struct out *o, const char *key, double v)
{
    name(o, key);
    put_number(o, v);
}

static void count(struct out *o, const char *key, uint64_t v)
{
    name(o, key);
    out_printf(o, "%llu", (unsigned long long)v);
}

static void truth(struct out *o, const char *key, bool v)
{
    name(o, key);
    out_puts(o, v ? "true" : "false");
}

static void moment(struct out *o, const char *key, int64_t ms)
{
    char when[32];

    unix_ms_format((unix_ms){ms}, when);
    text(o, key, ms ? when : NULL);
}

static void open_object(struct out *o, const char *key)
{
    name(o, key);
    out_puts(o, "{");
}

static void url(struct out *o, const char *key, const char *value)
{
    BUF_AUTO(plain, 1 << 20);

    name(o, key);
    if (o->error == 0 && value)
        o->error = http_url_for_people(str_of(value), &plain);
    if (value)
        put_str(o, buf_str(&plain));
    else
        out_puts(o, "null");
}

static void by_stage(struct out *o, const char *key, const uint64_t v[2])
{
    open_object(o, key);
    for (enum round_stage stage = STAGE_SOURCE; stage <= STAGE_SCORING; stage++)
        count(o, round_stage_word(stage), v[stage]);
    out_puts(o, "}");
}

static void last_round(struct out *o, const struct scorer_status *s)
{
    if (s->rounds == 0) {
        text(o, "lastRound", NULL);
        return;
    }
    open_object(o, "lastRound");
    moment(o, "startedAt", s->running ? 0 : s->started_ms);
    moment(o, "endedAt", s->ended_ms);
    number(o, "fetchSeconds", s->fetch_s);
    number(o, "performSeconds", s->perform_s);
    count(o, "sourceSeries", s->source_series);
    count(o, "results", s->results);
    count(o, "invalidResults", s->invalid);
    text(o, "firstInvalid", s->first_invalid[0] ? s->first_invalid : NULL);
    count(o, "duplicates", s->duplicates);
    count(o, "cutLabels", s->cut);
    by_stage(o, "receivedBytes", s->received);
    by_stage(o, "sentBytes", s->sent);
    out_puts(o, "}");
}

static void error(struct out *o, const struct scorer_status *s)
{
    if (s->rounds == 0 || s->error == ROUND_OK) {
        text(o, "error", NULL);
        return;
    }
    open_object(o, "error");
    text(o, "stage", round_stage_word(s->stage));
    text(o, "class", round_error_word(s->error));
    text(o, "text", s->reason);
    out_puts(o, "}");
}

static void warnings(struct out *o, const struct scorer_status *s)
{
    if (s->source_warnings == 0) {
        text(o, "warnings", NULL);
        return;
    }
    open_object(o, "warnings");
    count(o, "count", s->source_warnings);
    text(o, "first", s->source_warning);
    out_puts(o, "}");
}

static void secret(struct out *o, const char *key, const struct secret_ref *ref)
{
    if (!ref->name) {
        text(o, key, NULL);
        return;
    }
    open_object(o, key);
    text(o, "name", ref->name);
    text(o, "key", ref->key);
    out_puts(o, "}");
}

static void source(struct out *o, const struct summary *s)
{
    open_object(o, "source");
    text(o, "type", status_source_word(s->source_type));
    if (s->source_type != SOURCE_NONE) {
        url(o, "endpoint", s->source_endpoint);
        secret(o, "secret", &s->source_auth);
        text(o, "query", s->source_query);
        count(o, "rangeSeconds", (uint64_t)s->source_range_s);
        count(o, "stepSeconds", (uint64_t)s->source_step_s);
    }
    out_puts(o, "}");
}

static void score(struct out *o, const struct batch *b, size_t series, struct buf *scratch)
{
    struct shown_label labels[SHOWN_LABELS];
    size_t n = status_labels(o, b, series, scratch, labels);

    comma_after(o, '[');
    out_puts(o, "{");
    open_object(o, "labels");
    for (size_t i = 0; i < n; i++) {
        name(o, labels[i].name);
        put_str(o, labels[i].value);
    }
    out_puts(o, "}");
    number(o, "score", b->values[series]);
    out_puts(o, "}");
}

static void scores(struct out *o, const struct scorer *s)
{
    BUF_AUTO(scratch, LABEL_SCRATCH);
    struct ranking r;

    status_rank(scorer_batch(s), BEST_AND_WORST, &r);
    name(o, "highest");
    out_puts(o, "[");
    for (size_t i = 0; i < r.n; i++)
        score(o, scorer_batch(s), r.highest[i], &scratch);
    out_puts(o, "]");
    name(o, "lowest");
    out_puts(o, "[");
    for (size_t i = 0; i < r.n; i++)
        score(o, scorer_batch(s), r.lowest[i], &scratch);
    out_puts(o, "]");
}

static void scorer(struct out *o, const struct scorer *s)
{
    const struct scorer_status *st = scorer_status(s);
    const struct summary *summary = scorer_summary(s);

    comma_after(o, '[');
    out_puts(o, "{");
    text(o, "name", summary->name);
    text(o, "scoreName", summary->score_name);
    text(o, "state", scorer_state_word(scorer_state(s)));
    truth(o, "running", st->running);
    moment(o, "runningSince", st->running ? st->started_ms : 0);
    count(o, "rounds", st->rounds);
    count(o, "failures", st->failures);
    last_round(o, st);
    moment(o, "lastSuccessAt", st->succeeded_ms);
    moment(o, "scoresAt", scorer_batch(s) ? scorer_batch(s)->at.ms : 0);
    moment(o, "nextRoundAt", st->next_ms);
    number(o, "intervalSeconds", (double)summary->interval_ms / 1000);
    count(o, "series", status_series(s));
    error(o, st);
    warnings(o, st);
    source(o, summary);
    url(o, "scoringEndpoint", summary->scoring_endpoint);
    secret(o, "scoringSecret", &summary->scoring_auth);
    scores(o, s);
    out_puts(o, "}");
}

static void problem_lines(struct out *o, const char *problems)
{
    struct str rest = str_of(problems);

    name(o, "problems");
    out_puts(o, "[");
    while (rest.n) {
        const char *end = memchr(rest.p, '\n', rest.n);
        struct str line = {rest.p, end ? (size_t)(end - rest.p) : rest.n};
        size_t skip = size_min(line.n + 1, rest.n);

        if (line.n) {
            comma_after(o, '[');
            put_str(o, line);
        }
        rest = (struct str){rest.p + skip, rest.n - skip};
    }
    out_puts(o, "]");
}

static void config(struct out *o, const struct agent *a)
{
    const struct config *c = agent_config(a);
    const struct reload_status *reload = agent_reload_status(a);

    text(o, "cluster", c ? cstr(c->cluster_name) : NULL);
    moment(o, "startedAt", agent_started_ms(a));
    open_object(o, "config");
    text(o, "file", agent_config_file(a));
    moment(o, "loadedAt", c ? c->loaded_at_ms : 0);
    truth(o, "ok", reload->ok);
    moment(o, "lastTriedAt", reload->at_ms);
    problem_lines(o, reload->problems);
    out_puts(o, "}");
    if (!c) {
        text(o, "limits", NULL);
        return;
    }
    open_object(o, "limits");
    count(o, "responseBytes", c->limits.response_bytes);
    count(o, "seriesPerScorer", (uint64_t)c->limits.series_per_scorer);
    count(o, "series", (uint64_t)c->limits.series);
    count(o, "labelValueBytes", (uint64_t)c->limits.label_value_bytes);
    number(o, "roundTimeSeconds", (double)c->limits.round_ms / 1000);
    count(o, "staleAfterIntervals", (uint64_t)c->limits.stale_intervals);
    out_puts(o, "}");
}

static void totals(struct out *o, const struct agent *a)
{
    struct totals t = status_totals(a);

    open_object(o, "totals");
    count(o, "scorers", agent_scorers(a));
    count(o, "series", t.series);
    open_object(o, "states");
    for (enum scorer_state s = SCORER_WAITING; s <= SCORER_STALE; s++)
        count(o, scorer_state_word(s), t.by_state[s]);
    out_puts(o, "}}");
}

static void endpoint(struct out *o, const struct endpoint_status *e)
{
    comma_after(o, '[');
    out_puts(o, "{");
    text(o, "name", e->name);
    text(o, "url", e->url);
    text(o, "state", e->state);
    text(o, "protocol", e->protocol);
    number(o, "behindSeconds", e->behind_s);
    count(o, "samplesSent", e->samples_sent);
    count(o, "samplesPending", e->samples_pending);
    count(o, "samplesDropped", e->samples_dropped);
    truth(o, "spool", e->spool);
    count(o, "spoolBytes", e->spool_bytes);
    moment(o, "sentAt", e->sent_at_ms);
    moment(o, "retryAt", e->retry_at_ms);
    text(o, "error", *e->error ? e->error : NULL);
    moment(o, "errorAt", e->error_at_ms);
    out_puts(o, "}");
}

static void endpoints(struct out *o, const struct agent *a)
{
    size_t n;
    const struct endpoint_status *list = agent_endpoints(a, &n);

    name(o, "remoteWrite");
    out_puts(o, "[");
    for (size_t i = 0; i < n; i++)
        endpoint(o, &list[i]);
    out_puts(o, "]");
}

int status_json(const struct agent *a, struct buf *into)
{
    struct out o = out_begin(into);

    out_puts(&o, "{");
    open_object(&o, "build");
    text(&o, "version", ds_version);
    text(&o, "revision", ds_revision);
    out_puts(&o, "}");
    config(&o, a);
    totals(&o, a);
    endpoints(&o, a);
    name(&o, "scorers");
    out_puts(&o, "[");
    for (size_t i = 0; i < agent_scorers(a); i++)
        scorer(&o, agent_scorer(a, i));
    out_puts(&o, "]}\n");
    return out_end(&o);
}
