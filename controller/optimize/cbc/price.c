#include "controller/optimize/cbc/price.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum {
    PRICE_CAPACITY_MAX =
        2000, /* units of a capacity; finer amounts are rounded, which keeps the bound valid */
    PRICE_TABLE_MAX = 16 << 20, /* entries of a table */
    PRICE_LOOKS = 4,            /* steps from one look to the next */
    PRICE_PATIENCE = 20,        /* steps without progress before they get shorter */
};

struct price *price_free(struct price *x)
{
    if (x) {
        free(x->settings);
        free(x->all_items);
        free(x->stays);
        free(x->workload);
        free(x->limit);
        free(x->site_value);
        free(x->extra);
        free(x->table);
        free(x->back);
        free(x->taken);
        free(x->limit_taken);
        free(x->set);
        free(x->best);
        free(x->best_set);
        free(x->replicas);
        free(x->is_fixed);
        free(x);
    }
    return NULL;
}

/* ---- The items ---- */

static bool price_fits(const struct problem *p, size_t setting, size_t workload)
{
    for (size_t k = 0; k < p->n_resources; k++) {
        if (problem_request(p, workload)[k] > problem_supply(p, setting)[k])
            return false;
    }
    return true;
}

/* The resource that the setting's items would need most of, against what there is. */
static size_t price_scarcest(const struct problem *p, const struct price_setting *s, size_t setting)
{
    double most = -1;
    size_t scarcest = 0;

    for (size_t k = 0; k < p->n_resources; k++) {
        double sum = 0;

        for (size_t i = 0; i < s->n_items; i++)
            sum += (double)problem_request(p, s->items[i].workload)[k];
        sum /= (double)problem_supply(p, setting)[k] + 1;
        if (sum > most) {
            most = sum;
            scarcest = k;
        }
    }
    return scarcest;
}

