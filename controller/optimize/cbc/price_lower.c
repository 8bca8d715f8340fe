#include "controller/optimize/cbc/price.h"

#include "controller/optimize/problem.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum {
    PRICE_LOOKS = 10,    /* steps from one look to the next */
    PRICE_PATIENCE = 20, /* steps without progress before they get shorter */
};

struct price_path {
    double *now, *best, *direction;
    size_t n;
    double best_bound, length;
    int idle; /* steps without progress */
};

void price_get(const struct price *x, double *prices)
{
    const struct problem *p = x->p;

    memcpy(prices, x->workload, p->n_workloads * sizeof *prices);
    memcpy(prices + p->n_workloads, x->limit, p->n_limits * sizeof *prices);
    prices[p->n_workloads + p->n_limits] = x->moves;
}

void price_set(struct price *x, const double *prices)
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

/* Most of the last direction is kept: it damps the zigzag of plain subgradients. */
static void price_step(const struct price *x, struct price_path *path, double objective)
{
    double square = 0, step;

    for (size_t i = 0; i < path->n; i++) {
        double slack = price_slack(x, i);

        if (path->now[i] <= 0 && slack > 0)
            slack = 0;
        path->direction[i] = slack + 0.9 * path->direction[i];
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

static void price_share(struct price *x)
{
    for (uint32_t i = 0; i < x->p->n_settings; i++)
        x->settings[i].share += 0.05 * ((x->best[x->settings[i].site] == i) - x->settings[i].share);
}

int price_lower(struct price *x, int64_t *objective, int steps, mono_ms until, price_look *look, void *arg)
{
    size_t n = price_count_prices(x);
    CLEANUP(cleanup_free) double *prices = calloc(3 * n, sizeof *prices);
    struct price_path path = {prices, prices + n, prices + 2 * n, n, INFINITY, x->length, 0};
    int r = prices ? 0 : -ENOMEM;

    if (r < 0)
        return r;
    price_get(x, path.now);
    memcpy(path.best, path.now, n * sizeof *prices);
    for (int i = 0; i < steps && r == 0 && mono_before(clock_system.mono(&clock_system), until); i++) {
        price_set(x, path.now);
        price_evaluate(x);
        price_share(x);
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
    x->length = path.length;
    return r;
}
