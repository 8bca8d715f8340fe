#include "controller/optimize/cbc/price.h"

#include "controller/optimize/problem.h"

#include <math.h>
#include <string.h>

/* ---- The bound for given prices ---- */

static void price_extras(struct price *x)
{
    const struct problem *p = x->p;

    for (size_t i = 0; i < p->n_sites * p->n_workloads; i++)
        x->extra[i] = x->stays && x->stays[i] ? x->moves : 0;
    for (size_t i = 0; i < p->n_limits; i++) {
        const struct problem_limit *l = &p->limits[i];

        for (size_t s = 0; s < l->n_sites && x->limit[i] > 0; s++)
            for (size_t w = 0; w < l->n_workloads; w++)
                x->extra[l->sites[s] * p->n_workloads + l->workloads[w]] -= x->limit[i];
    }
}

static void price_profits(struct price *x, struct price_setting *s)
{
    const double *extra = x->extra + s->site * x->p->n_workloads;

    for (size_t i = 0; i < s->n_items; i++) {
        uint32_t w = s->items[i].workload;

        s->items[i].profit =
            x->replicas[w] > 0 ? (double)s->items[i].gain - x->workload[w] + extra[w] : -INFINITY;
    }
}

/* One row of a dynamic program: `from` with the item, if that gains. */
static void price_row(double *restrict to, const double *restrict from, const struct price_item *item,
                      int capacity)
{
    double profit = item->profit;
    int weight = item->weight < capacity + 1 ? item->weight : capacity + 1;

    memcpy(to, from, (size_t)weight * sizeof *to);
    for (int c = weight; c <= capacity; c++) {
        double with = from[c - weight] + profit;

        to[c] = with > from[c] ? with : from[c];
    }
}

/* Rows of the items that gain; the others are never taken. Returns the last one. */
static const double *price_fill(struct price *x, const struct price_setting *s)
{
    size_t width = (size_t)s->capacity + 1;
    double *row = x->table;

    memset(row, 0, width * sizeof *row);
    for (size_t i = 0; i < s->n_items; i++) {
        if (s->items[i].profit > 0) {
            price_row(row + width, row, &s->items[i], s->capacity);
            row += width;
        }
    }
    return row;
}

double price_knapsack(struct price *x, const struct price_setting *s)
{
    size_t width = (size_t)s->capacity + 1;
    const double *row = price_fill(x, s);
    double value = row[s->capacity];
    int room = s->capacity;

    for (size_t i = s->n_items; i-- > 0;) {
        x->set[i] = false;
        if (s->items[i].profit <= 0)
            continue;
        row -= width;
        if (row[room + (int)width] > row[room]) {
            x->set[i] = true;
            room -= s->items[i].weight;
        }
    }
    return value;
}

