/* Owns one scorer's schedule, its current scores and their expiry. Called by the agent, by timers and by
 * rounds, all on the loop. Scores that are too old are removed by a timer, whatever the rounds do. */
#include "exporter/agent/scorer.h"

#include "exporter/base/alloc.h"
#include "exporter/base/backoff.h"
#include "exporter/base/buf.h"
#include "exporter/base/invariant.h"
#include "exporter/base/log.h"
#include "exporter/base/loop.h"
#include "exporter/base/random.h"
#include "exporter/base/text.h"
#include "exporter/http/cause.h"
#include "exporter/http/http.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/history.h"
#include "exporter/metric/series.h"
#include "exporter/score/answer_job.h"
#include "exporter/score/round_error.h"
#include "exporter/score/scorer_state.h"
#include "exporter/score/summary.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

enum {
    REASON_MAX_BYTES = 2 * ROUND_REASON_BYTES, /* of a sentence that is built from a reason and a URL */
    MAX_JITTER_MS = 1500,                      /* of the first round */
    FIRST_BACKOFF_MS = 5000, /* after the first failure; doubled with each, up to the interval, plus jitter */
    MAX_RETRY_AFTER_MS = 3600000,
};

/* ---- The history that the page plots ---- */

enum { FETCH, PERFORM, LOWEST, MEAN, HIGHEST, COLUMNS };

const char *const scorer_history_names[] = {"fetchSeconds", "performSeconds", "lowest",
                                            "mean",         "highest",        NULL};

/* Scores that are NaN or infinite do not count. */
static void scorer_history_add(struct history **h, const struct summary *s, const struct round_result *r,
                               unix_ms now)
{
    double values[COLUMNS] = {NAN, NAN, NAN, NAN, NAN}, sum = 0;
    size_t n = 0;

    if (r->fetched && s->n_sources)
        values[FETCH] = r->fetch_s;
    if (r->performed)
        values[PERFORM] = r->perform_s;
    for (size_t i = 0; r->error == ROUND_OK && i < series_count(r->batch->set); i++) {
        double v = r->batch->values[i];

        if (!isfinite(v))
            continue;
        sum += v;
        values[LOWEST] = n && values[LOWEST] < v ? values[LOWEST] : v;
        values[HIGHEST] = n && values[HIGHEST] > v ? values[HIGHEST] : v;
        n++;
    }
    if (n)
        values[MEAN] = sum / (double)n;
    history_add(h, COLUMNS, now, values);
}

/* ---- What a round leaves behind besides its scores: a log line, metrics, the reason of a failure ---- */

/* What a round can reach: the label `limit`. */
enum round_limit {
    LIMIT_NONE,
    LIMIT_RESPONSE_BYTES,
    LIMIT_ROUND_TIME,
    LIMIT_MEMORY,
    LIMIT_SERIES,
    LIMIT_SERIES_PER_SCORER,
    LIMIT_LABEL_VALUE_BYTES,
    ROUND_LIMITS
};

static WORD_TABLE(round_limit_word, enum round_limit, ROUND_LIMITS,
                  {[LIMIT_NONE] = "none",
                   [LIMIT_RESPONSE_BYTES] = "response_bytes",
                   [LIMIT_ROUND_TIME] = "round_time",
                   [LIMIT_MEMORY] = "memory",
                   [LIMIT_SERIES] = "series",
                   [LIMIT_SERIES_PER_SCORER] = "series_per_scorer",
                   [LIMIT_LABEL_VALUE_BYTES] = "label_value_bytes"});

/* left: how many series the scorer may have within limits.series. */
static enum round_limit round_limit_of(const struct round_result *r, const struct limits *l, size_t left)
{
    switch (r->error) {
    case ROUND_TOO_LARGE:
        /* The limit of headers cannot be set. */
        return r->cause == CAUSE_HEADERS_LIMIT ? LIMIT_NONE : LIMIT_RESPONSE_BYTES;
    case ROUND_TIMEOUT:
        return LIMIT_ROUND_TIME;
    case ROUND_MEMORY:
        return LIMIT_MEMORY;
    case ROUND_SERIES:
        return left < (size_t)l->series_per_scorer ? LIMIT_SERIES : LIMIT_SERIES_PER_SCORER;
    default:
        return LIMIT_NONE;
    }
}

