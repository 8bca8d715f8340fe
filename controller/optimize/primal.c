#include "controller/optimize/primal.h"

#include "controller/optimize/problem.h"

#include <stdlib.h>
#include <string.h>

enum { GUIDED_STEPS = 12, GUIDE_ALL = GUIDED_STEPS * GUIDED_STEPS, PASSES = 3, CONSTRUCT_CANDIDATES = 2048 };

/* More than all scores. */
static const int64_t STAY_FIRST = (int64_t)1 << 46;

void primal_init(struct primal *x, struct layout *l, struct knapsack *k)
{
    size_t slots = l->slots_first[l->p->n_workloads];

    *x = (struct primal){
        .l = l,
        .knapsack = k,
        .grain = layout_zeroed(l, l->p->n_settings + 1, sizeof(*x->grain)),
        .undone = layout_alloc(l, (slots + 1) * 2, sizeof(*x->undone)),
    };
    placing_init(&x->now, l);
    placing_init(&x->best, l);
    prices_init(&x->prices, l);
}

void primal_keep(struct primal *x)
{
    if (x->now.n_stays < x->l->stays_needed)
        return;
    if (!x->has_best || x->now.sum > x->best.sum) {
        placing_copy(&x->best, &x->now);
        x->has_best = true;
    }
}

/* What a place must offer to the workload: more than the least of those that it has, if it has them all. The
 * guide makes it cheaper to lose what another site is likely to take, and dearer to take what others want. */
static void ask_price(struct primal *x, uint32_t workload)
{
    uint32_t slot = placing_least(&x->now, workload);
    int64_t price = slot == NO_SLOT || x->now.gain[slot] < 0 ? 0 : x->now.gain[slot] * PRICE_ONE;

    if (slot != NO_SLOT && x->prices.stay > 0 && placing_stays(&x->now, workload, x->now.site[slot]))
        price += x->prices.stay;
    if (x->guided > 0)
        price = (price * (GUIDE_ALL - x->guided) + x->guide[workload] * x->guided) / GUIDE_ALL;
    prices_set(&x->prices, workload, price);
}

static void take_out(struct primal *x, uint32_t slot)
{
    uint32_t workload = x->now.workload[slot];

    x->undone[x->n_undone++] = (struct problem_pair){workload, x->now.site[slot]};
    placing_remove(&x->now, slot);
    ask_price(x, workload);
}

static void empty_site(struct primal *x, uint32_t site)
{
    while (x->now.head[site] != NO_SLOT)
        take_out(x, x->now.head[site]);
}

static int compare_items(const void *a, const void *b)
{
    const struct knapsack_item *x = a, *y = b;

    if (x->value != y->value)
        return x->value > y->value ? -1 : 1;
    return x->what < y->what ? -1 : x->what > y->what;
}

/* Fills an empty site with the knapsack's items, as far as all rules allow. */
static void fill_site(struct primal *x, uint32_t site, uint32_t setting)
{
    struct knapsack *k = x->knapsack;

    placing_set(&x->now, site, setting);
    qsort(k->held, k->n_held, sizeof(*k->held), compare_items);
    for (size_t i = 0; i < k->n_held; i++) {
        uint32_t workload = k->held[i].what, least = placing_least(&x->now, workload);
        uint32_t from = least == NO_SLOT ? NO_SITE : x->now.site[least];

        if (least != NO_SLOT)
            take_out(x, least);
        if (placing_fits(&x->now, workload, site))
            placing_add(&x->now, workload, site);
        else if (from != NO_SITE) {
            placing_add(&x->now, workload, from);
            x->n_undone--;
        }
        ask_price(x, workload);
    }
    if (x->now.head[site] == NO_SLOT)
        placing_set(&x->now, site, NO_SETTING);
}

/* Takes back what was done to the site and to those it took replicas from. */
static void undo(struct primal *x, uint32_t site, uint32_t setting)
{
    while (x->now.head[site] != NO_SLOT) {
        uint32_t workload = x->now.workload[x->now.head[site]];

        placing_remove(&x->now, x->now.head[site]);
        ask_price(x, workload);
    }
    placing_set(&x->now, site, setting);
    while (x->n_undone > 0) {
        const struct problem_pair *u = &x->undone[--x->n_undone];

        placing_add(&x->now, u->workload, u->site);
        ask_price(x, u->workload);
    }
}

/* The best setting for an emptied site, which the knapsack holds the workloads of, and what they are worth;
 * `preferred` at equal worth. */
static uint32_t choose_setting(struct primal *x, const struct rows *rows, uint32_t site, uint32_t preferred,
                               int64_t *most)
{
    const struct problem *p = x->l->p;
    struct knapsack *k = x->knapsack;
    uint32_t best = NO_SETTING;

    *most = 0;
    for (uint32_t i = p->first_setting[site]; i < p->first_setting[site + 1]; i++) {
        int64_t value = 0;

        k->price = prices_of_cell(x->l, i, x->grain[i]);
        prices_items(&x->prices, rows, i, k);
        k->outside_price = 0;
        k->outside = KNAPSACK_ALL;
        (void)knapsack_solve(k, x->l->cells[i]);
        x->grain[i] = prices_of_grain(x->l, i, k->price);
        for (size_t n = 0; n < k->n; n++)
            value += k->items[n].value;
        if (value > *most || (value == *most && i == preferred && value > 0)) {
            *most = value;
            best = i;
            knapsack_hold(k);
        }
    }
    return best;
}

/* What the emptied site's replicas were worth at what is asked now. */
static int64_t own_worth(const struct primal *x, int64_t gains, int64_t stays)
{
    int64_t worth = gains * PRICE_ONE + stays * x->prices.stay;

    for (size_t i = 0; i < x->n_undone; i++)
        worth -= x->prices.workload[x->undone[i].workload];
    return worth;
}

