/* Owns the memory of all that solving takes, and what is looked up about the problem, computed once. On
 * the thread that solves; nothing in it changes after layout_init() but `stopped`. */
#include "controller/optimize/layout.h"

#include "exporter/base/clock.h"

void *layout_alloc(struct layout *l, size_t n, size_t size)
{
    return memset(arena_alloc(&l->arena, n * size), 0, n * size);
}

static int64_t layout_gcd(int64_t a, int64_t b)
{
    while (b > 0) {
        int64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

/* The resource of which most is requested of what is supplied, and the measure of its requests. */
static void choose_main(struct layout *l)
{
    const struct opt_problem *p = l->p;
    double scarcest = -1;

    for (size_t r = 0; r < p->n_resources; r++) {
        double requested = 0, supplied = 0;

        for (size_t w = 0; w < p->n_workloads; w++)
            requested += (double)problem_request(p, w)[r] * p->replicas[w];
        for (size_t k = 0; k < p->n_settings; k++)
            supplied += (double)problem_supply(p, k)[r];
        if (requested / (supplied + 1) > scarcest) {
            scarcest = requested / (supplied + 1);
            l->main = r;
        }
    }
    l->grain = 0;
    for (size_t w = 0; w < p->n_workloads; w++)
        l->grain = layout_gcd(l->grain, problem_request(p, w)[l->main]);
    if (l->grain == 0)
        l->grain = 1;
}

static void fill_amounts(struct layout *l)
{
    const struct opt_problem *p = l->p;

    for (size_t w = 0; w < p->n_workloads; w++) {
        int64_t grains = layout_request(l, w);

        l->grains[w] = (uint32_t)(grains > KNAPSACK_CELLS ? KNAPSACK_CELLS + 1 : grains);
        l->replicas[w] = (uint32_t)size_min(p->replicas[w], p->n_sites);
        l->slots_first[w + 1] = l->slots_first[w] + l->replicas[w];
    }
    for (size_t s = 0; s < p->n_sites; s++) {
        for (uint32_t k = p->first_setting[s]; k < p->first_setting[s + 1]; k++)
            l->site_of[k] = (uint32_t)s;
    }
}

size_t layout_sum_up(size_t *first, size_t n)
{
    for (size_t i = 0; i < n; i++)
        first[i + 1] += first[i];
    return first[n];
}

static void fill_running(struct layout *l)
{
    const struct opt_problem *p = l->p;
    size_t *first = l->running_first + 1, n;

    for (size_t i = 0; i < p->n_running; i++)
        first[p->running[i].site + 1]++;
    n = layout_sum_up(first, p->n_sites);
    l->running = layout_alloc(l, n + 1, sizeof(*l->running));
    for (size_t i = 0; i < p->n_running; i++)
        l->running[first[p->running[i].site]++] = p->running[i].workload;
}

void layout_init(struct layout *l, const struct opt_problem *p, int64_t deadline_ms,
                 const atomic_bool *cancel)
{
    mono_ms now = clock_system.mono(&clock_system);
    size_t w = p->n_workloads + 1, s = p->n_sites + 1, k = p->n_settings + 1;

    *l = (struct layout){
        .p = p, .cancel = cancel, .end_ms = now.ms + deadline_ms, .arena.chunk_bytes = 64 << 10};
    l->grains = layout_alloc(l, w, sizeof(*l->grains));
    l->replicas = layout_alloc(l, w, sizeof(*l->replicas));
    l->site_of = layout_alloc(l, k, sizeof(*l->site_of));
    l->running_first = layout_alloc(l, s + 1, sizeof(*l->running_first));
    l->slots_first = layout_alloc(l, w, sizeof(*l->slots_first));
    l->stays_needed = p->max_moves < p->n_running ? (int64_t)(p->n_running - p->max_moves) : 0;
    choose_main(l);
    fill_amounts(l);
    fill_running(l);
}

void layout_done(struct layout *l)
{
    arena_done(&l->arena);
}

bool layout_stopped(struct layout *l)
{
    l->stopped = l->stopped || (l->cancel && atomic_load(l->cancel)) ||
                 clock_system.mono(&clock_system).ms >= l->end_ms;
    return l->stopped;
}

uint32_t layout_amount(const struct layout *l, uint32_t setting, uint32_t workload)
{
    int64_t request, supply;

    if (!layout_is_scaled(l, setting))
        return l->grains[workload];
    request = problem_request(l->p, workload)[l->main];
    supply = problem_supply(l->p, setting)[l->main];
    if (request > supply)
        return KNAPSACK_CELLS + 1;
    return (uint32_t)((__int128)request * KNAPSACK_CELLS / supply);
}