/* The settings, which the round does not know. */
static void scorer_name_setting(const struct limits *l, enum round_limit limit, size_t left,
                                struct round_result *r)
{
    BUF_AUTO(text, REASON_MAX_BYTES);

    switch (limit) {
    case LIMIT_RESPONSE_BYTES:
        buf_puts(&text, r->reason);
        buf_puts(&text, "; raise limits.responseBytes");
        break;
    case LIMIT_SERIES:
        buf_printf(&text, "too many series: limits.series (%lld for all scorers)", (long long)l->series);
        buf_printf(&text, " leaves %zu for this scorer; raise it", left);
        break;
    case LIMIT_SERIES_PER_SCORER:
        buf_printf(&text, "too many series: limits.seriesPerScorer is %lld; raise it",
                   (long long)l->series_per_scorer);
        break;
    default:
        return;
    }
    buf_puts(&text, " in the file of --config.file");
    invariant(buf_failed(&text) == 0);
    text_line(r->reason, sizeof(r->reason), buf_str(&text));
}

static void scorer_count_limit(const struct scorer *s, enum round_limit limit)
{
    metric_add(s->env->metrics, METRIC_LIMITS_HIT, LV(round_limit_word(limit), s->summary.score_name), 1);
}

/* Counts the limit that was reached, and names its setting. */
static void scorer_note_limit(const struct scorer *s, struct round_result *r)
{
    const struct limits *l = s->env->limits;
    size_t left = r->error == ROUND_SERIES ? s->env->series_left(s->env->arg, s) : 0;
    enum round_limit limit = round_limit_of(r, l, left);

    scorer_name_setting(l, limit, left, r);
    if (limit != LIMIT_NONE)
        scorer_count_limit(s, limit);
    if (r->answer.cut)
        scorer_count_limit(s, LIMIT_LABEL_VALUE_BYTES);
}

/* The URL of the request that failed, as log, pages and reports show it. */
static void failed_url(const struct scorer *s, const struct round_result *r, char *out, size_t size)
{
    const char *url = s->summary.scoring_endpoint;
    BUF_AUTO(plain, 1 << 20);

    *out = '\0';
    if (r->error == ROUND_OK)
        return;
    if (r->stage == STAGE_SOURCE)
        url = s->summary.sources[r->source].endpoint;
    if (!url)
        return;
    http_url_for_people(str_of(url), &plain);
    if (buf_failed(&plain) == 0)
        text_line(out, size, buf_str(&plain));
}

static void log_success(const struct scorer *s, const struct round_result *r)
{
    const struct scorer_status *was = &s->status;
    const char *name = s->summary.score_name;
    bool again = was->rounds && was->last.error == ROUND_OK;
    const char *what = again ? "round succeeded" : "first round succeeded";

    if (was->failures)
        what = "scoring recovered";
    LOG_AT(again ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO, what, L_STR("score_name", name),
           L_INT("source_series", r->source_series), L_INT("series", series_count(r->batch->set)),
           L_DBL("fetch_s", r->fetch_s), L_DBL("perform_s", r->perform_s));
    if (r->answer.invalid && !was->last.answer.invalid)
        log_warn("results dropped", L_STR("score_name", name), L_INT("results", r->answer.invalid),
                 L_STR("first", r->answer.first_invalid));
    if (r->source_warnings && !was->last.source_warnings)
        log_warn("source returned warnings", L_STR("score_name", name), L_STR("first", r->source_warning));
}

static void count_transfers(const struct scorer *s, const struct round_result *r)
{
    struct metrics *m = s->env->metrics;
    const char *name = s->summary.score_name;

    for (enum round_stage stage = STAGE_SOURCE; stage <= STAGE_SCORING; stage++) {
        metric_add(m, METRIC_RECEIVED_BYTES, LV(name, round_stage_word(stage)), (double)r->received[stage]);
        metric_add(m, METRIC_SENT_BYTES, LV(name, round_stage_word(stage)), (double)r->sent[stage]);
    }
    if (s->summary.n_sources) {
        metric_add(m, METRIC_FETCH_SECONDS, LV(name), r->fetch_s);
        metric_observe(m, METRIC_FETCH_DURATION, LV(name), r->fetch_s);
    }
    if (r->performed) {
        metric_add(m, METRIC_PERFORM_SECONDS, LV(name), r->perform_s);
        metric_observe(m, METRIC_PERFORM_DURATION, LV(name), r->perform_s);
    }
}

