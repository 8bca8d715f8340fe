#include "controller/optimize/cbc/dive.h"

#include "controller/optimize/problem.h"

#include <errno.h>
#include <string.h>

enum { DIVE_STEPS = 15 }; /* of prices, after each site that is fixed */

static int dive_look(void *arg, int64_t *objective)
{
    (void)arg;
    (void)objective;
    return 0;
}

/* How many workloads of the site's best set others take, too. */
static uint32_t dive_overlap(const struct price *x, uint32_t site)
{
    const bool *set = x->best_set + site * x->p->n_workloads;
    uint32_t n = 0;

    for (size_t w = 0; w < x->p->n_workloads; w++)
        n += set[w] && x->taken[w] > (int)x->replicas[w];
    return n;
}

/* The site that others contend least for; of these the one that gains most. NO_SETTING: all are fixed. */
static uint32_t dive_next(const struct price *x)
{
    uint32_t next = NO_SETTING, least = 0;

    for (uint32_t i = 0; i < x->p->n_sites; i++) {
        uint32_t overlap = x->is_fixed[i] ? 0 : dive_overlap(x, i);

        if (x->is_fixed[i])
            continue;
        if (next == NO_SETTING || overlap < least ||
            (overlap == least && x->site_value[i] > x->site_value[next])) {
            next = i;
            least = overlap;
        }
    }
    return next;
}

static void dive_vary(struct price *x, uint32_t seed)
{
    for (size_t w = 0; w < x->p->n_workloads && seed > 0; w++) {
        seed = seed * 1664525 + 1013904223;
        x->workload[w] *= 0.97 + 0.06 * (seed >> 8) / (1 << 24);
    }
}

int dive(struct price *x, int64_t objective, uint32_t seed, mono_ms until)
{
    size_t n = x->p->n_workloads;
    CLEANUP(cleanup_free) double *prices = malloc((n + 1) * sizeof *prices);
    int r = 0;

    if (!prices)
        return -ENOMEM;
    memcpy(prices, x->workload, n * sizeof *prices);
    dive_vary(x, seed);
    while (r == 0) {
        uint32_t next;

        x->length = 1;
        r = price_lower(x, &objective, DIVE_STEPS, until, dive_look, NULL);
        next = dive_next(x);
        if (next == NO_SETTING)
            break;
        if (r == 0 && (price_bound(x) <= objective || !mono_before(clock_system.mono(&clock_system), until)))
            r = 1;
        price_fix(x, next);
    }
    price_release(x);
    memcpy(x->workload, prices, n * sizeof *prices);
    return r;
}
