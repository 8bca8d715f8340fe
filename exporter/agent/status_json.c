/* Times are RFC 3339 in UTC, null for never; durations are in seconds; scores that are not finite are the
 * strings "+Inf" and "-Inf". exporter/ui/README.md documents each member. */
#include "exporter/agent/scorer.h"
#include "exporter/agent/scorer_history.h"
#include "exporter/agent/status.h"
#include "exporter/agent/status_text.h"
#include "exporter/base/loop.h"
#include "exporter/metric/page.h"
#include "exporter/metric/version.h"
#include "exporter/otlp/ingest.h"
#include "exporter/score/error.h"
#include "exporter/score/round.h"
#include "exporter/score/source.h"
#include "exporter/score/state.h"
#include "exporter/score/summary.h"
#include "exporter/tsdb/tsdb.h"
#include "exporter/ui/history.h"
#include "exporter/ui/members.h"
#include "exporter/ui/out.h"
#include "exporter/ui/ranking.h"
#include "exporter/ui/web_config.h"

enum { BEST_AND_WORST = 5 };

static void json_by_stage(struct out *o, const char *key, const uint64_t v[2])
{
    member_object(o, key);
    for (enum round_stage stage = STAGE_SOURCE; stage <= STAGE_SCORING; stage++)
        member_count(o, round_stage_word(stage), v[stage]);
    out_puts(o, "}");
}

static void json_last_round(struct out *o, const struct scorer_status *s)
{
    if (!member_object_if(o, "lastRound", s->rounds))
        return;
    member_time(o, "startedAt", s->running ? 0 : s->started_ms);
    member_time(o, "endedAt", s->ended_ms);
    member_number(o, "fetchSeconds", s->fetch_s);
    member_number(o, "performSeconds", s->perform_s);
    member_count(o, "sourceSeries", s->source_series);
    member_count(o, "results", s->results);
    member_count(o, "invalidResults", s->invalid);
    member_words(o, "firstInvalid", s->first_invalid);
    member_count(o, "duplicates", s->duplicates);
    member_count(o, "cutLabels", s->cut);
    json_by_stage(o, "receivedBytes", s->received);
    json_by_stage(o, "sentBytes", s->sent);
    out_puts(o, "}");
}

static void json_error(struct out *o, const struct scorer_status *s)
{
    if (!member_object_if(o, "error", s->rounds && s->error != ROUND_OK))
        return;
    member_text(o, "stage", round_stage_word(s->stage));
    member_text(o, "class", round_error_word(s->error));
    member_words(o, "url", s->url);
    member_text(o, "text", s->reason);
    member_text(o, "hint", status_hint(s->error, s->stage));
    out_puts(o, "}");
}

static void json_warnings(struct out *o, const struct scorer_status *s)
{
    if (!member_object_if(o, "warnings", s->source_warnings))
        return;
    member_count(o, "count", s->source_warnings);
    member_text(o, "first", s->source_warning);
    out_puts(o, "}");
}

static void json_secret(struct out *o, const char *key, const struct secret_ref *ref)
{
    if (!member_object_if(o, key, ref->name))
        return;
    member_text(o, "name", ref->name);
    member_text(o, "key", ref->key);
    out_puts(o, "}");
}

static void json_source_members(struct out *o, const struct summary *s, size_t i)
{
    const struct summary_source from = summary_source(s, i);
    struct str query;
    size_t at = 0;

    member_text(o, "type", source_type_word(from.type));
    member_url(o, "endpoint", from.endpoint);
    json_secret(o, "secret", &from.auth);
    member_text(o, "query", from.query);
    member_list(o, "queries");
    while ((query = summary_next_query(str_of(from.query), &at)).n) {
        member_item(o);
        value_text(o, query);
    }
    out_puts(o, "]");
    member_count(o, "rangeSeconds", (uint64_t)from.range_s);
    member_count(o, "stepSeconds", (uint64_t)from.step_s);
}

/* The first source as an object; where there are several also all of them, as a list. */
static void json_source(struct out *o, const struct summary *s)
{
    size_t n = summary_sources(s);

    member_object(o, "source");
    if (n)
        json_source_members(o, s, 0);
    else
        member_text(o, "type", source_type_word(s->source.type));
    out_puts(o, "}");
    if (n < 2)
        return;
    member_list(o, "sources");
    for (size_t i = 0; i < n; i++) {
        member_item(o);
        out_puts(o, "{");
        json_source_members(o, s, i);
        out_puts(o, "}");
    }
    out_puts(o, "]");
}