static void count_result(const struct scorer *s, const struct round_result *r)
{
    const struct scorer_status *was = &s->status;
    struct metrics *m = s->env->metrics;
    const char *name = s->summary.score_name;
    bool ok = r->error == ROUND_OK;
    bool empty = ok && s->summary.n_sources && r->source_series == 0;
    const char *result = ok ? "success" : "failure";

    metric_add(m, METRIC_REQUESTS, LV(name, result), 1);
    metric_add(m, METRIC_ROUNDS, LV(empty ? "empty" : result, name), 1);
    metric_set(m, METRIC_UP, LV(name), ok);
    if (ok)
        metric_set(m, METRIC_LAST_SUCCESS, LV(name), (double)loop_wall(s->loop).ms / 1000);
    else
        metric_add(m, METRIC_ROUND_ERRORS, LV(round_error_word(r->error), name, round_stage_word(r->stage)),
                   1);
    if (r->fetched && s->summary.n_sources)
        metric_set(m, METRIC_SOURCE_SERIES, LV(name), (double)r->source_series);
    metric_add(m, METRIC_SOURCE_WARNINGS, LV(name), (double)r->source_warnings);
    metric_add(m, METRIC_RESULTS_DROPPED, LV("invalid", name), (double)r->answer.invalid);
    metric_add(m, METRIC_RESULTS_DROPPED, LV("duplicate", name), (double)r->duplicates);
    if (ok)
        metric_add(m, METRIC_MERGED, LV("series", name), (double)r->batch->merged_by_cut);
    metric_add(m, METRIC_LABELS_CHANGED, LV("cut", name), (double)r->answer.cut);
    metric_add(m, METRIC_LABELS_CHANGED, LV("ill_formed", name), (double)r->answer.repaired);
    if (was->failures)
        metric_set(m, METRIC_FAILURES,
                   LV(round_error_word(was->last.error), name, round_stage_word(was->last.stage)), 0);
    if (!ok)
        metric_set(m, METRIC_FAILURES, LV(round_error_word(r->error), name, round_stage_word(r->stage)),
                   (double)(was->failures + 1));
}

/* ---- State and error, for whoever shows them ---- */

const char *scorer_stale_reason(const struct scorer *s)
{
    bool is_stale = scorer_state(s) == SCORER_STALE;

    return is_stale && s->status.last.error == ROUND_OK ? scores_expired_text : NULL;
}

/* "scoring failed, http://scorer/scoring: HTTP 503 Service Unavailable" */
static void scorer_put_failure(struct buf *b, const struct scorer_status *st)
{
    buf_puts(b, round_stage_word(st->last.stage));
    buf_puts(b, " failed");
    if (*st->url) {
        buf_puts(b, ", ");
        buf_puts(b, st->url);
    }
    buf_puts(b, ": ");
    buf_puts(b, st->last.reason);
}

void scorer_error_text(const struct scorer *s, char *out, size_t size)
{
    const char *stale_reason = scorer_stale_reason(s);
    BUF_AUTO(text, REASON_MAX_BYTES);

    if (s->status.rounds && s->status.last.error != ROUND_OK)
        scorer_put_failure(&text, &s->status);
    else if (stale_reason)
        buf_puts(&text, stale_reason);
    invariant(buf_failed(&text) == 0);
    text_line(out, size, buf_str(&text));
}

enum scorer_state scorer_state(const struct scorer *s)
{
    if (s->summary.suspended_since)
        return SCORER_SUSPENDED;
    if (s->status.rounds == 0)
        return SCORER_WAITING;
    if (s->status.last.error != ROUND_OK)
        return s->batch || s->status.succeeded_ms == 0 ? SCORER_FAILING : SCORER_STALE;
    if (!s->batch)
        return SCORER_STALE;
    if (s->summary.n_sources && s->status.last.source_series == 0)
        return SCORER_EMPTY;
    if (series_count(s->batch->set) == 0)
        return SCORER_EMPTY;
    return SCORER_OK;
}

