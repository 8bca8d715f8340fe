#include "controller/optimize/cbc/price.h"

#include "controller/optimize/problem.h"

#include <errno.h>
#include <math.h>

enum {
    PRICE_CAPACITY_MAX =
        2000, /* units of a capacity; finer amounts are rounded, which keeps the bound valid */
    PRICE_TABLE_MAX = 16 << 20, /* entries of a table */
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

            *price = fmax(*price, 0.9 * (double)s->items[k].gain);
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
    x->length = 1;
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
