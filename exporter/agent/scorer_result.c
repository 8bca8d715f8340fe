/* What a round leaves behind besides its scores: a log line, metrics, and the scorer's status. */
#include "exporter/agent/scorer_internal.h"

#include "exporter/base/buf.h"
#include "exporter/base/http.h"
#include "exporter/base/log.h"
#include "exporter/base/text.h"
#include "exporter/metric/series.h"
#include "exporter/score/error.h"
#include "exporter/score/source.h"
#include "exporter/score/summary.h"

#include <stdio.h>

/* Whether the limit of all scorers together is what stops this one. */
static bool is_total_limit(const struct scorer *s, size_t *ret_left)
{
    *ret_left = s->env->series_left(s->env->arg, s);
    return *ret_left < (size_t)s->env->limits->series_per_scorer;
}

/* A response that is too large may have exceeded another limit, one of its header, which cannot be set. */
static bool is_response_limit(const struct scorer *s, const struct round_result *r)
{
    char limit[64];

    (void)snprintf(limit, sizeof(limit), "limit of %llu bytes",
                   (unsigned long long)s->env->limits->response_bytes);
    return r->error == ROUND_TOO_LARGE && strstr(r->reason, limit);
}

/* The round does not know which setting its limit came from. */
static void name_limit(const struct scorer *s, struct round_result *r)
{
    static const char where[] = "in the file of --config.file";
    const struct limits *l = s->env->limits;
    size_t left, n = strlen(r->reason);

    if (is_response_limit(s, r))
        (void)snprintf(r->reason + n, sizeof(r->reason) - n, "; raise limits.responseBytes %s", where);
    else if (r->error == ROUND_SERIES && is_total_limit(s, &left))
        (void)snprintf(r->reason, sizeof(r->reason),
                       "too many series: limits.series (%lld for all scorers) leaves %zu for this scorer; "
                       "raise it %s",
                       (long long)l->series, left, where);
    else if (r->error == ROUND_SERIES)
        (void)snprintf(r->reason, sizeof(r->reason),
                       "too many series: limits.seriesPerScorer is %lld; raise it %s",
                       (long long)l->series_per_scorer, where);
}

/* The URL of the request that failed, as log, pages and reports show it. */
static void failed_url(const struct scorer *s, const struct round_result *r, char *out, size_t size)
{
    const char *url = r->stage == STAGE_SCORING ? s->summary.scoring_endpoint
                                                : summary_source(&s->summary, r->source).endpoint;
    BUF_AUTO(plain, 1 << 20);

    *out = '\0';
    if (r->error != ROUND_OK && url && http_url_for_people(str_of(url), &plain) == 0)
        text_line(out, size, buf_str(&plain));
}

static void log_failure(const struct scorer *s, const struct round_result *r)
{
    const struct scorer_status *was = &s->status;
    bool again = was->rounds && was->error == r->error && was->stage == r->stage;
    char url[sizeof(was->url)];

    failed_url(s, r, url, sizeof(url));
    LOG_AT(again ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN, "round failed",
           L_STR("score_name", s->summary.score_name), L_STR("stage", round_stage_word(r->stage)),
           L_STR("class", round_error_word(r->error)), L_STR("url", url), L_STR("err", r->reason));
}

static void log_success(const struct scorer *s, const struct round_result *r)
{
    const struct scorer_status *was = &s->status;
    const char *name = s->summary.score_name;
    bool again = was->rounds && was->error == ROUND_OK;

    LOG_AT(again ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO,
           was->failures ? "scoring recovered"
           : again       ? "round succeeded"
                         : "first round succeeded",
           L_STR("score_name", name), L_INT("source_series", r->source_series),
           L_INT("series", series_count(r->batch->set)), L_DBL("fetch_s", r->fetch_s),
           L_DBL("perform_s", r->perform_s));
    if (r->answer.invalid && !was->invalid)
        log_warn("results dropped", L_STR("score_name", name), L_INT("results", r->answer.invalid),
                 L_STR("first", r->answer.first_invalid));
    if (r->source_warnings && !was->source_warnings)
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
    if (s->summary.source.type != SOURCE_NONE) {
        metric_add(m, METRIC_FETCH_SECONDS, LV(name), r->fetch_s);
        metric_observe(m, METRIC_FETCH_DURATION, LV(name), r->fetch_s);
    }
    if (r->performed) {
        metric_add(m, METRIC_PERFORM_SECONDS, LV(name), r->perform_s);
        metric_observe(m, METRIC_PERFORM_DURATION, LV(name), r->perform_s);
    }
}