size_t scorer_series(const struct scorer *s)
{
    return s->batch ? series_count(s->batch->set) : 0;
}

/* ---- The schedule ---- */

static void scorer_schedule(struct scorer *s, mono_ms at)
{
    s->status.next_ms = loop_wall(s->loop).ms + mono_diff(loop_now(s->loop), at);
    loop_timer_set(s->loop, &s->next, at);
}

/* The earlier of the back-off and the schedule. Even the schedule leaves the server the shortest back-off, so
 * that a scorer is not asked more often while it fails than while it is well. */
static mono_ms back_off(struct scorer *s, mono_ms scheduled)
{
    int64_t ms = backoff_doubled_ms((unsigned)s->status.failures, FIRST_BACKOFF_MS, s->summary.interval_ms);
    mono_ms now = loop_now(s->loop);
    mono_ms soon = mono_add(now, ms + (int64_t)rand_below((uint64_t)ms / 5 * 2 + 1));
    mono_ms soonest = mono_add(now, backoff_doubled_ms(1, FIRST_BACKOFF_MS, s->summary.interval_ms));

    if (mono_before(soon, scheduled)) {
        s->due = mono_add(s->due, -s->summary.interval_ms);
        return soon;
    }
    return mono_before(scheduled, soonest) ? soonest : scheduled;
}

static void schedule_next(struct scorer *s, int64_t retry_after_ms)
{
    mono_ms now = loop_now(s->loop), at;
    int64_t intervals = mono_diff(s->due, now) / s->summary.interval_ms + 1;

    /* By whole intervals, into the future: a round that ran over skips the rounds it covered, and the rhythm
     * stays. */
    s->due = at = mono_add(s->due, intervals * s->summary.interval_ms);
    if (s->env->once) {
        s->status.next_ms = 0;
        return;
    }
    if (round_error_may_pass(s->status.last.error))
        at = back_off(s, at);
    if (retry_after_ms > 0) {
        mono_ms asked =
            mono_add(now, retry_after_ms < MAX_RETRY_AFTER_MS ? retry_after_ms : MAX_RETRY_AFTER_MS);
        if (mono_before(at, asked))
            at = asked;
    }
    scorer_schedule(s, at);
}

/* ---- The scores, from their round until they expire ---- */

static void scorer_expire(struct scorer *s)
{
    const char *name = s->summary.score_name;
    char err[ROUND_REASON_BYTES];

    s->batch = batch_unref(s->batch);
    scorer_error_text(s, err, sizeof(err));
    log_warn("scores expired", L_STR("score_name", name), L_INT("failures", s->status.failures),
             L_STR("err", err));
    metric_add(s->env->metrics, METRIC_EXPIRED, LV(name), 1);
    loop_timer_clear(s->loop, &s->expire);
    metric_set(s->env->metrics, METRIC_SERIES, LV(name), 0);
    metric_remove(s->env->metrics, METRIC_SCORE_TIMESTAMP, LV(s->env->source->cluster_name, name));
    s->env->expired(s->env->arg, s);
}

/* With staleAfterIntervals of 1, scores expire while the round that renews them is running. Unless that round
 * fails or hangs, they stay exposed until it ends, but no longer than for an interval: changes of the summary
 * may begin one round after the other. */
static void on_expire_timer(struct timer *t)
{
    struct scorer *s = CONTAINER_OF(t, struct scorer, expire);
    mono_ms now = loop_now(s->loop), late = mono_add(s->due, s->summary.interval_ms);
    mono_ms last = mono_add(s->expires_at, s->summary.interval_ms);
    bool renewing = !s->summary.suspended_since && s->status.failures == 0 && !mono_before(now, s->due);

    if (mono_before(last, late))
        late = last;
    if (renewing && mono_before(now, late))
        loop_timer_set(s->loop, t, late);
    else
        scorer_expire(s);
}

/* From when their answer was there, scores live for staleAfterIntervals intervals, or round durations where
 * the round took longer than an interval. */
