/* Takes from the world what a plan is made from, and keeps it until the worker is done with it. */
#ifndef DS_ASSIST_STATE_GATHER_H
#define DS_ASSIST_STATE_GATHER_H

#include "controller/assist/rules/inputs.h"
#include "controller/assist/state/world.h"

struct assist;

struct gathered {
    struct inputs in;
    const struct world_score **scores; /* kept ones; NULL where there is none */
    size_t n_scores;
};

/* -ENOMEM; gathered_done() is needed also then. The request must outlive it. */
MUST_USE int gather(struct gathered *g, const struct assist *a, const struct plan_request *request);
void gathered_done(struct gathered *g);

#endif
