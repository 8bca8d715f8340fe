/* What the agent has said of each scorer. On the loop. */
#pragma once

#include "exporter/score/round_error.h"
#include "exporter/score/sink.h"
#include "exporter/score/summary.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct kube;

struct placement_scorer {
    char *score_name;
    const struct summary *summary; /* in the last configuration that was applied; NULL: none yet */
    bool has_ended;                /* a round has; before, of the following only life_ms is set */
    enum round_error error;        /* of the last round */
    enum round_stage stage;
    char *reason; /* see struct round_outcome */
    size_t source_series, results, invalid;
    struct batch *batch; /* the current scores; NULL: none */
    int64_t life_ms, expires_ms;
    /* As expires_ms is by our clock: loop_clock_ms(), and how far the hub's clock was from ours. */
    int64_t clock_ms, offset_ms;
    int64_t set_by_ms;       /* how far our clock has been set since the scores came */
    int64_t longest_life_ms; /* that scores of any process can have had, by the configuration */
};

/* Those of the last configuration, in its order, and before the first one those of which the agent has said
 * anything. */
struct placement_scorers {
    struct placement_scorer **list;
    size_t n;
};

/* The scorer of that name; NULL: nothing is known of it. */
struct placement_scorer *placement_scorers_find(const struct placement_scorers *all, const char *score_name);
/* The scorer of that name, which may be new. */
struct placement_scorer *placement_scorers_at(struct placement_scorers *all, const char *score_name);
void placement_scorer_note(struct placement_scorer *s, const struct round_outcome *o, const struct kube *hub);
/* If our clock has been set, and the hub's has been read since: expires_ms is by the new one, too, and
 * set_by_ms says what other times of the last success lack. */
void placement_scorer_follow_clock(struct placement_scorer *s, const struct kube *hub);
/* Keeps the scorers of the configuration, in its order, and adds those that are missing; all others are
 * freed. The summaries must live until the next call. */
void placement_scorers_set(struct placement_scorers *all, const struct summaries *list,
                           int64_t stale_intervals);
/* Frees all of them. */
void placement_scorers_done(struct placement_scorers *all);