static void keep_scores(struct scorer *s, struct batch *b, mono_ms answered)
{
    int64_t took = mono_diff(s->started, answered);
    int64_t life =
        (took > s->summary.interval_ms ? took : s->summary.interval_ms) * s->env->limits->stale_intervals;
    const char *name = s->summary.score_name;

    s->batch = batch_unref(s->batch);
    s->batch = b;
    metric_set(s->env->metrics, METRIC_SERIES, LV(name), (double)series_count(b->set));
    metric_set(s->env->metrics, METRIC_SCORE_TIMESTAMP, LV(s->env->source->cluster_name, name),
               (double)b->at.ms / 1000);
    s->expires_at = mono_add(answered, life);
    s->status.life_ms = life;
    s->status.expires_ms = loop_wall(s->loop).ms + mono_diff(loop_now(s->loop), s->expires_at);
    loop_timer_set(s->loop, &s->expire, s->expires_at); /* better no scores than scores that never expire */
}

/* ---- A round ---- */

static void scorer_tell_outcome(struct scorer *s, struct batch *fresh)
{
    const struct scorer_status *st = &s->status;
    char reason[ROUND_REASON_BYTES];
    const struct round_outcome o = {
        .error = st->last.error,
        .stage = st->last.stage,
        .reason = reason,
        .source_series = st->last.source_series,
        .results = st->last.answer.results,
        .invalid = st->last.answer.invalid,
        .batch = fresh,
        .life_ms = st->life_ms,
        .expires_ms = st->expires_ms,
    };

    scorer_error_text(s, reason, sizeof(reason));
    s->env->ended(s->env->arg, s, &o);
}

/* What is left was asked when the round began; another that ran meanwhile may have taken it. */
static void scorer_check_series(const struct scorer *s, struct round_result *r)
{
    if (r->error != ROUND_OK || series_count(r->batch->set) <= s->env->series_left(s->env->arg, s))
        return;
    r->batch = batch_unref(r->batch);
    r->stage = STAGE_SCORING;
    r->error = round_error_because(r->reason, ROUND_SERIES, "too many series");
}

/* Records the round in the log, the metrics and the status, keeps its scores, and plans the next one. */
static void on_round_done(void *arg, struct round_result *r)
{
    struct scorer *s = arg;
    struct scorer_status *st = &s->status;
    int64_t retry_after_ms = r->retry_after_ms;
    bool ok, again;

    scorer_check_series(s, r);
    ok = r->error == ROUND_OK;
    again = st->rounds && st->last.error == r->error && st->last.stage == r->stage;
    scorer_note_limit(s, r);
    failed_url(s, r, st->url, sizeof(st->url));
    if (ok)
        log_success(s, r);
    else
        LOG_AT(again ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN, "round failed",
               L_STR("score_name", s->summary.score_name), L_STR("stage", round_stage_word(r->stage)),
               L_STR("class", round_error_word(r->error)), L_STR("url", st->url), L_STR("err", r->reason),
               L_STR("trace_id", r->trace));
    count_transfers(s, r);
    count_result(s, r);
    st->running = false;
    st->rounds++;
    st->last = *r;
    st->last.batch = NULL;
    st->failures = ok ? 0 : st->failures + 1;
    st->ended_ms = loop_wall(s->loop).ms;
    if (ok)
        st->succeeded_ms = st->ended_ms;
    scorer_history_add(&st->history, &s->summary, r, loop_wall(s->loop));
    if (ok)
        keep_scores(s, TAKE_PTR(r->batch), r->answered);
    else if (s->batch && !mono_before(loop_now(s->loop), s->expires_at))
        scorer_expire(s);
    s->round = round_free(s->round);
    schedule_next(s, retry_after_ms);
    scorer_tell_outcome(s, ok ? s->batch : NULL);
}

int64_t scorer_timeout_ms(const struct summary *s, const struct limits *limits)
{
    int64_t ms = summary_round_ms(s);

    return ms < limits->round_ms ? ms : limits->round_ms;
}

static struct answer_job *scorer_new_answer_job(const struct scorer *s)
{
    return answer_job_new(s->env->source->cluster_name, s->summary.score_name,
                          (size_t)s->env->limits->series_per_scorer);
}