static void count_limits(const struct scorer *s, const struct round_result *r)
{
    const char *name = s->summary.score_name, *limit = NULL;
    size_t left;

    if (is_response_limit(s, r))
        limit = "response_bytes";
    else if (r->error == ROUND_TIMEOUT)
        limit = "round_time";
    else if (r->error == ROUND_MEMORY)
        limit = "memory";
    else if (r->error == ROUND_SERIES)
        limit = is_total_limit(s, &left) ? "series" : "series_per_scorer";
    if (limit)
        metric_add(s->env->metrics, METRIC_LIMITS_HIT, LV(limit, name), 1);
    if (r->answer.cut)
        metric_add(s->env->metrics, METRIC_LIMITS_HIT, LV("label_value_bytes", name), 1);
}

static void count_failures(const struct scorer *s, const struct round_result *r)
{
    const struct scorer_status *was = &s->status;
    const char *name = s->summary.score_name;

    if (was->failures)
        metric_set(s->env->metrics, METRIC_FAILURES,
                   LV(round_error_word(was->error), name, round_stage_word(was->stage)), 0);
    if (r->error != ROUND_OK)
        metric_set(s->env->metrics, METRIC_FAILURES,
                   LV(round_error_word(r->error), name, round_stage_word(r->stage)),
                   (double)(was->failures + 1));
}

static void count_result(const struct scorer *s, const struct round_result *r)
{
    struct metrics *m = s->env->metrics;
    const char *name = s->summary.score_name;
    bool ok = r->error == ROUND_OK;
    bool empty = ok && s->summary.source.type != SOURCE_NONE && r->source_series == 0;

    metric_add(m, METRIC_REQUESTS, LV(name, ok ? "success" : "failure"), 1);
    metric_add(m, METRIC_ROUNDS, LV(ok ? empty ? "empty" : "success" : "failure", name), 1);
    metric_set(m, METRIC_UP, LV(name), ok);
    if (ok)
        metric_set(m, METRIC_LAST_SUCCESS, LV(name), (double)loop_wall(s->loop).ms / 1000);
    else
        metric_add(m, METRIC_ROUND_ERRORS, LV(round_error_word(r->error), name, round_stage_word(r->stage)),
                   1);
    if (r->fetched && s->summary.source.type != SOURCE_NONE)
        metric_set(m, METRIC_SOURCE_SERIES, LV(name), (double)r->source_series);
    metric_add(m, METRIC_SOURCE_WARNINGS, LV(name), (double)r->source_warnings);
    metric_add(m, METRIC_RESULTS_DROPPED, LV("invalid", name), (double)r->answer.invalid);
    metric_add(m, METRIC_RESULTS_DROPPED, LV("duplicate", name), (double)r->duplicates);
    if (ok)
        metric_add(m, METRIC_MERGED, LV("series", name), (double)r->batch->merged_by_cut);
    metric_add(m, METRIC_LABELS_CHANGED, LV("cut", name), (double)r->answer.cut);
    metric_add(m, METRIC_LABELS_CHANGED, LV("ill_formed", name), (double)r->answer.mended);
    count_limits(s, r);
    count_failures(s, r);
}

static void update_status(struct scorer *s, const struct round_result *r)
{
    struct scorer_status *st = &s->status;

    st->running = false;
    st->rounds++;
    st->error = r->error;
    st->stage = r->stage;
    st->source = r->source;
    failed_url(s, r, st->url, sizeof(st->url));
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

void scorer_record(struct scorer *s, struct round_result *r)
{
    name_limit(s, r);
    if (r->error == ROUND_OK)
        log_success(s, r);
    else
        log_failure(s, r);
    count_transfers(s, r);
    count_result(s, r);
    update_status(s, r);
}

void scorer_error_text(const struct scorer_status *s, char *out, size_t size)
{
    char whole[sizeof(s->reason) + sizeof(s->url) + 32] = "";

    if (s->rounds && s->error != ROUND_OK)
        (void)snprintf(whole, sizeof(whole), "%s failed%s%s: %s", round_stage_word(s->stage),
                       *s->url ? ", " : "", s->url, s->reason);
    text_line(out, size, str_of(whole));
}
