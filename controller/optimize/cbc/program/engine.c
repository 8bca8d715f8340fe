#include "controller/optimize/cbc/program/engine.h"

#include "controller/optimize/cbc/mip.h"

#include <coin/Cbc_C_Interface.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static void engine_set(Cbc_Model *c, const char *name, double value)
{
    char text[64];

    snprintf(text, sizeof text, "%.6f", value);
    Cbc_setParameter(c, name, text);
}

static void engine_set_all(Cbc_Model *c, const struct engine_task *t)
{
    Cbc_setLogLevel(c, 0);
    Cbc_setParameter(c, "randomCbcSeed", "1");
    Cbc_setParameter(c, "randomSeed", "1");
    Cbc_setParameter(c, "timeMode", "elapsed");
    engine_set(c, "sec", t->seconds);
    engine_set(c, "cutoff", t->cutoff);
    if (t->has_patterns) {
        Cbc_setParameter(c, "preprocess", "off");
        Cbc_setParameter(c, "heuristicsOnOff", "off");
        Cbc_setParameter(c, "cutsOnOff", "off");
    }
}

int engine_run(struct engine_answer *ret, const struct engine_task *task)
{
    const struct mip *m = task->mip;
    Cbc_Model *c = Cbc_newModel();
    CLEANUP(cleanup_free) double *solution = NULL;
    const double *best;

    Cbc_loadProblem(c, m->n_cols, m->n_rows, m->start, m->row, m->value, NULL, NULL, m->cost, m->row_lower,
                    m->row_upper);
    for (int i = 0; i < m->n_cols; i++) {
        Cbc_setColUpper(c, i, 1);
        Cbc_setInteger(c, i);
    }
    Cbc_setObjSense(c, 1);
    engine_set_all(c, task);
    Cbc_solve(c);
    best = Cbc_bestSolution(c);
    if (best) {
        solution = calloc((size_t)m->n_cols + 1, sizeof *solution);
        if (solution)
            memcpy(solution, best, (size_t)m->n_cols * sizeof *solution);
    }
    *ret = (struct engine_answer){
        .is_complete = Cbc_status(c) == 0 && (Cbc_isProvenOptimal(c) || Cbc_isProvenInfeasible(c)),
        .bound = Cbc_getBestPossibleObjValue(c),
    };
    Cbc_deleteModel(c);
    if (best && !solution)
        return -ENOMEM;
    ret->solution = TAKE_PTR(solution);
    return 0;
}
