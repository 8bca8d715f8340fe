/* /api/v1/status. Names are camelCase and stay; times are RFC 3339 in UTC, null for never; lengths of time
 * are in seconds; scores that are no finite number are the strings "+Inf", "-Inf". Scorers come in the order
 * of the configuration. */
#include "exporter/agent/status.h"

#include "exporter/agent/status_members.h"
#include "exporter/metric/version.h"

enum { BEST_AND_WORST = 5 };

static void by_stage(struct out *o, const char *key, const uint64_t v[2])
{
    member_object(o, key);
    for (enum round_stage stage = STAGE_SOURCE; stage <= STAGE_SCORING; stage++)
        member_count(o, round_stage_word(stage), v[stage]);
    out_puts(o, "}");
}

static void last_round(struct out *o, const struct scorer_status *s)
{
    if (s->rounds == 0) {
        member_text(o, "lastRound", NULL);
        return;
    }
    member_object(o, "lastRound");
    member_moment(o, "startedAt", s->running ? 0 : s->started_ms);
    member_moment(o, "endedAt", s->ended_ms);
    member_number(o, "fetchSeconds", s->fetch_s);
    member_number(o, "performSeconds", s->perform_s);
    member_count(o, "sourceSeries", s->source_series);
    member_count(o, "results", s->results);
    member_count(o, "invalidResults", s->invalid);
    member_text(o, "firstInvalid", s->first_invalid[0] ? s->first_invalid : NULL);
    member_count(o, "duplicates", s->duplicates);
    member_count(o, "cutLabels", s->cut);
    by_stage(o, "receivedBytes", s->received);
    by_stage(o, "sentBytes", s->sent);
    out_puts(o, "}");
}

static void error(struct out *o, const struct scorer_status *s)
{
    if (s->rounds == 0 || s->error == ROUND_OK) {
        member_text(o, "error", NULL);
        return;
    }
    member_object(o, "error");
    member_text(o, "stage", round_stage_word(s->stage));
    member_text(o, "class", round_error_word(s->error));
    member_text(o, "text", s->reason);
    out_puts(o, "}");
}

static void warnings(struct out *o, const struct scorer_status *s)
{
    if (s->source_warnings == 0) {
        member_text(o, "warnings", NULL);
        return;
    }
    member_object(o, "warnings");
    member_count(o, "count", s->source_warnings);
    member_text(o, "first", s->source_warning);
    out_puts(o, "}");
}

static void secret(struct out *o, const char *key, const struct secret_ref *ref)
{
    if (!ref->name) {
        member_text(o, key, NULL);
        return;
    }
    member_object(o, key);
    member_text(o, "name", ref->name);
    member_text(o, "key", ref->key);
    out_puts(o, "}");
}

static void source_members(struct out *o, const struct summary *s, size_t i)
{
    const struct summary_source from = summary_source(s, i);

    member_text(o, "type", status_source_word(s->source_type));
    member_url(o, "endpoint", from.endpoint);
    secret(o, "secret", &from.auth);
    member_text(o, "query", from.query);
    member_count(o, "rangeSeconds", (uint64_t)from.range_s);
    member_count(o, "stepSeconds", (uint64_t)from.step_s);
}

/* The first source as an object; where there are several also all of them, as a list. */
static void source(struct out *o, const struct summary *s)
{
    size_t n = summary_sources(s);

    member_object(o, "source");
    if (n)
        source_members(o, s, 0);
    else
        member_text(o, "type", status_source_word(s->source_type));
    out_puts(o, "}");
    if (n < 2)
        return;
    member(o, "sources");
    out_puts(o, "[");
    for (size_t i = 0; i < n; i++) {
        member_item(o);
        out_puts(o, "{");
        source_members(o, s, i);
        out_puts(o, "}");
    }
    out_puts(o, "]");
}

static void score(struct out *o, const struct batch *b, size_t series, struct buf *scratch)
{
    struct shown_label labels[SHOWN_LABELS];
    size_t n = status_labels(o, b, series, scratch, labels);

    member_item(o);
    out_puts(o, "{");
    member_object(o, "labels");
    for (size_t i = 0; i < n; i++) {
        member(o, labels[i].name);
        value_text(o, labels[i].value);
    }
    out_puts(o, "}");
    member_number(o, "score", b->values[series]);
    out_puts(o, "}");
}

static void scores(struct out *o, const struct scorer *s)
{
    BUF_AUTO(scratch, LABEL_SCRATCH);
    struct ranking r;

    status_rank(scorer_batch(s), BEST_AND_WORST, &r);
    member(o, "highest");
    out_puts(o, "[");
    for (size_t i = 0; i < r.n; i++)
        score(o, scorer_batch(s), r.highest[i], &scratch);
    out_puts(o, "]");
    member(o, "lowest");
    out_puts(o, "[");
    for (size_t i = 0; i < r.n; i++)
        score(o, scorer_batch(s), r.lowest[i], &scratch);
    out_puts(o, "]");
}