static void json_score(struct out *o, const struct batch *b, size_t series)
{
    struct shown_label labels[SHOWN_LABELS];
    size_t n = shown_labels(b, series, labels);

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

static void json_scores(struct out *o, const struct scorer *s)
{
    struct ranking r;

    rank_scores(scorer_batch(s), BEST_AND_WORST, &r);
    member_list(o, "highest");
    for (size_t i = 0; i < r.n; i++)
        json_score(o, scorer_batch(s), r.highest[i]);
    out_puts(o, "]");
    member_list(o, "lowest");
    for (size_t i = 0; i < r.n; i++)
        json_score(o, scorer_batch(s), r.lowest[i]);
    out_puts(o, "]");
    member_count(o, "nanScores", r.nans);
}

static void json_scorer(struct out *o, const struct scorer *s, bool with_history)
{
    const struct scorer_status *st = scorer_status(s);
    const struct summary *summary = scorer_summary(s);

    member_item(o);
    out_puts(o, "{");
    member_text(o, "name", summary->name);
    member_text(o, "scoreName", summary->score_name);
    member_text(o, "state", scorer_state_word(scorer_state(s)));
    member_bool(o, "running", st->running);
    member_time(o, "runningSince", st->running ? st->started_ms : 0);
    member_count(o, "rounds", st->rounds);
    member_count(o, "failures", st->failures);
    json_last_round(o, st);
    member_time(o, "lastSuccessAt", st->succeeded_ms);
    member_time(o, "scoresAt", scorer_batch(s) ? scorer_batch(s)->at.ms : 0);
    member_time(o, "nextRoundAt", st->next_ms);
    member_number(o, "intervalSeconds", (double)summary->interval_ms / 1000);
    member_count(o, "series", status_series(s));
    json_error(o, st);
    json_warnings(o, st);
    json_source(o, summary);
    member_url(o, "scoringEndpoint", summary->scoring_endpoint);
    json_secret(o, "scoringSecret", &summary->scoring_auth);
    json_scores(o, s);
    if (with_history)
        member_history(o, st->history, scorer_history_names);
    out_puts(o, "}");
}

static void json_config(struct out *o, const struct agent_state *a)
{
    const struct config *c = a->config;
    const struct reload_status *reload = &a->reload;

    member_text(o, "cluster", c ? cstr(c->cluster_name) : NULL);
    member_time(o, "startedAt", a->started_ms);
    member_object(o, "config");
    member_text(o, "file", a->config_origin);
    member_time(o, "loadedAt", c ? c->loaded_at_ms : 0);
    member_bool(o, "ok", reload->ok);
    member_time(o, "lastTriedAt", reload->at_ms);
    member_problems(o, reload->problems);
    member_list(o, "listen");
    for (size_t i = 0; c && i < c->n_listen; i++) {
        member_item(o);
        value_text(o, str_of(c->listen[i]));
    }
    out_puts(o, "]");
    member_text(o, "secretsFolder", c ? c->secrets_dir : NULL);
    member_text(o, "storageFolder", c ? c->storage_path : NULL);
    out_puts(o, "}");
    member_web_config(o, a->access);
    if (!member_object_if(o, "limits", c))
        return;
    member_count(o, "responseBytes", c->limits.response_bytes);
    member_count(o, "seriesPerScorer", (uint64_t)c->limits.series_per_scorer);
    member_count(o, "series", (uint64_t)c->limits.series);
    member_count(o, "labelValueBytes", (uint64_t)c->limits.label_value_bytes);
    member_number(o, "roundTimeSeconds", (double)c->limits.round_ms / 1000);
    member_count(o, "staleAfterIntervals", (uint64_t)c->limits.stale_intervals);
    out_puts(o, "}");
}

static void json_totals(struct out *o, const struct agent_state *a)
{
    struct totals t = status_totals(a);

    member_object(o, "totals");
    member_count(o, "scorers", a->n_scorers);
    member_count(o, "series", t.series);
    member_count(o, "metricsPageBytes", page_memory(a->page));
    member_object(o, "states");
    for (enum scorer_state s = SCORER_WAITING; s < SCORER_STATES; s++)
        member_count(o, scorer_state_word(s), t.by_state[s]);
    out_puts(o, "}}");
}

static void json_files(struct out *o, const char *key, uint64_t files, uint64_t bytes)
{
    member_object(o, key);
    member_count(o, "files", files);
    member_count(o, "bytes", bytes);
    out_puts(o, "}");
}

static void json_endpoint(struct out *o, const struct endpoint_status *e)
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
    member_bool(o, "spool", e->spool);
    member_count(o, "spoolBytes", e->bytes_on_disk);
    member_count(o, "samplesUnsaved", e->samples_unsaved);
    json_files(o, "spoolUnread", e->unread_files, e->unread_bytes);
    json_files(o, "spoolSetAside", e->aside_files, e->aside_bytes);
    member_words(o, "spoolError", e->spool_error);
    member_time(o, "sentAt", e->sent_at_ms);
    member_time(o, "retryAt", e->retry_at_ms);
    member_words(o, "error", e->error);
    member_time(o, "errorAt", e->error_at_ms);
    out_puts(o, "}");
}

