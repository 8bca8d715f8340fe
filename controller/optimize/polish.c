#include "controller/optimize/polish.h"

#include "controller/optimize/layout.h"
#include "controller/optimize/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { POLISH_MAX = 1 << 22, POLISH_ROUNDS = 20, POLISH_MS = 1000 };

/* Whether a change is for the better: more gain, or as much with lower indices, and no more moves than
 * before or than allowed. */
static bool is_better(const struct placing *x, int64_t sum, int64_t stays, bool is_lower)
{
    if (x->n_stays < stays && (x->sum == sum || x->n_stays < x->l->stays_needed))
        return false;
    return x->sum > sum || (x->sum == sum && (is_lower || x->n_stays > stays));
}

static bool is_there(const struct placing *x, uint32_t workload, uint32_t site)
{
    return placing_slot_on(x, workload, site) != NO_SLOT;
}

/* Adds the workload to the site; one without a setting gets the best for it. */
static bool polish_put(struct placing *x, uint32_t workload, uint32_t site)
{
    const struct problem *p = x->l->p;
    uint32_t best = NO_SETTING;

    if (x->head[site] != NO_SLOT) {
        if (problem_score(p, x->setting[site], workload) == SCORE_IMPOSSIBLE ||
            !placing_fits(x, workload, site))
            return false;
        placing_add(x, workload, site);
        return true;
    }
    for (uint32_t k = p->first_setting[site]; k < p->first_setting[site + 1]; k++) {
        if (problem_score(p, k, workload) == SCORE_IMPOSSIBLE ||
            (best != NO_SETTING && problem_score(p, k, workload) <= problem_score(p, best, workload)))
            continue;
        placing_set(x, site, k);
        if (placing_fits(x, workload, site))
            best = k;
    }
    placing_set(x, site, best);
    if (best != NO_SETTING)
        placing_add(x, workload, site);
    return best != NO_SETTING;
}

/* Puts back on a site what was there with this setting. */
static void put_back(struct placing *x, uint32_t workload, uint32_t site, uint32_t setting)
{
    if (x->head[site] == NO_SLOT)
        placing_set(x, site, setting);
    placing_add(x, workload, site);
}

/* Removes it; a site that is empty then has no setting. */
static void take_away(struct placing *x, uint32_t workload, uint32_t site)
{
    placing_remove(x, placing_slot_on(x, workload, site));
    if (x->head[site] == NO_SLOT)
        placing_set(x, site, NO_SETTING);
}

/* Moves a replica from a site (NO_SITE: one that is not placed) to another. */
static bool shift(struct placing *x, uint32_t workload, uint32_t from, uint32_t to)
{
    uint32_t setting = from == NO_SITE ? NO_SETTING : x->setting[from];
    int64_t sum = x->sum, stays = x->n_stays;

    if (from == to || is_there(x, workload, to))
        return false;
    if (from != NO_SITE)
        take_away(x, workload, from);
    if (polish_put(x, workload, to)) {
        if (is_better(x, sum, stays, from != NO_SITE && to < from))
            return true;
        take_away(x, workload, to);
    }
    if (from != NO_SITE)
        put_back(x, workload, from, setting);
    return false;
}

/* Swaps a on site s and b on site t, a < b. */
static bool swap(struct placing *x, uint32_t a, uint32_t s, uint32_t b, uint32_t t)
{
    const struct problem *p = x->l->p;
    uint32_t of_s = x->setting[s], of_t = x->setting[t];
    int64_t sum = x->sum, stays = x->n_stays;
    bool is_done = false;

    if (s == t || problem_score(p, of_t, a) == SCORE_IMPOSSIBLE ||
        problem_score(p, of_s, b) == SCORE_IMPOSSIBLE || is_there(x, a, t) || is_there(x, b, s))
        return false;
    if (placing_gain(x, a, of_t) + placing_gain(x, b, of_s) + (t < s) <=
        x->gain[placing_slot_on(x, a, s)] + x->gain[placing_slot_on(x, b, t)])
        return false;
    placing_remove(x, placing_slot_on(x, a, s));
    placing_remove(x, placing_slot_on(x, b, t));
    if (placing_fits(x, a, t)) {
        placing_add(x, a, t);
        if (placing_fits(x, b, s)) {
            placing_add(x, b, s);
            is_done = is_better(x, sum, stays, t < s);
            if (!is_done)
                placing_remove(x, placing_slot_on(x, b, s));
        }
        if (!is_done)
            placing_remove(x, placing_slot_on(x, a, t));
    }
    if (!is_done) {
        placing_add(x, a, s);
        placing_add(x, b, t);
    }
    return is_done;
}

