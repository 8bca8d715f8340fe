/* Sinks: where scores go. All functions are called on the loop. None of them blocks: a sink renders, queues
 * or counts, and returns. None reaches back into a scorer: what it needs of a round comes with the outcome.
 *
 * A new sink is a file with a struct sink_ops, a call of agent_add_sink(), and one more in AGENT_MAX_SINKS
 * (exporter/agent/agent.c). */
#pragma once

#include "exporter/base/clock.h"
#include "exporter/metric/batch.h"
#include "exporter/score/round_error.h"
#include "exporter/score/summary.h"

/* What a round has ended with. All of it is the caller's; a sink that keeps the batch takes a reference. */
struct round_outcome {
    enum round_error error; /* ROUND_OK: the round succeeded */
    enum round_stage stage; /* where it failed */
    const char *reason;     /* why it failed, in one line with the stage and the URL; "" if it succeeded */
    size_t source_series;   /* that the sources returned */
    size_t results;         /* in the scoring API's response */
    size_t invalid;         /* of these, dropped as they have no valid score or metric */
    struct batch *batch;    /* the new scores. NULL: the round failed; the last ones stay until withdrawn */
    int64_t life_ms;        /* how long scores are good for, from when their answer was there */
    int64_t expires_ms;     /* when the current scores expire, Unix time; 0: there never were any */
};

struct sink;

/* Each may be NULL. */
struct sink_ops {
    /* A configuration has been applied: these are its scorers, none on a standby. Scores of one that has had
     * no round yet live for stale_intervals of its intervals. The list is valid until the next call. */
    void (*applied)(struct sink *s, const struct summaries *list, int64_t stale_intervals);
    void (*round_ended)(struct sink *s, const char *score_name, const struct round_outcome *o);
    /* The scorer's scores are gone: they have expired, or the scorer was removed, which `applied` tells in
     * the same turn. */
    void (*withdrawn)(struct sink *s, const char *score_name, unix_ms at);
};

struct sink {
    const struct sink_ops *ops;
};
