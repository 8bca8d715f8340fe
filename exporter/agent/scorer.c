#include "exporter/agent/scorer_internal.h"

#include "exporter/agent/scorer_history.h"
#include "exporter/base/backoff.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"
#include "exporter/base/rand.h"
#include "exporter/metric/series.h"
#include "exporter/score/error.h"
#include "exporter/score/source.h"
#include "exporter/score/summary.h"
#include "exporter/ui/history.h"

#include <errno.h>

enum {
    MIN_ROUND_MS = 10000,    /* a round may take this long even when its interval is shorter */
    MAX_JITTER_MS = 1500,    /* of the first round */
    FIRST_BACKOFF_MS = 5000, /* after the first failure; doubled with each, up to the interval, plus jitter */
    MAX_RETRY_AFTER_MS = 3600000,
};

enum scorer_state scorer_state(const struct scorer *s)
{
    if (s->status.rounds == 0)
        return SCORER_WAITING;
    if (s->status.error != ROUND_OK)
        return s->batch || s->status.succeeded_ms == 0 ? SCORER_FAILING : SCORER_STALE;
    return s->summary.source.type != SOURCE_NONE && s->status.source_series == 0 ? SCORER_EMPTY : SCORER_OK;
}

const struct summary *scorer_summary(const struct scorer *s)
{
    return &s->summary;
}

const struct scorer_status *scorer_status(const struct scorer *s)
{
    return &s->status;
}

struct batch *scorer_batch(const struct scorer *s)
{
    return s->batch;
}

static void scorer_schedule(struct scorer *s, mono_ms at)
{
    s->status.next_ms = loop_wall(s->loop).ms + mono_diff(loop_now(s->loop), at);
    if (loop_timer_set(s->loop, &s->next, at) < 0)
        log_error("scorer stopped: out of memory", L_STR("score_name", s->summary.score_name));
}

/* Moves `due` on by whole intervals, into the future: a round that ran over skips the rounds it covered, and
 * the rhythm stays. */
static mono_ms advance_due(struct scorer *s)
{
    int64_t behind = mono_diff(s->due, loop_now(s->loop));
    int64_t steps = behind / s->summary.interval_ms + 1;

    s->due = mono_add(s->due, steps * s->summary.interval_ms);
    return s->due;
}

static int64_t scorer_backoff_ms(const struct scorer *s)
{
    int64_t ms = backoff_doubled_ms((unsigned)s->status.failures, FIRST_BACKOFF_MS, s->summary.interval_ms);

    return ms + (int64_t)rand_below((uint64_t)ms / 5 * 2 + 1);
}

/* The earlier of the back-off and the schedule. Even the schedule leaves the server the shortest back-off, so
 * that a scorer is not asked more often while it fails than while it is well. */
static mono_ms back_off(struct scorer *s, mono_ms scheduled)
{
    mono_ms now = loop_now(s->loop), soon = mono_add(now, scorer_backoff_ms(s));
    mono_ms soonest = mono_add(now, backoff_doubled_ms(1, FIRST_BACKOFF_MS, s->summary.interval_ms));

    if (mono_before(soon, scheduled)) {
        s->due = mono_add(s->due, -s->summary.interval_ms);
        return soon;
    }
    return mono_before(scheduled, soonest) ? soonest : scheduled;
}

static void schedule_next(struct scorer *s, int64_t retry_after_ms)
{
    mono_ms now = loop_now(s->loop), at = advance_due(s);

    if (s->env->once) {
        s->status.next_ms = 0;
        return;
    }
    if (s->status.error != ROUND_OK && round_error_retry(s->status.error) == ROUND_RETRY_SOON)
        at = back_off(s, at);
    if (retry_after_ms > 0) {
        mono_ms asked =
            mono_add(now, retry_after_ms < MAX_RETRY_AFTER_MS ? retry_after_ms : MAX_RETRY_AFTER_MS);
        if (mono_before(at, asked))
            at = asked;
    }
    scorer_schedule(s, at);
}

static void drop_scores(struct scorer *s)
{
    const char *name = s->summary.score_name;

    if (!s->batch)
        return;
    s->env->withdraw(s->env->arg, s);
    s->batch = batch_unref(s->batch);
    metric_set(s->env->metrics, METRIC_SERIES, LV(name), 0);
    metric_remove(s->env->metrics, METRIC_SCORE_TIMESTAMP, LV(s->env->cluster_name, name));
}

static void scorer_expire(struct scorer *s)
{
    char err[ROUND_REASON_BYTES];

    scorer_error_text(&s->status, err, sizeof(err));
    log_warn("scores expired", L_STR("score_name", s->summary.score_name),
             L_INT("failures", s->status.failures), L_STR("err", err));
    metric_add(s->env->metrics, METRIC_EXPIRED, LV(s->summary.score_name), 1);
    loop_timer_clear(s->loop, &s->expire);
    drop_scores(s);
    s->env->ended(s->env->arg, s);
}

/* With staleAfterIntervals of 1, scores expire while the round that renews them is running. Unless that round
 * fails or hangs, they stay exposed until it ends. */
static void on_expire_timer(struct timer *t)
{
    struct scorer *s = CONTAINER_OF(t, struct scorer, expire);
    mono_ms now = loop_now(s->loop), late = mono_add(s->due, s->summary.interval_ms);
    bool renewing = s->status.failures == 0 && !mono_before(now, s->due) && mono_before(now, late);

    if (!renewing || loop_timer_set(s->loop, t, late) < 0)
        scorer_expire(s);
}

/* Scores live for staleAfterIntervals intervals, or round durations where the round took longer than an
 * interval. */
