#include "exporter/agent/scorer.h"

#include "exporter/base/rand.h"

#include <errno.h>
#include <stdio.h>

enum {
    MIN_ROUND_MS = 10000,    /* a round may take this long even when its interval is shorter */
    MAX_JITTER_MS = 2000,    /* of the first round */
    FIRST_BACKOFF_MS = 5000, /* after the first failure; doubled with each, up to the interval */
    MAX_RETRY_AFTER_MS = 3600000,
};

struct scorer {
    const struct scorer_env *env;
    struct loop *loop;
    struct summary summary;
    struct batch_builder *builder;
    struct round *round;
    struct batch *batch; /* exposed now */
    struct timer next, expire;
    mono_ms due;     /* of the last round by the schedule, whatever it was started by */
    mono_ms started; /* the last round */
    mono_ms old;     /* when the scores that are exposed are too old */
    struct scorer_status status;
};

enum scorer_state scorer_state(const struct scorer *s)
{
    if (s->status.rounds == 0)
        return SCORER_WAITING;
    if (s->status.error != ROUND_OK)
        return s->batch ? SCORER_FAILING : SCORER_STALE;
    return s->summary.source_type != SOURCE_NONE && s->status.source_series == 0 ? SCORER_EMPTY : SCORER_OK;
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

static void schedule(struct scorer *s, mono_ms at)
{
    s->status.next_ms = loop_wall(s->loop).ms + mono_diff(loop_now(s->loop), at);
    if (loop_timer_set(s->loop, &s->next, at) < 0)
        log_error("scorer stopped: out of memory", L_STR("score_name", s->summary.score_name));
}

/* The first multiple of the interval after `due` that is still to come: a round that took long costs the rounds it
 * covered, and the rhythm stays. */
static mono_ms next_by_schedule(struct scorer *s)
{
    int64_t behind = mono_diff(s->due, loop_now(s->loop));
    int64_t steps = behind / s->summary.interval_ms + 1;

    s->due = mono_add(s->due, steps * s->summary.interval_ms);
    return s->due;
}

static int64_t backoff_ms(const struct scorer *s)
{
    size_t doublings = size_min(s->status.failures - 1, 12);
    int64_t ms = (int64_t)FIRST_BACKOFF_MS << doublings;

    if (ms > s->summary.interval_ms)
        ms = s->summary.interval_ms;
    return ms - ms / 5 + (int64_t)rand_below((uint64_t)ms / 5 * 2 + 1);
}

static void schedule_next(struct scorer *s, int64_t retry_after_ms)
{
    mono_ms now = loop_now(s->loop), at = next_by_schedule(s), soon;

    if (s->env->once) {
        s->status.next_ms = 0;
        return;
    }
    if (s->status.error != ROUND_OK && round_error_retry(s->status.error) == ROUND_RETRY_SOON) {
        soon = mono_add(now, backoff_ms(s));
        if (mono_before(soon, at)) {
            at = soon;
            s->due = mono_add(s->due, -s->summary.interval_ms);
        }
    }
    if (retry_after_ms > 0) {
        mono_ms asked =
            mono_add(now, retry_after_ms < MAX_RETRY_AFTER_MS ? retry_after_ms : MAX_RETRY_AFTER_MS);
        if (mono_before(at, asked))
            at = asked;
    }
    schedule(s, at);
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

static void expire(struct scorer *s)
{
    log_warn("scores withdrawn: too old", L_STR("score_name", s->summary.score_name),
             L_INT("failures", s->status.failures), L_STR("err", s->status.reason));
    metric_add(s->env->metrics, METRIC_EXPIRED, LV(s->summary.score_name), 1);
    loop_timer_clear(s->loop, &s->expire);
    drop_scores(s);
    s->env->ended(s->env->arg, s);
}

/* With a patience of one interval, the scores are too old while the round that renews them is under way. Unless it
 * fails or hangs, nobody shall see them go. */
static void scores_expire(struct timer *t)
{
    struct scorer *s = CONTAINER_OF(t, struct scorer, expire);
    mono_ms now = loop_now(s->loop), late = mono_add(s->due, s->summary.interval_ms);
    bool renewing = s->status.failures == 0 && !mono_before(now, s->due) && mono_before(now, late);

    if (!renewing || loop_timer_set(s->loop, t, late) < 0)
        expire(s);
}

/* Scores live for so many intervals; where a good round took longer than an interval, for so many of those. */
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
    s->old = mono_add(loop_now(s->loop), life);
    s->env->publish(s->env->arg, s, b);
    if (loop_timer_set(s->loop, &s->expire, s->old) < 0)
        drop_scores(s); /* better none than some that would never go */
}

static void count_transfers(const struct scorer *s, const struct round_result *r)
{
    struct metrics *m = s->env->metrics;
    const char *name = s->summary.score_name;

    for (enum round_stage stage = STAGE_SOURCE; stage <= STAGE_SCORING; stage++) {
        metric_add(m, METRIC_RECEIVED_BYTES, LV(name, round_stage_word(stage)), (double)r->received[stage]);
        metric_add(m, METRIC_SENT_BYTES, LV(name, round_stage_word(stage)), (double)r->sent[stage]);
    }
    if (s->summary.source_type != SOURCE_NONE) {
        metric_add(m, METRIC_FETCH_SECONDS, LV(name), r->fetch_s);
        metric_observe(m, METRIC_FETCH_DURATION, LV(name), r->fetch_s);
    }
    if (r->performed) {
        metric_add(m, METRIC_PERFORM_SECONDS, LV(name), r->perform_s);
        metric_observe(m, METRIC_PERFORM_DURATION, LV(name), r->perform_s);
        metric_add(m, METRIC_REQUESTS, LV(name, r->error == ROUND_OK ? "success" : "error"), 1);
    }
}

static void count_limits(const struct scorer *s, const struct round_result *r)
{
    struct metrics *m = s->env->metrics;
    const char *name = s->summary.score_name;

    if (r->error == ROUND_TOO_LARGE)
        metric_add(m, METRIC_LIMITS_HIT, LV("response_bytes", name), 1);
    if (r->error == ROUND_TIMEOUT)
        metric_add(m, METRIC_LIMITS_HIT, LV("round_time", name), 1);
    if (r->error == ROUND_SERIES)
        metric_add(m, METRIC_LIMITS_HIT,
                   LV(s->env->series_left(s->env->arg, s) < (size_t)s->env->limits->series_per_scorer
                          ? "series"
                          : "series_per_scorer",
                      name),
                   1);
    if (r->answer.cut)
        metric_add(m, METRIC_LIMITS_HIT, LV("label_value_bytes", name), 1);
}

static void count_result(const struct scorer *s, const struct round_result *r)
{
    struct metrics *m = s->env->metrics;
    const char *name = s->summary.score_name;
    bool ok = r->error == ROUND_OK;
    bool empty = ok && s->summary.source_type != SOURCE_NONE && r->source_series == 0;

    metric_add(m, METRIC_ROUNDS, LV(ok ? empty ? "empty" : "success" : "failure", name), 1);
    metric_set(m, METRIC_UP, LV(name), ok);
    if (ok)
        metric_set(m, METRIC_LAST_SUCCESS, LV(name), (double)loop_wall(s->loop).ms / 1000);
    else
        metric_add(m, METRIC_ROUND_ERRORS, LV(round_error_word(r->error), name, round_stage_word(r->stage)),
                   1);
    if (r->fetched && s->summary.source_type != SOURCE_NONE)
        metric_set(m, METRIC_SOURCE_SERIES, LV(name), (double)r->source_series);
    metric_add(m, METRIC_SOURCE_WARNINGS, LV(name), (double)r->source_warnings);
    metric_add(m, METRIC_RESULTS_DROPPED, LV("invalid", name), (double)r->answer.invalid);
    metric_add(m, METRIC_RESULTS_DROPPED, LV("duplicate", name), (double)r->duplicates);
    metric_add(m, METRIC_LABELS_CHANGED, LV("cut", name), (double)r->answer.cut);
    metric_add(m, METRIC_LABELS_CHANGED, LV("ill_formed", name), (double)r->answer.mended);
    count_limits(s, r);
}

/* One line when the state changes; repetitions are for the debug level. */
static void log_result(const struct scorer *s, const struct round_result *r)
{
    const struct scorer_status *was = &s->status;
    const char *name = s->summary.score_name;
    bool again = was->rounds && was->error == r->error && (r->error == ROUND_OK || was->stage == r->stage);

    if (r->error != ROUND_OK) {
        LOG_AT(again ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN, "round failed", L_STR("score_name", name),
               L_STR("stage", round_stage_word(r->stage)), L_STR("class", round_error_word(r->error)),
               L_STR("err", r->reason));
    } else {
        LOG_AT(again ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO, was->failures ? "scores again" : "scores",
               L_STR("score_name", name), L_INT("source_series", r->source_series),
               L_INT("series", series_count(r->batch->set)), L_DBL("fetch_s", r->fetch_s),
               L_DBL("perform_s", r->perform_s));
        if (r->answer.invalid && !was->invalid)
            log_warn("results left out", L_STR("score_name", name), L_INT("results", r->answer.invalid),
                     L_STR("first", r->answer.first_invalid));
        if (r->source_warnings && !was->source_warnings)
            log_warn("the source warns", L_STR("score_name", name), L_STR("warning", r->source_warning));
    }
}

static void note_status(struct scorer *s, const struct round_result *r)
{
    struct scorer_status *st = &s->status;

    st->running = false;
    st->rounds++;
    st->error = r->error;
    st->stage = r->stage;
    st->failures = r->error == ROUND_OK ? 0 : st->failures + 1;
    st->ended_ms = loop_wall(s->loop).ms;
    if (r->error == ROUND_OK)
        st->succeeded_ms = st->ended_ms;
    (void)snprintf(st->reason, sizeof(st->reason), "%s", r->error == ROUND_OK ? "" : r->reason);
    st->fetch_s = r->fetch_s;
    st->perform_s = r->perform_s;
    memcpy(st->received, r->received, sizeof(st->received));
    memcpy(st->sent, r->sent, sizeof(st->sent));
    st->source_series = r->source_series;
    st->source_warnings = r->source_warnings;
    (void)snprintf(st->source_warning, sizeof(st->source_warning), "%s", r->source_warning);
    st->results = r->answer.results;
    st->invalid = r->answer.invalid;
    st->cut = r->answer.cut;
    st->duplicates = r->duplicates;
    (void)snprintf(st->first_invalid, sizeof(st->first_invalid), "%s", r->answer.first_invalid);
}

/* A limit is named with its number: the person who reads it will want to know what to change. */
static void name_limit(const struct scorer *s, struct round_result *r)
{
    size_t left = s->env->series_left(s->env->arg, s);

    if (r->error != ROUND_SERIES)
        return;
    if (left < (size_t)s->env->limits->series_per_scorer)
        (void)snprintf(r->reason, sizeof(r->reason),
                       "more series than limits.series (%lld for all scorers) leaves for this one: %zu",
                       (long long)s->env->limits->series, left);
    else
        (void)snprintf(r->reason, sizeof(r->reason), "more series than limits.seriesPerScorer: %lld",
                       (long long)s->env->limits->series_per_scorer);
}

static void round_ended(void *arg, struct round_result *r)
{
    struct scorer *s = arg;
    int64_t retry_after_ms = r->retry_after_ms;

    name_limit(s, r);
    log_result(s, r);
    count_transfers(s, r);
    count_result(s, r);
    note_status(s, r);
    if (r->error == ROUND_OK)
        keep_scores(s, TAKE_PTR(r->batch));
    else if (s->batch && !mono_before(loop_now(s->loop), s->old))
        expire(s);
    s->round = round_free(s->round);
    schedule_next(s, retry_after_ms);
    s->env->ended(s->env->arg, s);
}

static int64_t round_time(const struct scorer *s)
{
    int64_t ms = s->summary.timeout_ms;

    if (ms == 0)
        ms = s->summary.interval_ms > MIN_ROUND_MS ? s->summary.interval_ms : MIN_ROUND_MS;
    return ms < s->env->limits->round_ms ? ms : s->env->limits->round_ms;
}

static void start_round(struct timer *t)
{
    struct scorer *s = CONTAINER_OF(t, struct scorer, next);
    struct round_request rq = {
        .env = s->env->source,
        .summary = &s->summary,
        .builder = s->builder,
        .label_max = (size_t)s->env->limits->label_value_bytes,
        .timeout_ms = round_time(s),
    };
    struct round_result failed = {.error = ROUND_MEMORY, .reason = "out of memory", .retry_after_ms = -1};

    batch_builder_set_max(s->builder, s->env->series_left(s->env->arg, s));
    s->started = loop_now(s->loop);
    s->status.started_ms = loop_wall(s->loop).ms;
    s->status.next_ms = 0;
    s->status.running = true;
    if (round_start(&s->round, &rq, round_ended, s) < 0)
        round_ended(s, &failed);
}

int scorer_new(struct scorer **ret, const struct scorer_env *env, const struct summary *summary)
{
    CLEANUP(cleanup_scorer_free) struct scorer *s = calloc(1, sizeof(*s));
    uint64_t jitter =
        (uint64_t)(summary->interval_ms / 10 < MAX_JITTER_MS ? summary->interval_ms / 10 : MAX_JITTER_MS);
    struct batch_options o = {
        .cluster_name = env->cluster_name,
        .score_name = summary->score_name,
        .max_series = (size_t)env->limits->series_per_scorer,
    };
    int r;

    if (!s)
        return -ENOMEM;
    s->env = env;
    s->loop = env->source->loop;
    s->next.fn = start_round;
    s->expire.fn = scores_expire;
    r = summary_copy(&s->summary, summary);
    if (r == 0)
        r = batch_builder_new(&s->builder, &o);
    if (r < 0)
        return r;
    s->due = mono_add(loop_now(s->loop), env->once ? 0 : (int64_t)rand_below(jitter + 1));
    r = loop_timer_set(s->loop, &s->next, s->due);
    if (r < 0)
        return r;
    s->status.next_ms = loop_wall(s->loop).ms + mono_diff(loop_now(s->loop), s->due);
    metric_set(env->metrics, METRIC_INTERVAL, LV(summary->score_name), (double)summary->interval_ms / 1000);
    metric_set(env->metrics, METRIC_SERIES, LV(summary->score_name), 0);
    *ret = TAKE_PTR(s);
    return 0;
}

int scorer_change(struct scorer *s, const struct summary *summary)
{
    struct summary copy = {0};
    int r = summary_copy(&copy, summary);

    if (r < 0)
        return r;
    s->round = round_free(s->round);
    s->status.running = false;
    summary_done(&s->summary);
    s->summary = copy;
    s->due = loop_now(s->loop);
    schedule(s, s->due);
    metric_set(s->env->metrics, METRIC_INTERVAL, LV(copy.score_name), (double)copy.interval_ms / 1000);
    return 0;
}

void scorer_wake(struct scorer *s)
{
    bool refused = s->status.error == ROUND_SECRET || s->status.error == ROUND_HTTP_4XX;

    if (s->status.running || s->status.rounds == 0 || !refused || s->env->once)
        return;
    s->due = loop_now(s->loop);
    schedule(s, s->due);
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
    s->batch = batch_unref(s->batch);
    s->builder = batch_builder_free(s->builder);
    summary_done(&s->summary);
    free(s);
    return NULL;
}
