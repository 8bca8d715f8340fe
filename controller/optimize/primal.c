/* Builds answers and improves them site by site, then by shifts and swaps. Owns nothing but pointers into
 * the layout's memory. On the thread that solves. Each answer keeps every rule but max_moves, of which it
 * counts the stays. */
#include "controller/optimize/primal.h"

#include "controller/optimize/problem.h"
#include "controller/optimize/solution.h"
#include "exporter/base/alloc.h"
#include "exporter/base/invariant.h"

enum { NO_SITE = UINT32_MAX, NO_SLOT = UINT32_MAX };

/* Less than any sum of gains, yet small enough that prices of it are exact. */
static const int64_t NO_ANSWER = -(INT64_C(1) << 50);

static size_t placing_slots(const struct placing *x)
{
    return x->l->slots_first[x->l->p->n_workloads];
}

static void placing_init(struct placing *x, struct layout *l)
{
    const struct opt_problem *p = l->p;
    size_t slots = l->slots_first[p->n_workloads] + 1, sites = p->n_sites + 1, workloads = p->n_workloads + 1;
    size_t n_left = sites * p->n_resources;

    *x = (struct placing){.l = l, .n_small = 2 * sites + workloads + 4 * slots, .n_large = n_left + slots};
    x->setting = layout_alloc(l, x->n_small, sizeof(*x->setting));
    x->head = x->setting + sites;
    x->count = x->head + sites;
    x->workload = x->count + workloads;
    x->site = x->workload + slots;
    x->next = x->site + slots;
    x->previous = x->next + slots;
    x->left = layout_alloc(l, x->n_large, sizeof(*x->left));
    x->gain = x->left + n_left;
    for (size_t w = 0; w < p->n_workloads; w++) {
        for (size_t i = l->slots_first[w]; i < l->slots_first[w + 1]; i++)
            x->workload[i] = (uint32_t)w;
    }
    placing_clear(x);
}

void placing_clear(struct placing *x)
{
    const struct opt_problem *p = x->l->p;

    memset(x->setting, 0xff, p->n_sites * sizeof(*x->setting));
    memset(x->head, 0xff, p->n_sites * sizeof(*x->head));
    memset(x->left, 0, p->n_sites * p->n_resources * sizeof(*x->left));
    memset(x->count, 0, p->n_workloads * sizeof(*x->count));
    memset(x->site, 0xff, placing_slots(x) * sizeof(*x->site));
    x->sum = 0;
    x->n_stays = 0;
}

static void placing_copy(struct placing *to, const struct placing *from)
{
    memcpy(to->setting, from->setting, to->n_small * sizeof(*to->setting));
    memcpy(to->left, from->left, to->n_large * sizeof(*to->left));
    to->sum = from->sum;
    to->n_stays = from->n_stays;
}

bool placing_stays(const struct placing *x, uint32_t workload, uint32_t site)
{
    const uint32_t *running = x->l->running; /* ascending for each site */
    size_t low = x->l->running_first[site], end = x->l->running_first[site + 1], high = end;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (running[middle] < workload)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && running[low] == workload;
}

int64_t placing_gain(const struct placing *x, uint32_t workload, uint32_t setting)
{
    int64_t gain = problem_score(x->l->p, setting, workload);

    return gain + (placing_stays(x, workload, x->l->site_of[setting]) ? x->l->p->move_cost : 0);
}

/* The slot of the workload on the site, or NO_SLOT. */
static uint32_t placing_slot_on(const struct placing *x, uint32_t workload, uint32_t site)
{
    uint32_t first = (uint32_t)x->l->slots_first[workload];

    for (uint32_t i = first; i < first + x->count[workload]; i++) {
        if (x->site[i] == site)
            return i;
    }
    return NO_SLOT;
}

static uint32_t placing_least(const struct placing *x, uint32_t workload)
{
    uint32_t first = (uint32_t)x->l->slots_first[workload];
    uint32_t least = first;

    if (first + x->count[workload] < x->l->slots_first[workload + 1])
        return NO_SLOT;
    for (uint32_t i = first; i < first + x->count[workload]; i++) {
        if (x->gain[i] < x->gain[least])
            least = i;
    }
    return least;
}