static void scorer(struct out *o, const struct scorer *s)
{
    const struct scorer_status *st = scorer_status(s);
    const struct summary *summary = scorer_summary(s);

    member_item(o);
    out_puts(o, "{");
    member_text(o, "name", summary->name);
    member_text(o, "scoreName", summary->score_name);
    member_text(o, "state", scorer_state_word(scorer_state(s)));
    member_truth(o, "running", st->running);
    member_moment(o, "runningSince", st->running ? st->started_ms : 0);
    member_count(o, "rounds", st->rounds);
    member_count(o, "failures", st->failures);
    last_round(o, st);
    member_moment(o, "lastSuccessAt", st->succeeded_ms);
    member_moment(o, "scoresAt", scorer_batch(s) ? scorer_batch(s)->at.ms : 0);
    member_moment(o, "nextRoundAt", st->next_ms);
    member_number(o, "intervalSeconds", (double)summary->interval_ms / 1000);
    member_count(o, "series", status_series(s));
    error(o, st);
    warnings(o, st);
    source(o, summary);
    member_url(o, "scoringEndpoint", summary->scoring_endpoint);
    secret(o, "scoringSecret", &summary->scoring_auth);
    scores(o, s);
    out_puts(o, "}");
}

static void problem_lines(struct out *o, const char *problems)
{
    struct str rest = str_of(problems);

    member(o, "problems");
    out_puts(o, "[");
    while (rest.n) {
        const char *end = memchr(rest.p, '\n', rest.n);
        struct str line = {rest.p, end ? (size_t)(end - rest.p) : rest.n};
        size_t skip = size_min(line.n + 1, rest.n);

        if (line.n) {
            member_item(o);
            value_text(o, line);
        }
        rest = (struct str){rest.p + skip, rest.n - skip};
    }
    out_puts(o, "]");
}

static void config(struct out *o, const struct agent *a)
{
    const struct config *c = agent_config(a);
    const struct reload_status *reload = agent_reload_status(a);

    member_text(o, "cluster", c ? cstr(c->cluster_name) : NULL);
    member_moment(o, "startedAt", agent_started_ms(a));
    member_object(o, "config");
    member_text(o, "file", agent_config_file(a));
    member_moment(o, "loadedAt", c ? c->loaded_at_ms : 0);
    member_truth(o, "ok", reload->ok);
    member_moment(o, "lastTriedAt", reload->at_ms);
    problem_lines(o, reload->problems);
    out_puts(o, "}");
    if (!c) {
        member_text(o, "limits", NULL);
        return;
    }
    member_object(o, "limits");
    member_count(o, "responseBytes", c->limits.response_bytes);
    member_count(o, "seriesPerScorer", (uint64_t)c->limits.series_per_scorer);
    member_count(o, "series", (uint64_t)c->limits.series);
    member_count(o, "labelValueBytes", (uint64_t)c->limits.label_value_bytes);
    member_number(o, "roundTimeSeconds", (double)c->limits.round_ms / 1000);
    member_count(o, "staleAfterIntervals", (uint64_t)c->limits.stale_intervals);
    out_puts(o, "}");
}

static void totals(struct out *o, const struct agent *a)
{
    struct totals t = status_totals(a);

    member_object(o, "totals");
    member_count(o, "scorers", agent_scorers(a));
    member_count(o, "series", t.series);
    member_object(o, "states");
    for (enum scorer_state s = SCORER_WAITING; s < SCORER_STATES; s++)
        member_count(o, scorer_state_word(s), t.by_state[s]);
    out_puts(o, "}}");
}

static void endpoint(struct out *o, const struct endpoint_status *e)
{
    member_item(o);
    out_puts(o, "{");
    member_text(o, "name", e->name);
    member_text(o, "url", e->url);
    member_text(o, "state", e->state);
    member_text(o, "protocol", e->protocol);
    member_number(o, "behindSeconds", e->behind_s);
    member_count(o, "samplesSent", e->samples_sent);
    member_count(o, "samplesPending", e->samples_pending);
    member_count(o, "samplesDropped", e->samples_dropped);
    member_truth(o, "spool", e->spool);
    member_count(o, "spoolBytes", e->spool_bytes);
    member_moment(o, "sentAt", e->sent_at_ms);
    member_moment(o, "retryAt", e->retry_at_ms);
    member_text(o, "error", *e->error ? e->error : NULL);
    member_moment(o, "errorAt", e->error_at_ms);
    out_puts(o, "}");
}

static void endpoints(struct out *o, const struct agent *a)
{
    size_t n;
    const struct endpoint_status *list = agent_endpoints(a, &n);

    member(o, "remoteWrite");
    out_puts(o, "[");
    for (size_t i = 0; i < n; i++)
        endpoint(o, &list[i]);
    out_puts(o, "]");
}

int status_json(const struct agent *a, struct buf *into)
{
    struct out o = out_begin(into);

    out_puts(&o, "{");
    member_object(&o, "build");
    member_text(&o, "version", ds_version);
    member_text(&o, "revision", ds_revision);
    out_puts(&o, "}");
    config(&o, a);
    totals(&o, a);
    endpoints(&o, a);
    member(&o, "scorers");
    out_puts(&o, "[");
    for (size_t i = 0; i < agent_scorers(a); i++)
        scorer(&o, agent_scorer(a, i));
    out_puts(&o, "]}\n");
    return out_end(&o);
}
