#include "test/bench/placement_instances.h"

#include "test/bench/gen.h"

#include <stdbool.h>
#include <stdlib.h>

enum { APPLICATIONS = 200 };

static uint64_t instance_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15; /* splitmix64 */

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* 0 .. below - 1. */
static int64_t instance_below(uint64_t *state, int64_t below)
{
    return (int64_t)(instance_random(state) >> 11) % below;
}

/* Gives each further workload the scores, for one setting, of one of the first APPLICATIONS. */
static void repeat_scores(int16_t *scores, size_t n)
{
    for (size_t w = APPLICATIONS; w < n; w++)
        scores[w] = scores[w - APPLICATIONS];
}

static void fill_scores(struct instance *i, enum instance_kind kind, uint64_t *state)
{
    const struct opt_problem *p = &i->problem;

    for (size_t k = 0; k < p->n_settings; k++) {
        int quality = kind == INSTANCE_TIGHT ? 0 : (int)instance_below(state, 61);
        uint64_t part = kind == INSTANCE_TIGHT ? 101 : 41;
        uint64_t bits = 0;

        for (size_t w = 0; w < p->n_workloads; w++, bits >>= 16) {
            if (w % 4 == 0)
                bits = instance_random(state);
            i->scores[k * p->n_workloads + w] = (int16_t)(quality + (int)((bits & 0xffff) * part >> 16));
        }
        if (kind == INSTANCE_APPS)
            repeat_scores(&i->scores[k * p->n_workloads], p->n_workloads);
    }
}

struct instance instance_make(enum instance_kind kind, size_t sites, size_t workloads, size_t settings,
                              uint64_t seed)
{
    struct instance i = {.problem = {.n_workloads = workloads,
                                     .n_sites = sites,
                                     .n_settings = sites * settings,
                                     .n_resources = 1,
                                     .max_moves = SIZE_MAX}};
    bool is_roomy = kind == INSTANCE_LOOSE || kind == INSTANCE_APPS;
    int64_t most = is_roomy || kind == INSTANCE_FULL ? 8 : 3;
    int64_t mean = (int64_t)(workloads * (size_t)(most + 1) / sites / 2) * (is_roomy ? 6 : 5) / 5;

    i.problem.requests = i.requests = malloc(workloads * sizeof(*i.requests));
    i.problem.replicas = i.replicas = malloc(workloads * sizeof(*i.replicas));
    i.problem.supplies = i.supplies = malloc(sites * settings * sizeof(*i.supplies));
    i.problem.first_setting = i.first_setting = malloc((sites + 1) * sizeof(*i.first_setting));
    i.problem.scores = i.scores = malloc(sites * settings * workloads * sizeof(*i.scores));
    must(i.requests && i.replicas && i.supplies && i.first_setting && i.scores);
    for (size_t w = 0; w < workloads; w++) {
        i.requests[w] = 1000 * (1 + instance_below(&seed, most));
        i.replicas[w] = 1;
    }
    for (size_t s = 0; s <= sites; s++)
        i.first_setting[s] = (uint32_t)(s * settings);
    for (size_t k = 0; k < sites * settings; k++)
        i.supplies[k] = 1000 * (mean * 3 / 4 + instance_below(&seed, mean / 2 + 1));
    fill_scores(&i, kind, &seed);
    return i;
}

void instance_done(struct instance *i)
{
    free(i->requests);
    free(i->replicas);
    free(i->supplies);
    free(i->first_setting);
    free(i->scores);
    *i = (struct instance){0};
}
