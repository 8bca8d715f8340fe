/* A scorer at work: its rounds, one after the other, each at its time; what came of them; and its scores, until they are too old.
 * Belongs to the loop. */
#ifndef DS_AGENT_SCORER_H
#define DS_AGENT_SCORER_H

#include "exporter/agent/config.h"
#include "exporter/metric/metrics.h"
#include "exporter/score/round.h"
#include "exporter/score/state.h"

struct scorer;

/* What a scorer needs of its agent. */
struct scorer_env {
    const struct source_env *source;
    struct metrics *metrics;
    const char *cluster_name;
    const struct limits *limits;
    /* How many series this scorer may have, of all that the agent may. */
    size_t (*series_left)(void *arg, const struct scorer *s);
    /* New scores; the scorer keeps its reference. */
    void (*publish)(void *arg, struct scorer *s, struct batch *b);
    /* The scores are gone. */
    void (*withdraw)(void *arg, struct scorer *s);
    /* A round has ended, well or not. */
    void (*ended)(void *arg, struct scorer *s);
    void *arg;
    bool once; /* one round and no other */
};

/* For the status page. Times are Unix time in milliseconds, 0 for never. */
struct scorer_status {
    bool running;            /* a round is under way */
    size_t rounds, failures; /* so far; failures in a row */
    enum round_error error;  /* of the last round */
    enum round_stage stage;  /* where it failed */
    char reason[1024];       /* why, in full; empty when it did not */
    int64_t started_ms, ended_ms, succeeded_ms, next_ms;
    double fetch_s, perform_s;     /* of the last round */
    uint64_t received[2], sent[2]; /* of the last round, by stage */
    size_t source_series, results, invalid, duplicates, cut;
    char first_invalid[200];
    size_t source_warnings;
    char source_warning[512];
};

/* env must outlive the scorer; the summary is copied. Its first round starts at once, with a little jitter. -ENOMEM. */
MUST_USE int scorer_new(struct scorer **ret, const struct scorer_env *env, const struct summary *summary);
/* Takes the metrics of the scorer away too; its scores must have been withdrawn by the caller. */
struct scorer *scorer_free(struct scorer *s);
DEFINE_CLEANUP(struct scorer, scorer_free)
/* Goes on with another summary of the same score name: the round under way is given up and another starts at once. The scores
 * stay until that has ended. -ENOMEM: nothing has changed. */
MUST_USE int scorer_change(struct scorer *s, const struct summary *summary);

/* What made the last round fail may have passed: if it was refused (a token missing or not taken), the next starts at once. */
void scorer_wake(struct scorer *s);

const struct summary *scorer_summary(const struct scorer *s);
const struct scorer_status *scorer_status(const struct scorer *s);
/* The scores exposed now, NULL for none. */
struct batch *scorer_batch(const struct scorer *s);

enum scorer_state scorer_state(const struct scorer *s);

#endif