static bool placing_fits(const struct placing *x, uint32_t workload, uint32_t site)
{
    const struct opt_problem *p = x->l->p;

    for (size_t r = 0; r < p->n_resources; r++) {
        if (problem_request(p, workload)[r] > x->left[site * p->n_resources + r])
            return false;
    }
    return true;
}

static void placing_set(struct placing *x, uint32_t site, uint32_t setting)
{
    size_t n = x->l->p->n_resources;

    x->setting[site] = setting;
    for (size_t r = 0; r < n; r++)
        x->left[site * n + r] = setting == NO_SETTING ? 0 : problem_supply(x->l->p, setting)[r];
}

/* Books one replica, or takes it back. */
static void placing_book(struct placing *x, uint32_t workload, uint32_t site, int sign)
{
    const struct opt_problem *p = x->l->p;

    for (size_t r = 0; r < p->n_resources; r++)
        x->left[site * p->n_resources + r] -= sign * problem_request(p, workload)[r];
    x->n_stays += placing_stays(x, workload, site) ? sign : 0;
}

static void placing_link(struct placing *x, uint32_t slot, uint32_t site)
{
    x->site[slot] = site;
    x->previous[slot] = NO_SLOT;
    x->next[slot] = x->head[site];
    if (x->head[site] != NO_SLOT)
        x->previous[x->head[site]] = slot;
    x->head[site] = slot;
}

static void placing_unlink(struct placing *x, uint32_t slot)
{
    if (x->previous[slot] != NO_SLOT)
        x->next[x->previous[slot]] = x->next[slot];
    else
        x->head[x->site[slot]] = x->next[slot];
    if (x->next[slot] != NO_SLOT)
        x->previous[x->next[slot]] = x->previous[slot];
    x->site[slot] = NO_SITE;
}

static void placing_add(struct placing *x, uint32_t workload, uint32_t site)
{
    uint32_t slot = (uint32_t)x->l->slots_first[workload] + x->count[workload]++;

    placing_link(x, slot, site);
    x->gain[slot] = placing_gain(x, workload, x->setting[site]);
    x->sum += x->gain[slot];
    placing_book(x, workload, site, 1);
}

static void placing_remove(struct placing *x, uint32_t slot)
{
    uint32_t workload = x->workload[slot], site = x->site[slot];
    uint32_t last = (uint32_t)x->l->slots_first[workload] + --x->count[workload];

    x->sum -= x->gain[slot];
    placing_book(x, workload, site, -1);
    placing_unlink(x, slot);
    if (slot != last) {
        uint32_t other = x->site[last];

        placing_unlink(x, last);
        placing_link(x, slot, other);
        x->gain[slot] = x->gain[last];
    }
}

void placing_export(const struct placing *x, struct solution *ret)
{
    const struct opt_problem *p = x->l->p;

    *ret = (struct solution){
        .setting = xmalloc((p->n_sites + 1) * sizeof(*ret->setting)),
        .placed = xmalloc((placing_slots(x) + 1) * sizeof(*ret->placed)),
        .n_moves = p->n_running - (size_t)x->n_stays,
        .objective = x->sum - p->move_cost * (int64_t)p->n_running,
    };
    for (size_t i = 0; i < p->n_sites * p->n_resources; i++)
        invariant(x->left[i] >= 0); /* all that is placed fits */
    for (size_t s = 0; s < p->n_sites; s++)
        ret->setting[s] = x->head[s] == NO_SLOT ? NO_SETTING : x->setting[s];
    for (uint32_t i = 0; i < placing_slots(x); i++) {
        if (x->site[i] != NO_SITE)
            ret->placed[ret->n_placed++] = (struct problem_pair){x->workload[i], x->site[i]};
    }
    qsort(ret->placed, ret->n_placed, sizeof(*ret->placed), problem_pair_compare);
}