int64_t price_gcd(int64_t a, int64_t b)
{
    while (b > 0) {
        int64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

static void price_weigh(struct price *x, struct price_setting *s, size_t setting)
{
    const struct problem *p = x->p;
    size_t k = price_scarcest(p, s, setting);
    int64_t supply = problem_supply(p, setting)[k], unit = 0;

    for (size_t i = 0; i < s->n_items; i++)
        unit = price_gcd(problem_request(p, s->items[i].workload)[k], unit);
    if (unit == 0)
        unit = 1;
    if (supply / unit > PRICE_CAPACITY_MAX) {
        unit = supply / PRICE_CAPACITY_MAX;
        x->is_whole = false;
    }
    for (size_t i = 0; i < s->n_items; i++)
        s->items[i].weight = (int)(problem_request(p, s->items[i].workload)[k] / unit);
    s->capacity = (int)(supply / unit);
}

static void price_add_items(struct price *x, struct price_setting *s, size_t setting)
{
    const struct problem *p = x->p;

    for (size_t w = 0; w < p->n_workloads; w++) {
        int16_t score = problem_score(p, setting, w);
        bool stays = price_stays(x, s->site, (uint32_t)w);

        if (score == SCORE_IMPOSSIBLE || !price_fits(p, setting, w))
            continue;
        s->items[s->n_items++] = (struct price_item){
            .workload = (uint32_t)w,
            .gain = score + (stays ? p->move_cost : 0),
        };
    }
}

static int price_add_settings(struct price *x)
{
    const struct problem *p = x->p;
    struct price_item *next = x->all_items;
    size_t table = 1;

    for (uint32_t site = 0; site < p->n_sites; site++) {
        for (uint32_t i = p->first_setting[site]; i < p->first_setting[site + 1]; i++) {
            struct price_setting *s = &x->settings[i];

            s->site = site;
            s->items = next;
            price_add_items(x, s, i);
            price_weigh(x, s, i);
            next += s->n_items;
            table = size_max(table, (s->n_items + 1) * ((size_t)s->capacity + 1));
        }
    }
    if (table > PRICE_TABLE_MAX)
        return -EFBIG;
    x->table = malloc(table * sizeof *x->table);
    x->back = malloc(table * sizeof *x->back);
    return x->table && x->back ? 0 : -ENOMEM;
}

/* Close to what decides: what the workload would gain at its best place. */
static void price_start(struct price *x)
{
    for (size_t i = 0; i < x->p->n_settings; i++) {
        const struct price_setting *s = &x->settings[i];

        for (size_t k = 0; k < s->n_items; k++) {
            double *price = &x->workload[s->items[k].workload];

            *price = fmax(*price, 0.8 * (double)s->items[k].gain);
        }
    }
}

int price_new(struct price **ret, const struct problem *p)
{
    CLEANUP(cleanup_price_free) struct price *x = calloc(1, sizeof *x);
    size_t n_possible = 0, n_pairs = p->n_sites * p->n_workloads;
    int r;

    if (!x)
        return -ENOMEM;
    for (size_t i = 0; i < p->n_settings * p->n_workloads; i++)
        n_possible += p->scores[i] != SCORE_IMPOSSIBLE;
    x->p = p;
    x->is_whole = p->n_resources == 1;
    x->constant = -p->move_cost * (int64_t)p->n_running;
    x->settings = calloc(p->n_settings + 1, sizeof *x->settings);
    x->all_items = calloc(n_possible + 1, sizeof *x->all_items);
    x->workload = calloc(p->n_workloads + 1, sizeof *x->workload);
    x->limit = calloc(p->n_limits + 1, sizeof *x->limit);
    x->site_value = calloc(p->n_sites + 1, sizeof *x->site_value);
    x->extra = calloc(n_pairs + 1, sizeof *x->extra);
    x->taken = calloc(p->n_workloads + 1, sizeof *x->taken);
    x->limit_taken = calloc(p->n_limits + 1, sizeof *x->limit_taken);
    x->set = calloc(p->n_workloads + 1, sizeof *x->set);
    x->best = calloc(p->n_sites + 1, sizeof *x->best);
    x->replicas = calloc(p->n_workloads + 1, sizeof *x->replicas);
    x->is_fixed = calloc(p->n_sites + 1, sizeof *x->is_fixed);
    x->best_set = calloc(n_pairs + 1, sizeof *x->best_set);
    if (p->n_running > 0)
        x->stays = calloc(n_pairs + 1, sizeof *x->stays);
    if (!x->settings || !x->all_items || !x->workload || !x->limit || !x->site_value || !x->extra ||
        !x->taken || !x->limit_taken || !x->set || !x->best || !x->best_set || !x->replicas || !x->is_fixed ||
        (p->n_running > 0 && !x->stays))
        return -ENOMEM;
    for (size_t i = 0; i < p->n_running; i++)
        x->stays[p->running[i].site * p->n_workloads + p->running[i].workload] = true;
    price_release(x);
    r = price_add_settings(x);
    if (r < 0)
        return r;
    price_start(x);
    *ret = TAKE_PTR(x);
    return 0;
}

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

static void price_evaluate(struct price *x)
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

/* ---- Lowering it ---- */

/* All prices in one list: workloads, limits, moves. */
struct price_path {
    double *now, *best, *direction;
    size_t n;
    double best_bound, length;
    int idle; /* steps without progress */
};

static void price_set(struct price *x, const double *prices)
{
    const struct problem *p = x->p;

    memcpy(x->workload, prices, p->n_workloads * sizeof *prices);
    memcpy(x->limit, prices + p->n_workloads, p->n_limits * sizeof *prices);
    x->moves = prices[p->n_workloads + p->n_limits];
}

/* How much of what price i is for is left over; negative: too much is taken. */
static double price_slack(const struct price *x, size_t i)
{
    const struct problem *p = x->p;

    if (i < p->n_workloads)
        return (double)x->replicas[i] - x->taken[i];
    i -= p->n_workloads;
    if (i < p->n_limits)
        return (double)p->limits[i].max - x->limit_taken[i];
    return x->stays_taken - price_must_stay(p);
}

/* Half of the last direction is kept: it damps the zigzag of plain subgradients. */
static void price_step(const struct price *x, struct price_path *path, double objective)
{
    double square = 0, step;

    for (size_t i = 0; i < path->n; i++) {
        double slack = price_slack(x, i);

        if (path->now[i] <= 0 && slack > 0)
            slack = 0;
        path->direction[i] = slack + 0.5 * path->direction[i];
        square += path->direction[i] * path->direction[i];
    }
    step = square > 0 ? path->length * fmax(x->bound - objective, 1) / square : 0;
    for (size_t i = 0; i < path->n; i++)
        path->now[i] = fmax(path->now[i] - step * path->direction[i], 0);
}

/* Keeps the best prices. Without progress, shorter steps start again from there. */
static void price_remember(const struct price *x, struct price_path *path)
{
    path->idle = x->bound < path->best_bound - 0.01 ? 0 : path->idle + 1;
    if (x->bound < path->best_bound) {
        path->best_bound = x->bound;
        memcpy(path->best, path->now, path->n * sizeof *path->now);
    }
    if (path->idle >= PRICE_PATIENCE) {
        path->length *= 0.7;
        path->idle = 0;
        memcpy(path->now, path->best, path->n * sizeof *path->now);
    }
}

int price_lower(struct price *x, int64_t *objective, int steps, mono_ms until, price_look *look, void *arg)
{
    const struct problem *p = x->p;
    size_t n = p->n_workloads + p->n_limits + 1;
    CLEANUP(cleanup_free) double *prices = calloc(3 * n, sizeof *prices);
    struct price_path path = {prices, prices + n, prices + 2 * n, n, INFINITY, 1, 0};
    int r = prices ? 0 : -ENOMEM;

    if (r < 0)
        return r;
    memcpy(path.now, x->workload, p->n_workloads * sizeof *prices);
    memcpy(path.now + p->n_workloads, x->limit, p->n_limits * sizeof *prices);
    path.now[n - 1] = x->moves;
    memcpy(path.best, path.now, n * sizeof *prices);
    for (int i = 0; i < steps && r == 0 && mono_before(clock_system.mono(&clock_system), until); i++) {
        price_set(x, path.now);
        price_evaluate(x);
        price_remember(x, &path);
        if (i % PRICE_LOOKS == 0)
            r = look(arg, objective);
        if (path.best_bound < (double)*objective + 1 - 1e-6 || path.length < 1e-3)
            break;
        /* Without a solution the bound is to fall by a hundredth, again and again. */
        price_step(x, &path,
                   *objective > INT64_MIN ? (double)*objective : x->bound - 0.01 * fabs(x->bound) - 1);
    }
    price_set(x, path.best);
    price_evaluate(x);
    return r;
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
