/* What a cluster's agent says of its scorers (the ConfigMap dynamic-scoring-status, see agent_report.h), read into few bytes: a fleet has
 * many clusters times many scorers. */
#ifndef DS_HUB_REPORT_H
#define DS_HUB_REPORT_H

#include "exporter/base/buf.h"
#include "exporter/score/state.h"

struct loop;

struct report_cell {
    uint64_t score;     /* report_score() of the score name */
    uint32_t succeeded; /* lastSuccess, Unix time in seconds; 0: never, or not said */
    uint8_t state;      /* enum scorer_state */
    bool placement;     /* the AddOnPlacementScore cannot be written: state may be ok all the same */
    uint16_t error;     /* 1 + place in errors; 0: none kept */
};

enum { REPORT_MAX_ERRORS = 64, REPORT_ERROR_BYTES = 256, REPORT_MAX_CELLS = 4096 };

struct report {
    bool there;     /* an agent has reported */
    bool config_ok; /* configurationInForce */
    bool refused;   /* not so, and trouble says why: scorers are those of an older configuration, or none */
    uint64_t hash;  /* report_hash() of the text: the same text need not be read again */
    char *trouble;  /* configurationProblems or hubError, one line; NULL for none */
    struct report_cell *cells;
    uint32_t n, not_shown; /* not_shown: scorers that the agent has, and that are in no cell */
    uint32_t n_errors;
    char **errors; /* one line each, all different: the first of the cells that fail */
};

/* Reads the text; unknown members are ignored, a cell without a name or with a state of no known word is left out. -EINVAL for what is no such
 * object, -ENOMEM; *ret is untouched then. An empty text is a report that is not there. */
MUST_USE int report_parse(struct report *ret, struct str text);
void report_done(struct report *r);
/* Whether both tell the same of each scorer, but for when its last success was. */
bool report_same(const struct report *a, const struct report *b);
/* NULL when the agent did not name the score. */
const struct report_cell *report_find(const struct report *r, uint64_t score);
/* The cell's error; "" when none was kept. */
const char *report_error(const struct report *r, const struct report_cell *c);
uint64_t report_score(struct str score_name);
uint64_t report_hash(struct str text);
/* Whether the cell counts as scoring (ok, empty) or failing (failing, stale, or its placement score cannot be written); else it waits. */
bool report_cell_scores(const struct report_cell *c);
bool report_cell_fails(const struct report_cell *c);

#endif