/* ---- Small changes ---- */

enum { POLISH_MAX = 1 << 22, POLISH_ROUNDS = 20, NO_WORKLOAD = UINT32_MAX };

/* Whether a change is for the better: more gain, or as much with lower indices, and no more moves than
 * before or than allowed. */
static bool is_better(const struct placing *x, int64_t sum, int64_t stays, bool is_lower)
{
    if (x->n_stays < stays && (x->sum == sum || x->n_stays < x->l->stays_needed))
        return false;
    return x->sum > sum || (x->sum == sum && (is_lower || x->n_stays > stays));
}

/* Adds the workload to the site; one without a setting gets the best for it. */
static bool polish_put(struct placing *x, uint32_t workload, uint32_t site)
{
    const struct opt_problem *p = x->l->p;
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

/* Moves a replica of a from site s (NO_SITE: one that is not placed) to t, and one of b (NO_WORKLOAD: none)
 * from t to s, if that is better. */
static bool trade(struct placing *x, uint32_t a, uint32_t s, uint32_t b, uint32_t t)
{
    uint32_t of_s = s == NO_SITE ? NO_SETTING : x->setting[s], of_t = x->setting[t];
    int64_t sum = x->sum, stays = x->n_stays;

    if (s == t || placing_slot_on(x, a, t) != NO_SLOT ||
        (b != NO_WORKLOAD && placing_slot_on(x, b, s) != NO_SLOT))
        return false;
    if (s != NO_SITE)
        take_away(x, a, s);
    if (b != NO_WORKLOAD)
        take_away(x, b, t);
    if (polish_put(x, a, t)) {
        if (b == NO_WORKLOAD || polish_put(x, b, s)) {
            if (is_better(x, sum, stays, s != NO_SITE && t < s))
                return true;
            if (b != NO_WORKLOAD)
                take_away(x, b, s);
        }
        take_away(x, a, t);
    }
    if (s != NO_SITE)
        put_back(x, a, s, of_s);
    if (b != NO_WORKLOAD)
        put_back(x, b, t, of_t);
    return false;
}

/* Whether swapping the slots of a and b might gain, or gain as much with lower indices. */
static bool may_swap(const struct placing *x, uint32_t a, uint32_t b)
{
    uint32_t of_a = x->setting[x->site[a]], of_b = x->setting[x->site[b]];
    const struct opt_problem *p = x->l->p;

    return problem_score(p, of_b, x->workload[a]) != SCORE_IMPOSSIBLE &&
           problem_score(p, of_a, x->workload[b]) != SCORE_IMPOSSIBLE &&
           placing_gain(x, x->workload[a], of_b) + placing_gain(x, x->workload[b], of_a) +
                   (x->site[b] < x->site[a]) >
               x->gain[a] + x->gain[b];
}

/* All shifts of the workload's replicas, and swaps with workloads of a higher index. */
static bool polish_workload(struct placing *x, uint32_t a)
{
    const struct layout *l = x->l;
    uint32_t first = (uint32_t)l->slots_first[a], end = (uint32_t)l->slots_first[a + 1];
    bool changed = false;

    for (uint32_t i = first; i < end && i <= first + x->count[a]; i++) {
        for (uint32_t to = 0; to < l->p->n_sites; to++)
            changed |= trade(x, a, x->site[i], NO_WORKLOAD, to);
    }
    for (uint32_t k = end; k < placing_slots(x); k++) {
        for (uint32_t i = first; i < first + x->count[a]; i++)
            changed |= x->site[k] != NO_SITE && may_swap(x, i, k) &&
                       trade(x, a, x->site[i], x->workload[k], x->site[k]);
    }
    return changed;
}

void polish(struct placing *x)
{
    const struct opt_problem *p = x->l->p;
    size_t slots = placing_slots(x);
    bool changed = true;

    if (slots * (slots + p->n_sites) > POLISH_MAX)
        return;
    for (unsigned round = 0; round < POLISH_ROUNDS && changed; round++) {
        changed = false;
        for (uint32_t w = 0; w < p->n_workloads && !layout_stopped(x->l); w++)
            changed |= polish_workload(x, w);
    }
}

/* ---- Answers from the bound's picks, and their improvement ---- */

enum { GUIDED_STEPS = 12, GUIDE_ALL = GUIDED_STEPS * GUIDED_STEPS, PASSES = 3, CONSTRUCT_CANDIDATES = 2048 };

/* More than all scores. */
static const int64_t STAY_FIRST = (int64_t)1 << 46;

void primal_init(struct primal *x, struct layout *l, struct knapsack *k)
{
    size_t slots = l->slots_first[l->p->n_workloads];

    *x = (struct primal){
        .l = l,
        .knapsack = k,
        .grain = layout_alloc(l, l->p->n_settings + 1, sizeof(*x->grain)),
        .undone = layout_alloc(l, (slots + 1) * 2, sizeof(*x->undone)),
    };
    placing_init(&x->now, l);
    placing_init(&x->best, l);
    x->best.sum = NO_ANSWER;
    prices_init(&x->prices, l);
}

void primal_keep(struct primal *x)
{
    if (x->now.n_stays >= x->l->stays_needed && x->now.sum > x->best.sum) {
        placing_copy(&x->best, &x->now);
        x->has_best = true;
    }
}

/* What a place must offer to the workload: more than the least of those that it has, if it has them all.
 * The guide makes it cheaper to lose what another site is likely to take, and dearer to take what others
 * want. */
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

DEFINE_ORDER(compare_items, struct knapsack_item, COMPARE(b->value, a->value) ?: COMPARE(a->what, b->what))

/* Fills an empty site with the knapsack's items, as far as all rules allow. */
static void fill_site(struct primal *x, uint32_t site, uint32_t setting)
{
    struct knapsack *k = x->knapsack;

    placing_set(&x->now, site, setting);
    qsort(k->aside, k->n_aside, sizeof(*k->aside), compare_items);
    for (size_t i = 0; i < k->n_aside; i++) {
        uint32_t workload = k->aside[i].what, least = placing_least(&x->now, workload);
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

/* The site chooses what it hosts: the set of workloads and the setting that gain most, given where all
 * others are; at equal gain it keeps its setting. Returns whether that changed anything. */
static bool improve_site(struct primal *x, const struct rows *rows, uint32_t site, bool is_free)
{
    const struct opt_problem *p = x->l->p;
    uint32_t before = x->now.setting[site], best = NO_SETTING;
    int64_t sum = x->now.sum, stays = x->now.n_stays, most = 0, own;

    x->n_undone = 0;
    while (x->now.head[site] != NO_SLOT)
        take_out(x, x->now.head[site]);
    /* What they were worth at what is asked now. */
    own = (sum - x->now.sum) * PRICE_ONE + (stays - x->now.n_stays) * x->prices.stay;
    for (size_t i = 0; i < x->n_undone; i++)
        own -= x->prices.workload[x->undone[i].workload];
    prices_at_site(&x->prices, site, true);
    for (uint32_t i = p->first_setting[site]; i < p->first_setting[site + 1]; i++) {
        int64_t value = prices_solve(&x->prices, rows, false, i, x->grain, x->knapsack);

        if (value > most || (value == most && i == before && value > 0)) {
            most = value;
            best = i;
            knapsack_put_aside(x->knapsack);
        }
    }
    prices_at_site(&x->prices, site, false);
    if (best != NO_SETTING && most > own) {
        fill_site(x, site, best);
        if ((is_free || x->now.sum > sum) &&
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

    for (uint32_t w = 0; w < x->l->p->n_workloads; w++)
        ask_price(x, w);
    for (uint32_t s = 0; s < x->l->p->n_sites && !layout_stopped(x->l); s++)
        changed |= improve_site(x, rows, s, is_free);
    return changed;
}

void primal_start(struct primal *x)
{
    const struct opt_problem *p = x->l->p;

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
