/* What a cluster's agent reports about its scorers.
 *
 * The ConfigMap dynamic-scoring-status, see agent_report.c, read into few bytes, as they are kept for all
 * clusters times all scorers. Pure; any thread. */
#pragma once

#include "exporter/base/str.h"
#include "exporter/score/scorer_state.h"

struct report_cell {
    uint64_t score;     /* report_score() of the score name */
    uint32_t succeeded; /* lastSuccess, Unix time in seconds; 0: never or unknown. See report_carry_over() */
    uint32_t life : 19; /* seconds from then until its scores expire; 0: unknown */
    uint32_t error : 7; /* 1 + index in errors; 0: none kept */
    enum scorer_state state : 3;
    bool placement : 1;  /* the AddOnPlacementScore cannot be written; state may still be ok */
    bool api_failed : 1; /* the scoring API made the last round fail */
    bool no_items : 1;   /* the last round succeeded, and led to no item of the AddOnPlacementScore */
};
_Static_assert(SCORER_STATES <= 1 << 3, "a state fits its bits");

enum { REPORT_MAX_ERRORS = 64, REPORT_ERROR_BYTES = 416, REPORT_MAX_CELLS = 4096 };

struct report {
    bool exists;          /* an agent has reported */
    bool config_ok;       /* configurationInForce */
    bool config_rejected; /* the agent's scorers are those of an older configuration, or none */
    unsigned features;    /* that the agent names (exporter/score/feature.h) */
    /* How far the clock of the hub's API server is ahead of the agent's; 0 below 30 s, and if unknown. The
     * agent's times are corrected by it. */
    int32_t clock_offset_s;
    uint64_t hash; /* hash_bytes() of the text, so that the same text is not read again */
    char *problem; /* configurationProblems or hubError, one line; NULL for none */
    struct report_cell *cells;
    uint32_t n, not_shown; /* not_shown: the agent's scorers without a cell */
    uint32_t n_errors;
    char **errors; /* one line each, all different; of the first cells that have one */
};

/* Unknown members are ignored, as are cells without a name or with an unknown state. An empty text is an
 * absent report. -EINVAL if the text is not a report. */
MUST_USE int report_parse(struct report *ret, struct str text);
void report_done(struct report *r);
/* An agent that has just started knows nothing of the scores that are valid on the hub: a scorer of which it
 * says only that it waits for its first round keeps the times of its last success, which are those of `last`,
 * the report before, if it scored by that. */
void report_carry_over(struct report *to, const struct report *last);
/* Whether both are equal except for the times of the last successes. */
bool report_same(const struct report *a, const struct report *b);
/* NULL when the report does not name the score. */
const struct report_cell *report_find(const struct report *r, uint64_t score);
/* The cell's error; "" when none was kept. */
const char *report_error(const struct report *r, const struct report_cell *c);
uint64_t report_score(struct str score_name);
/* Whether its state is failing or stale, or it has no placement score. */
bool report_cell_fails(const struct report_cell *c);