static bool price_list_has(const uint32_t *list, size_t n, uint32_t one)
{
    size_t low = 0;

    while (n > 0) {
        size_t half = n / 2;

        if (list[low + half] == one)
            return true;
        if (list[low + half] < one) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return false;
}

bool price_limit_has(const struct problem_limit *l, uint32_t site, uint32_t workload)
{
    return price_list_has(l->sites, l->n_sites, site) &&
           price_list_has(l->workloads, l->n_workloads, workload);
}

/* Counts what the site's best set takes. */
static void price_count(struct price *x, uint32_t site)
{
    const struct problem *p = x->p;
    const bool *set = x->best_set + site * p->n_workloads;

    for (uint32_t w = 0; w < p->n_workloads; w++) {
        if (!set[w])
            continue;
        x->taken[w]++;
        x->stays_taken += price_stays(x, site, w);
        for (size_t l = 0; l < p->n_limits; l++)
            x->limit_taken[l] += price_limit_has(&p->limits[l], site, w);
    }
}

static void price_site(struct price *x, uint32_t site)
{
    const struct problem *p = x->p;
    bool *set = x->best_set + site * p->n_workloads;

    if (x->is_fixed[site])
        return;
    x->site_value[site] = 0;
    x->best[site] = NO_SETTING;
    memset(set, 0, p->n_workloads * sizeof *set);
    for (uint32_t i = p->first_setting[site]; i < p->first_setting[site + 1]; i++) {
        struct price_setting *s = &x->settings[i];

        s->value = -INFINITY;
        if (s->is_closed)
            continue;
        price_profits(x, s);
        s->value = price_fill(x, s)[s->capacity];
        if (s->value > x->site_value[site]) {
            x->site_value[site] = s->value;
            x->best[site] = i;
        }
    }
    if (x->best[site] == NO_SETTING)
        return;
    (void)price_knapsack(x, &x->settings[x->best[site]]);
    for (size_t i = 0; i < x->settings[x->best[site]].n_items; i++)
        set[x->settings[x->best[site]].items[i].workload] = x->set[i];
    price_count(x, site);
}

void price_evaluate(struct price *x)
{
    const struct problem *p = x->p;
    double sum = (double)x->constant + x->fixed - x->moves * price_must_stay(p);

    memset(x->taken, 0, p->n_workloads * sizeof *x->taken);
    memset(x->limit_taken, 0, p->n_limits * sizeof *x->limit_taken);
    x->stays_taken = 0;
    price_extras(x);
    for (size_t i = 0; i < p->n_workloads; i++)
        sum += x->workload[i] * x->replicas[i];
    for (size_t i = 0; i < p->n_limits; i++)
        sum += x->limit[i] * p->limits[i].max;
    for (uint32_t i = 0; i < p->n_sites; i++) {
        price_site(x, i);
        sum += x->site_value[i];
    }
    x->bound = sum;
}

int64_t price_bound(const struct price *x)
{
    return (int64_t)floor(x->bound + 1e-6);
}

/* ---- Fixing ---- */

void price_fix(struct price *x, uint32_t site)
{
    const bool *set = x->best_set + site * x->p->n_workloads;
    const struct price_setting *s = x->best[site] == NO_SETTING ? NULL : &x->settings[x->best[site]];

    for (size_t i = 0; s && i < s->n_items; i++) {
        if (set[s->items[i].workload]) {
            x->fixed += (double)s->items[i].gain;
            x->replicas[s->items[i].workload]--;
        }
    }
    x->is_fixed[site] = true;
    x->site_value[site] = 0;
}

void price_release(struct price *x)
{
    memset(x->is_fixed, 0, x->p->n_sites * sizeof *x->is_fixed);
    memcpy(x->replicas, x->p->replicas, x->p->n_workloads * sizeof *x->replicas);
    x->fixed = 0;
}

void price_set_best(struct price *x, const struct wire_choice *choices, size_t n)
{
    const struct problem *p = x->p;

    memset(x->best_set, 0, p->n_sites * p->n_workloads * sizeof *x->best_set);
    for (size_t i = 0; i < p->n_sites; i++)
        x->best[i] = NO_SETTING;
    for (size_t i = 0; i < n; i++) {
        uint32_t site = x->settings[choices[i].setting].site;

        x->best[site] = choices[i].setting;
        x->best_set[site * p->n_workloads + choices[i].workload] = true;
    }
}

/* ---- Dropping ---- */

const double *price_table(struct price *x, const struct price_setting *s)
{
    size_t width = (size_t)s->capacity + 1;

    memset(x->back + s->n_items * width, 0, width * sizeof *x->back);
    for (size_t i = s->n_items; i-- > 0;)
        price_row(x->back + i * width, x->back + (i + 1) * width, &s->items[i], s->capacity);
    return x->back;
}

/* What the best set with item i gains: the best of items before it and after it in the room that is left. */
static double price_with(const struct price *x, const struct price_setting *s, size_t i)
{
    size_t width = (size_t)s->capacity + 1;
    const double *before = x->table + i * width, *after = x->back + (i + 1) * width;
    int room = s->capacity - s->items[i].weight;
    double best = -INFINITY;

    for (int c = 0; c <= room; c++)
        best = fmax(best, before[c] + after[room - c]);
    return best + s->items[i].profit;
}

static void price_drop_items(struct price *x, struct price_setting *s, double least)
{
    size_t width = (size_t)s->capacity + 1, n = 0;

    memset(x->table, 0, width * sizeof *x->table);
    for (size_t i = 0; i < s->n_items; i++)
        price_row(x->table + (i + 1) * width, x->table + i * width, &s->items[i], s->capacity);
    (void)price_table(x, s);
    for (size_t i = 0; i < s->n_items; i++)
        x->set[i] = price_with(x, s, i) >= least;
    for (size_t i = 0; i < s->n_items; i++) {
        if (x->set[i])
            s->items[n++] = s->items[i];
    }
    s->n_items = n;
}

size_t price_drop(struct price *x, int64_t objective)
{
    size_t left = 0;

    for (size_t i = 0; i < x->p->n_settings; i++) {
        struct price_setting *s = &x->settings[i];
        /* The others' best sets and this one's must reach the objective. */
        double least = x->site_value[s->site] - (x->bound - (double)objective) - 1e-6;

        if (s->value < least)
            s->n_items = 0;
        if (objective > INT64_MIN && s->n_items > 0)
            price_drop_items(x, s, least);
        left += s->n_items;
    }
    return left;
}