static void json_endpoints(struct out *o, const struct agent_state *a)
{
    size_t n = 0;
    const struct endpoint_status *list = a->hooks.endpoints ? a->hooks.endpoints(a->hooks.arg, &n) : NULL;

    member_list(o, "remoteWrite");
    for (size_t i = 0; i < n; i++)
        json_endpoint(o, &list[i]);
    out_puts(o, "]");
}

static void json_otlp(struct out *o, const struct agent_state *a)
{
    struct otlp_status s;

    if (!member_object_if(o, "otlp", a->hooks.otlp && a->hooks.otlp(a->hooks.arg, &s)))
        return;
    member_text(o, "address", s.listen);
    member_count(o, "points", s.points[TSDB_OK]);
    member_object(o, "rejected");
    for (unsigned i = 0; i < OTLP_RESULTS; i++)
        if (i != TSDB_OK && s.points[i])
            member_count(o, otlp_result_word(i), s.points[i]);
    out_puts(o, "}");
    member_time(o, "receivedAt", s.last_ms);
    member_count(o, "series", s.store.series);
    member_count(o, "samples", s.store.samples);
    member_count(o, "bytes", s.store.bytes);
    member_count(o, "maxBytes", s.store.max_bytes);
    member_count(o, "keptSeconds", (uint64_t)s.store.age_ms / 1000);
    out_puts(o, "}");
}

/* The worst first; for sort=state. */
static unsigned json_urgency(enum scorer_state state)
{
    static const unsigned urgency[SCORER_STATES] = {
        [SCORER_STALE] = 0, [SCORER_FAILING] = 1, [SCORER_EMPTY] = 2, [SCORER_WAITING] = 3, [SCORER_OK] = 4,
    };

    return urgency[state];
}

static int json_choose(struct list *l, const struct agent_state *a)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < a->n_scorers; i++) {
        const struct scorer *s = a->scorers[i];
        const struct summary *summary = scorer_summary(s);
        enum scorer_state state = scorer_state(s);

        if (list_matches(l->query, summary->score_name, summary->name) &&
            list_has_state(l->query, scorer_state_word(state)))
            r = list_add(l, summary->score_name, json_urgency(state), s);
    }
    list_sort(l);
    return r;
}

static void json_scorers(struct out *o, const struct agent_state *a, const struct list_query *q)
{
    CLEANUP(list_done) struct list l = {.query = q};

    if (o->error == 0)
        o->error = json_choose(&l, a);
    member_list(o, "scorers");
    for (size_t i = 0; i < l.n; i++)
        json_scorer(o, l.items[i].what, q->with_history);
    out_puts(o, "]");
    list_metadata(o, "metadata", &l);
}

static void json_election(struct out *o, const struct agent_state *a)
{
    struct agent_election e;

    member_bool(o, "leading", a->leading);
    if (!member_object_if(o, "election", a->hooks.election && a->hooks.election(a->hooks.arg, &e)))
        return;
    member_text(o, "identity", e.identity);
    member_words(o, "holder", e.holder);
    member_text(o, "error", e.error);
    out_puts(o, "}");
}

int status_json(const struct agent_state *a, const struct list_query *q, struct buf *into)
{
    struct out o = out_begin(into);

    out_puts(&o, "{");
    member_text(&o, "role", "agent");
    member_time(&o, "now", loop_wall(a->loop).ms);
    member_object(&o, "build");
    member_text(&o, "version", ds_version);
    member_text(&o, "revision", ds_revision);
    out_puts(&o, "}");
    json_election(&o, a);
    json_config(&o, a);
    json_totals(&o, a);
    json_endpoints(&o, a);
    json_otlp(&o, a);
    json_scorers(&o, a, q);
    out_puts(&o, "}\n");
    return out_end(&o);
}