static void keep_scores(struct scorer *s, struct batch *b)
{
    int64_t took = mono_diff(s->started, loop_now(s->loop));
    int64_t life =
        (took > s->summary.interval_ms ? took : s->summary.interval_ms) * s->env->limits->stale_intervals;
    const char *name = s->summary.score_name;

    s->batch = batch_unref(s->batch);
    s->batch = b;
    metric_set(s->env->metrics, METRIC_SERIES, LV(name), (double)series_count(b->set));
    metric_set(s->env->metrics, METRIC_SCORE_TIMESTAMP, LV(s->env->cluster_name, name),
               (double)b->at.ms / 1000);
    s->expires_at = mono_add(loop_now(s->loop), life);
    s->status.life_ms = life;
    s->status.expires_ms = loop_wall(s->loop).ms + life;
    s->env->publish(s->env->arg, s, b);
    if (loop_timer_set(s->loop, &s->expire, s->expires_at) < 0)
        drop_scores(s); /* better no scores than scores that never expire */
}

static void on_round_done(void *arg, struct round_result *r)
{
    struct scorer *s = arg;
    int64_t retry_after_ms = r->retry_after_ms;

    scorer_record(s, r);
    scorer_history_add(&s->status.history, &s->summary, r, loop_wall(s->loop));
    if (r->error == ROUND_OK)
        keep_scores(s, TAKE_PTR(r->batch));
    else if (s->batch && !mono_before(loop_now(s->loop), s->expires_at))
        scorer_expire(s);
    s->round = round_free(s->round);
    schedule_next(s, retry_after_ms);
    s->env->ended(s->env->arg, s);
}

int64_t scorer_timeout_ms(const struct summary *s, const struct limits *limits)
{
    int64_t ms = s->timeout_ms;

    if (ms == 0)
        ms = s->interval_ms > MIN_ROUND_MS ? s->interval_ms : MIN_ROUND_MS;
    return ms < limits->round_ms ? ms : limits->round_ms;
}

/* At the start, and after a round was cancelled while the worker had the builder. */
static int scorer_make_builder(struct scorer *s)
{
    const struct batch_options o = {
        .cluster_name = s->env->cluster_name,
        .score_name = s->summary.score_name,
        .max_series = (size_t)s->env->limits->series_per_scorer,
    };

    return batch_builder_new(&s->builder, &o);
}

static void on_next_timer(struct timer *t)
{
    struct scorer *s = CONTAINER_OF(t, struct scorer, next);
    struct round_request rq = {
        .env = s->env->source,
        .summary = &s->summary,
        .builder = &s->builder,
        .label_max = (size_t)s->env->limits->label_value_bytes,
        .timeout_ms = scorer_timeout_ms(&s->summary, s->env->limits),
    };
    struct round_result failed = {.error = ROUND_MEMORY, .reason = "out of memory", .retry_after_ms = -1};

    bool ready = s->builder || scorer_make_builder(s) == 0;

    s->started = loop_now(s->loop);
    s->status.started_ms = loop_wall(s->loop).ms;
    s->status.next_ms = 0;
    s->status.running = true;
    if (ready)
        batch_builder_set_max(s->builder, s->env->series_left(s->env->arg, s));
    if (!ready || round_start(&s->round, &rq, on_round_done, s) < 0)
        on_round_done(s, &failed);
}

int scorer_new(struct scorer **ret, const struct scorer_env *env, const struct summary *summary)
{
    CLEANUP(cleanup_scorer_free) struct scorer *s = calloc(1, sizeof(*s));
    uint64_t jitter =
        (uint64_t)(summary->interval_ms / 10 < MAX_JITTER_MS ? summary->interval_ms / 10 : MAX_JITTER_MS);
    int r;

    if (!s)
        return -ENOMEM;
    s->env = env;
    s->loop = env->source->loop;
    s->next.fn = on_next_timer;
    s->expire.fn = on_expire_timer;
    s->summary = summary_copy(summary);
    r = scorer_make_builder(s);
    if (r < 0)
        return r;
    s->due = mono_add(loop_now(s->loop), env->once ? 0 : (int64_t)rand_below(jitter + 1));
    r = loop_timer_set(s->loop, &s->next, s->due);
    if (r < 0)
        return r;
    s->status.next_ms = loop_wall(s->loop).ms + mono_diff(loop_now(s->loop), s->due);
    s->status.life_ms = summary->interval_ms * env->limits->stale_intervals;
    metric_set(env->metrics, METRIC_INTERVAL, LV(summary->score_name), (double)summary->interval_ms / 1000);
    metric_set(env->metrics, METRIC_SERIES, LV(summary->score_name), 0);
    *ret = TAKE_PTR(s);
    return 0;
}

void scorer_change(struct scorer *s, const struct summary *summary)
{
    struct summary copy = summary_copy(summary);

    s->round = round_free(s->round);
    s->status.running = false;
    summary_done(&s->summary);
    s->summary = copy;
    s->due = loop_now(s->loop);
    scorer_schedule(s, s->due);
    metric_set(s->env->metrics, METRIC_INTERVAL, LV(copy.score_name), (double)copy.interval_ms / 1000);
}

void scorer_wake(struct scorer *s)
{
    bool was_refused = s->status.error == ROUND_SECRET || s->status.error == ROUND_HTTP_4XX;

    if (s->status.running || s->status.rounds == 0 || !was_refused || s->env->once)
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
    if (s->summary.score_name) {
        metrics_forget(s->env->metrics, "score_name", s->summary.score_name);
        metrics_forget(s->env->metrics, "ds_score_name", s->summary.score_name);
    }
    s->status.history = history_free(s->status.history);
    s->batch = batch_unref(s->batch);
    s->builder = batch_builder_free(s->builder);
    summary_done(&s->summary);
    free(s);
    return NULL;
}
