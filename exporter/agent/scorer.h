/* A running scorer: schedules its rounds, records their outcome, and holds its scores until they expire. */
#pragma once

#include "exporter/agent/config.h"
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/metric/metrics.h"
#include "exporter/score/round.h"
#include "exporter/score/scorer_state.h"
#include "exporter/score/sink.h"

struct scorer;
struct history;

/* What a scorer needs from its agent. */
struct scorer_env {
    const struct source_env *source;
    struct metrics *metrics;
    const struct limits *limits;
    /* How many series this scorer may have within the limit of all scorers. */
    size_t (*series_left)(void *arg, const struct scorer *s);
    /* A round has ended; the status tells of it already. */
    void (*ended)(void *arg, struct scorer *s, const struct round_outcome *o);
    /* The scores have grown too old, and the scorer has none any more. */
    void (*expired)(void *arg, struct scorer *s);
    void *arg;
    bool once; /* run a single round */
};

/* The last round that ended, and when others run. Times are Unix time in milliseconds, 0 for never. */
struct scorer_status {
    bool running;             /* a round is in progress */
    size_t rounds;            /* ended so far */
    size_t failures;          /* consecutive */
    struct round_result last; /* of the last round; without the batch */
    char url[256];            /* of the request that failed, without credentials; empty if there was none */
    int64_t started_ms, ended_ms, succeeded_ms, next_ms;
    int64_t life_ms;         /* of the last scores, or of the next if there were none yet */
    int64_t expires_ms;      /* of the last scores */
    struct history *history; /* NULL before the first round has ended */
};

/* Written by scorer.c alone; others read the summary, the batch and the status. */
struct scorer {
    const struct scorer_env *env;
    struct loop *loop;
    struct summary summary;
    struct answer_job *answer_job; /* of its responses */
    struct round *round;
    struct batch *batch; /* the exposed scores; NULL for none */
    struct timer next, expire;
    mono_ms due;        /* when the schedule put the last round, whatever started it */
    mono_ms started;    /* the last round */
    mono_ms expires_at; /* of the exposed scores */
    struct scorer_status status;
};

/* Its first round follows within 1.5 s unless it is suspended. env must outlive it; the summary is shared. */
struct scorer *scorer_new(const struct scorer_env *env, const struct summary *summary);
/* Also removes the scorer's metrics. The caller has withdrawn its scores. */
struct scorer *scorer_free(struct scorer *s);
/* Replaces the summary with another of the same score name: cancels a running round and starts a new one,
 * unless it is suspended. The scores stay until that ends, or until they expire. */
void scorer_change(struct scorer *s, const struct summary *summary);
/* Starts the next round now if the last one was refused (missing token, HTTP 4xx): the cause may be gone. */
void scorer_wake(struct scorer *s);

/* How long a round may take on this agent: summary_round_ms() within limits.roundTime. */
int64_t scorer_timeout_ms(const struct summary *s, const struct limits *limits);
/* The number of exposed series. */
size_t scorer_series(const struct scorer *s);
enum scorer_state scorer_state(const struct scorer *s);
/* The names of the columns of the history, for member_history(). */
extern const char *const scorer_history_names[];
/* Why it is stale though its last round succeeded; NULL if it is not. */
const char *scorer_stale_reason(const struct scorer *s);
/* Why the last round failed, with stage and URL, cut in the middle to fit; or scorer_stale_reason(); or
 * empty. */
void scorer_error_text(const struct scorer *s, char *out, size_t size);