/* The site chooses what it hosts: the set of workloads and the setting that gain most, given where all others
 * are. Returns whether that changed anything. */
static bool improve_site(struct primal *x, const struct rows *rows, uint32_t site)
{
    uint32_t before = x->now.setting[site], setting;
    int64_t sum = x->now.sum, stays = x->now.n_stays, own, most;

    x->n_undone = 0;
    empty_site(x, site);
    own = own_worth(x, sum - x->now.sum, stays - x->now.n_stays);
    prices_at_site(&x->prices, site, true);
    setting = choose_setting(x, rows, site, before, &most);
    prices_at_site(&x->prices, site, false);
    if (setting != NO_SETTING && most > own) {
        fill_site(x, site, setting);
        if ((x->is_free || x->now.sum > sum) &&
            (x->now.n_stays >= stays || x->now.n_stays >= x->l->stays_needed))
            return true;
    }
    undo(x, site, before);
    return false;
}

/* Every site in turn. `is_free`: what a site prefers counts, even if the sum is lower; otherwise only a
 * higher sum does. */
static bool improve(struct primal *x, const struct rows *rows, bool is_free)
{
    bool changed = false;

    x->is_free = is_free;
    for (uint32_t w = 0; w < x->l->p->n_workloads; w++)
        ask_price(x, w);
    for (uint32_t s = 0; s < x->l->p->n_sites && !layout_stopped(x->l); s++)
        changed |= improve_site(x, rows, s);
    return changed;
}

void primal_start(struct primal *x)
{
    const struct problem *p = x->l->p;

    placing_clear(&x->now);
    for (size_t i = 0; i < p->n_running; i++) {
        uint32_t workload = p->running[i].workload, site = p->running[i].site;
        uint32_t setting = p->first_setting[site];

        if (setting == p->first_setting[site + 1] || problem_score(p, setting, workload) < 0)
            continue;
        if (x->now.setting[site] == NO_SETTING)
            placing_set(&x->now, site, setting);
        if (placing_least(&x->now, workload) == NO_SLOT && placing_fits(&x->now, workload, site))
            placing_add(&x->now, workload, site);
    }
    primal_keep(x);
}

void primal_construct(struct primal *x)
{
    placing_clear(&x->now);
    if (x->l->stays_needed > 0) {
        x->prices.stay = STAY_FIRST;
        for (int pass = 0; pass < PASSES && improve(x, NULL, true); pass++)
            ;
    }
    x->prices.stay = 0;
    primal_keep(x);
    x->prices.stride = (uint32_t)(x->l->p->n_workloads / CONSTRUCT_CANDIDATES + 1);
    for (int pass = 0; pass < PASSES && improve(x, NULL, false); pass++)
        primal_keep(x);
    x->prices.stride = 1;
}

void primal_place(struct primal *x, const struct dual_pick *picks, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t workload = picks[i].workload, setting = picks[i].setting;
        uint32_t site = x->l->site_of[setting], least = placing_least(&x->now, workload);

        if (x->now.setting[site] == NO_SETTING)
            placing_set(&x->now, site, setting);
        if (!placing_fits(&x->now, workload, site))
            continue;
        if (least != NO_SLOT && x->now.gain[least] >= placing_gain(&x->now, workload, setting))
            continue;
        if (least != NO_SLOT)
            placing_remove(&x->now, least);
        placing_add(&x->now, workload, site);
    }
    for (uint32_t s = 0; s < x->l->p->n_sites; s++) {
        if (x->now.head[s] == NO_SLOT)
            placing_set(&x->now, s, NO_SETTING);
    }
}

void primal_repair(struct primal *x, const struct dual *d)
{
    placing_clear(&x->now);
    primal_place(x, d->picks, d->n_picks);
    if (x->now.n_stays < x->l->stays_needed)
        placing_copy(&x->now, &x->best);
    x->prices.stay = d->prices.stay;
    x->guide = d->prices.workload;
    for (int step = 1; step < GUIDED_STEPS; step++) { /* small steps first */
        x->guided = GUIDE_ALL - step * step;
        (void)improve(x, &d->rows, true);
    }
    x->guided = 0;
    x->prices.stay = 0;
    for (int pass = 0; pass < PASSES && improve(x, &d->rows, false); pass++)
        ;
    primal_keep(x);
}

int64_t primal_most_stays(struct primal *x)
{
    const struct layout *l = x->l;
    const struct problem *p = l->p;
    struct knapsack *k = x->knapsack;
    int64_t sum = 0, placed = 0;

    for (size_t s = 0; s < p->n_sites; s++) {
        int64_t most = 0;

        for (uint32_t i = p->first_setting[s]; i < p->first_setting[s + 1]; i++) {
            int64_t value;

            knapsack_clear(k);
            for (size_t n = l->running_first[s]; n < l->running_first[s + 1]; n++) {
                if (problem_score(p, i, l->running[n]) != SCORE_IMPOSSIBLE)
                    k->items[k->n++] =
                        (struct knapsack_item){PRICE_ONE, layout_amount(l, i, l->running[n]), l->running[n]};
            }
            value = knapsack_solve(k, l->cells[i]) / PRICE_ONE;
            most = value > most ? value : most;
        }
        sum += most;
    }
    for (size_t i = 0, n = 0; i < p->n_running; i++) { /* no more than a workload has replicas */
        n = i > 0 && p->running[i].workload == p->running[i - 1].workload ? n + 1 : 1;
        placed += n <= p->replicas[p->running[i].workload];
    }
    return sum < placed ? sum : placed;
}
