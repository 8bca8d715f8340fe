/* Counts, rule by rule, what is left of the settings that a workload might use. Owns nothing; on the
 * worker of the request. */
#include "controller/assist/left_out.h"

#include "controller/assist/model.h"
#include "controller/optimize/problem.h"
#include "controller/optimize/solution.h"

#include <stdio.h>
#include <stdlib.h>

struct no_place {
    const struct fleet_model *m;
    const struct solution *s;
    const struct problem_pair *placed; /* the workload's replicas */
    size_t n_placed;
};

/* How many settings are left of those that a workload might use, as one rule after the other is kept. */
struct places {
    size_t supplied, scored, positive, fitting, gaining, free;
};

static struct places finding_count(const struct no_place *f, uint32_t w)
{
    const struct opt_problem *p = &f->m->problem;
    struct places n = {0};

    for (size_t setting = 0; setting < p->n_settings; setting++) {
        int16_t score = problem_score(p, setting, w);
        uint32_t site = f->m->settings[setting].site;

        n.supplied += f->m->sites[site].kind_id == f->m->workloads[w].kind_id;
        if (score == SCORE_IMPOSSIBLE)
            continue;
        n.scored++;
        n.positive += score > 0;
        if (!problem_fits(p, setting, w))
            continue;
        n.fitting++;
        if (score <= 0)
            continue;
        n.gaining++;
        n.free += !problem_has_pair(f->placed, f->n_placed, (struct problem_pair){w, site});
    }
    return n;
}

/* The reason, and the sentence that explains it. */
static const char *finding_explain(const struct no_place *f, uint32_t w, char message[256])
{
    const struct model_workload *workload = &f->m->workloads[w];
    const struct opt_problem *p = &f->m->problem;
    struct places n = finding_count(f, w);
    const struct {
        bool holds;
        const char *reason, *message;
    } rows[] = {
        {!n.supplied, "KindDiffers", "No policy of the request supplies %.60s."},
        {!n.scored && workload->lost_to_rules, "Pinned",
         "pin and forbid leave no cluster that has a score for it."},
        {!n.scored, "NoScore", "No policy that supplies %.60s has a score for app %.60s."},
        {f->s->is_infeasible, "MoveBudget", "No answer within moves.max was found."},
        {!n.positive, "NegativeScore", "No score for it is above 0."},
        {!n.fitting, "NoCapacity", "No policy with a score for it supplies as much as one replica requests."},
        {!n.gaining, "NegativeScore", "No score is above 0 where it fits."},
        {!n.free, "NoCapacity",
         "A cluster holds one replica, and no further cluster has room and a score above 0."},
        {p->max_moves != SIZE_MAX && f->s->n_moves >= p->max_moves, "MoveBudget",
         "There is no room without moving others, and moves.max allows no further move."},
        {true, "NoCapacity", "Where it fits, the room is taken by workloads that gain more."},
    };
    size_t i = 0;

    while (!rows[i].holds)
        i++;
    (void)snprintf(message, 256, rows[i].message, workload->kind, workload->app);
    return rows[i].reason;
}

void left_out_list(json_t *list, const struct fleet_model *m, const struct solution *s)
{
    struct no_place f = {.m = m, .s = s, .placed = s->placed};

    for (uint32_t w = 0; w < m->problem.n_workloads; w++, f.placed += f.n_placed) {
        const char *reason;
        char message[256];

        f.n_placed = solution_count_replicas(s, (size_t)(f.placed - s->placed), w);
        if (f.n_placed == m->problem.replicas[w])
            continue;
        reason = finding_explain(&f, w, message);
        (void)json_array_append_new(list, json_pack("{s:s, s:i, s:s, s:s}", "workload", m->workloads[w].name,
                                                    "replicas", (int)(m->problem.replicas[w] - f.n_placed),
                                                    "reason", reason, "message", message));
    }
}