/* The i-th site of a workload, in no order; NO_SITE for a replica that is not placed. */
static uint32_t site_of_replica(const struct placing *x, uint32_t workload, uint32_t i)
{
    return i < x->count[workload] ? x->site[x->l->slots_first[workload] + i] : NO_SITE;
}

static bool shift_workload(struct placing *x, uint32_t workload)
{
    uint32_t replicas = (uint32_t)(x->l->slots_first[workload + 1] - x->l->slots_first[workload]);
    bool changed = false;

    for (uint32_t i = 0; i < replicas && i <= x->count[workload]; i++) {
        for (uint32_t to = 0; to < x->l->p->n_sites; to++)
            changed |= shift(x, workload, site_of_replica(x, workload, i), to);
    }
    return changed;
}

static bool swap_workload(struct placing *x, uint32_t a)
{
    bool changed = false;

    for (uint32_t b = a + 1; b < x->l->p->n_workloads; b++) {
        for (uint32_t i = 0; i < x->count[a]; i++) {
            for (uint32_t k = 0; k < x->count[b]; k++)
                changed |= swap(x, a, site_of_replica(x, a, i), b, site_of_replica(x, b, k));
        }
    }
    return changed;
}

/* Whether the site's workloads may be there with this setting, and what they gain. */
static bool gain_with(const struct placing *x, uint32_t site, uint32_t setting, int64_t *gain)
{
    const struct problem *p = x->l->p;
    const int64_t *now = problem_supply(p, x->setting[site]), *then = problem_supply(p, setting);

    *gain = 0;
    for (size_t r = 0; r < p->n_resources; r++) {
        if (now[r] - x->left[site * p->n_resources + r] > then[r])
            return false;
    }
    for (uint32_t i = x->head[site]; i != NO_SLOT; i = x->next[i]) {
        if (problem_score(p, setting, x->workload[i]) == SCORE_IMPOSSIBLE)
            return false;
        *gain += placing_gain(x, x->workload[i], setting);
    }
    return true;
}

/* The first of the best settings for what is on the site. */
static bool reset_site(struct placing *x, uint32_t site)
{
    const struct problem *p = x->l->p;
    uint32_t now = x->setting[site];
    int64_t most, gain;

    if (x->head[site] == NO_SLOT || !gain_with(x, site, now, &most))
        return false;
    for (uint32_t k = p->first_setting[site]; k < p->first_setting[site + 1]; k++) {
        if (!gain_with(x, site, k, &gain) || gain < most || (gain == most && k >= now))
            continue;
        placing_change(x, site, k);
        return true;
    }
    return false;
}

void polish(struct placing *x)
{
    const struct problem *p = x->l->p;
    size_t slots = x->l->slots_first[p->n_workloads];
    bool changed = true;

    if (slots * (slots + p->n_sites) > POLISH_MAX)
        return;
    for (int round = 0; round < POLISH_ROUNDS && changed; round++) {
        changed = false;
        for (uint32_t s = 0; s < p->n_sites; s++)
            changed |= reset_site(x, s);
        for (uint32_t w = 0; w < p->n_workloads && !layout_stopped(x->l); w++) {
            changed |= shift_workload(x, w);
            changed |= swap_workload(x, w);
        }
    }
}

int polish_solution(struct solution *s, const struct problem *p)
{
    struct solution better;
    struct placing x = {0};
    struct layout l;
    int r = layout_init(&l, p, POLISH_MS, NULL);

    if (r == 0)
        r = placing_init(&x, &l);
    for (uint32_t i = 0; r == 0 && i < p->n_sites; i++)
        placing_set(&x, i, s->setting[i]);
    for (size_t i = 0; r == 0 && i < s->n_placed; i++)
        placing_add(&x, s->placed[i].workload, s->placed[i].site);
    if (r == 0) {
        polish(&x);
        r = placing_export(&x, &better);
    }
    if (r == 0) {
        better.bound = s->bound;
        better.deadline_reached = s->deadline_reached;
        better.engine = s->engine;
        solution_done(s);
        *s = better;
    }
    placing_done(&x);
    layout_done(&l);
    return r;
}
