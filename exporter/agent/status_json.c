/* The JSON of /api/v1/status. Times are RFC 3339 in UTC, null for never; durations are in seconds; scores
 * that are not finite are the strings "+Inf" and "-Inf". exporter/ui/README.md documents each member. Only
 * reads, on the loop. */
#include "exporter/agent/status_json.h"

#include "exporter/agent/hint.h"
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/escape.h"
#include "exporter/otlp/ingest.h"
#include "exporter/otlp/series.h"
#include "exporter/score/round_error.h"
#include "exporter/score/scorer_state.h"
#include "exporter/score/summary.h"
#include "exporter/ui/list.h"
#include "exporter/ui/member.h"
#include "exporter/ui/ranking.h"

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
        member_text(o, "hint", hint_of_error(st->last.error, st->last.stage));
        buf_puts(o, "}");
    }
    member_words(o, "staleReason", scorer_stale_reason(s));
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
    struct agent_totals t = agent_totals(a);
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