static void on_next_timer(struct timer *t)
{
    struct scorer *s = CONTAINER_OF(t, struct scorer, next);
    struct round_request rq = {
        .env = s->env->source,
        .summary = &s->summary,
        .label_max = (size_t)s->env->limits->label_value_bytes,
        .timeout_ms = scorer_timeout_ms(&s->summary, s->env->limits),
    };

    /* The worker still reads the response of a round that was cancelled. */
    if (answer_job_is_busy(s->answer_job)) {
        (void)answer_job_free(s->answer_job);
        s->answer_job = scorer_new_answer_job(s);
    }
    rq.answer_job = s->answer_job;
    s->started = loop_now(s->loop);
    s->status.started_ms = loop_wall(s->loop).ms;
    s->status.next_ms = 0;
    s->status.running = true;
    answer_job_set_max(s->answer_job, s->env->series_left(s->env->arg, s));
    s->round = round_start(&rq, on_round_done, s);
}

/* ---- The scorer ---- */

/* Sets the metrics of a new summary, and schedules its first round. A suspended one runs none until the hub
 * sends it again without `since`. */
static void scorer_schedule_first(struct scorer *s)
{
    const char *name = s->summary.score_name;

    metric_set(s->env->metrics, METRIC_SUSPENDED, LV(name), s->summary.suspended_since != NULL);
    metric_set(s->env->metrics, METRIC_INTERVAL, LV(name), (double)s->summary.interval_ms / 1000);
    if (s->summary.n_sources == 0) /* it may have had one */
        metric_remove(s->env->metrics, METRIC_SOURCE_SERIES, LV(name));
    if (!s->summary.suspended_since) {
        scorer_schedule(s, s->due);
        return;
    }
    loop_timer_clear(s->loop, &s->next);
    s->status.next_ms = 0;
}

struct scorer *scorer_new(const struct scorer_env *env, const struct summary *summary)
{
    struct scorer *s = xcalloc(1, sizeof(*s));
    uint64_t jitter =
        (uint64_t)(summary->interval_ms / 10 < MAX_JITTER_MS ? summary->interval_ms / 10 : MAX_JITTER_MS);

    s->env = env;
    s->loop = env->source->loop;
    s->next.fn = on_next_timer;
    s->expire.fn = on_expire_timer;
    s->summary = summary_copy(summary);
    s->answer_job = scorer_new_answer_job(s);
    s->due = mono_add(loop_now(s->loop), env->once ? 0 : (int64_t)rand_below(jitter + 1));
    scorer_schedule_first(s);
    s->status.life_ms = summary->interval_ms * env->limits->stale_intervals;

    metric_set(env->metrics, METRIC_SERIES, LV(summary->score_name), 0);
    metric_add(env->metrics, METRIC_EXPIRED, LV(summary->score_name),
               0); /* so that the first is an increase */
    return s;
}

void scorer_change(struct scorer *s, const struct summary *summary)
{
    struct summary was = s->summary;

    s->round = round_free(s->round);
    s->status.running = false;
    s->summary = summary_copy(summary);
    summary_done(&was);
    s->due = loop_now(s->loop);
    scorer_schedule_first(s);
}

void scorer_wake(struct scorer *s)
{
    bool was_refused = s->status.last.error == ROUND_SECRET || s->status.last.error == ROUND_HTTP_4XX;

    if (s->status.running || s->status.rounds == 0 || !was_refused || s->env->once ||
        s->summary.suspended_since)
        return;
    s->due = loop_now(s->loop);
    scorer_schedule(s, s->due);
}

struct scorer *scorer_free(struct scorer *s)
{
    if (!s)
        return NULL;
    s->round = round_free(s->round);
    loop_timer_clear(s->loop, &s->next);
    loop_timer_clear(s->loop, &s->expire);
    metrics_forget(s->env->metrics, "score_name", s->summary.score_name);
    metrics_forget(s->env->metrics, "ds_score_name", s->summary.score_name);
    s->status.history = history_free(s->status.history);
    s->batch = batch_unref(s->batch);
    s->answer_job = answer_job_free(s->answer_job);
    summary_done(&s->summary);
    free(s);
    return NULL;
}
