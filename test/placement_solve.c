/* Solves a generated placement problem and prints the answer, and on wish the problem, as JSON.
 *
 *     placement-solve KIND SITES WORKLOADS SETTINGS SEED ENGINE DEADLINE-MS [problem]
 *
 * KIND: loose, tight, devices, full (test/bench/placement_instances.h), or small, which has all options and
 * sizes of its own. ENGINE: relaxation, both, none, or cbc, which gets neither start nor bound. */
#include "controller/optimize/exact.h"
#include "controller/optimize/problem.h"
#include "controller/optimize/solve.h"
#include "exporter/base/clock.h"
#include "exporter/base/def.h"
#include "test/bench/placement_instances.h"
#include "test/unit/optimize/small_problem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#ifdef WITH_CBC
#include "controller/optimize/cbc/model.h"
#include "controller/optimize/cbc/price.h"
#include "controller/optimize/cbc/program/engine.h"
#endif

static double cpu_seconds(int who)
{
    struct rusage u;

    (void)getrusage(who, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/* Of this program or of CBC's. getrusage() would count what the caller had when it started this program. */
static long peak_kb(void)
{
    struct rusage child;
    char line[256];
    long own = 0;
    FILE *f = fopen("/proc/self/status", "re");

    while (f && fgets(line, sizeof(line), f)) {
        if (strncmp(line, "VmHWM:", 6) == 0)
            own = strtol(line + 6, NULL, 10);
    }
    if (f)
        (void)fclose(f);
    (void)getrusage(RUSAGE_CHILDREN, &child);
    return own > child.ru_maxrss ? own : child.ru_maxrss;
}

static void print_numbers(const char *name, const int64_t *numbers, size_t n)
{
    printf(", \"%s\": [", name);
    for (size_t i = 0; i < n; i++)
        printf("%s%" PRId64, i ? ", " : "", numbers[i]);
    printf("]");
}

static void print_indices(const char *name, const uint32_t *numbers, size_t n)
{
    printf(", \"%s\": [", name);
    for (size_t i = 0; i < n; i++)
        printf("%s%" PRIu32, i ? ", " : "", numbers[i]);
    printf("]");
}

static void print_problem(const struct problem *p)
{
    printf(", \"problem\": {\"workloads\": %zu, \"sites\": %zu, \"settings\": %zu, \"resources\": %zu",
           p->n_workloads, p->n_sites, p->n_settings, p->n_resources);
    print_numbers("requests", p->requests, p->n_workloads * p->n_resources);
    print_numbers("supplies", p->supplies, p->n_settings * p->n_resources);
    print_indices("replicas", p->replicas, p->n_workloads);
    print_indices("firstSetting", p->first_setting, p->n_sites + 1);
    printf(", \"moveCost\": %" PRId64 ", \"maxMoves\": %" PRId64 ", \"running\": [", p->move_cost,
           p->max_moves > p->n_running ? (int64_t)p->n_running : (int64_t)p->max_moves);
    for (size_t i = 0; i < p->n_running; i++)
        printf("%s[%" PRIu32 ", %" PRIu32 "]", i ? ", " : "", p->running[i].workload, p->running[i].site);
    printf("], \"limits\": [");
    for (size_t i = 0; i < p->n_limits; i++) {
        printf("%s{\"max\": %" PRIu32, i ? ", " : "", p->limits[i].max);
        print_indices("workloads", p->limits[i].workloads, p->limits[i].n_workloads);
        print_indices("sites", p->limits[i].sites, p->limits[i].n_sites);
        printf("}");
    }
    printf("], \"scores\": [");
    for (size_t i = 0; i < p->n_settings * p->n_workloads; i++)
        printf(p->scores[i] == SCORE_IMPOSSIBLE ? "%snull" : "%s%d", i ? ", " : "", p->scores[i]);
    printf("]}");
}

#ifdef WITH_CBC
/* CBC by itself, with the reduced program. */
static int solve_by_cbc(struct solution *ret, const struct problem *p, int64_t deadline_ms)
{
    CLEANUP(cleanup_price_free) struct price *x = NULL;
    CLEANUP(cleanup_model_free) struct model *m = NULL;
    struct engine_task task = {.cutoff = 1e30, .seconds = (double)deadline_ms / 1000};
    struct engine_answer a = {0};
    int r = price_new(&x, p);

    if (r == 0)
        r = model_new(&m, x);
    if (r < 0)
        return r;
    task.mip = &m->mip;
    r = engine_run(&a, &task);
    ret->is_infeasible = !a.solution;
    ret->bound = (int64_t)((double)x->constant - a.bound + 0.01);
    for (int c = 0; c < m->mip.n_cols && a.solution; c++)
        ret->objective -= (int64_t)(a.solution[c] > 0.5 ? m->mip.cost[c] : 0);
    ret->objective += x->constant;
    ret->engine = "CBC";
    free(a.solution);
    return r;
}
#else
static int solve_by_cbc(struct solution *ret, const struct problem *p, int64_t deadline_ms)
{
    (void)ret;
    (void)p;
    (void)deadline_ms;
    return -1;
}
#endif

static int solve_by(const char *engine, struct solution *ret, const struct problem *p, int64_t deadline_ms)
{
    CLEANUP(cleanup_free) char *cbc = NULL;
    struct solve_options o = {.deadline_ms = deadline_ms};

    if (strcmp(engine, "cbc") == 0)
        return solve_by_cbc(ret, p, deadline_ms);
    if (strcmp(engine, "both") == 0 && exact_find(&cbc) < 0)
        return -1;
    o.cbc = cbc;
    return solve(ret, p, &o);
}

static void print_answer(const char *engine, const struct problem *p, int64_t deadline_ms)
{
    double cpu = cpu_seconds(RUSAGE_SELF) + cpu_seconds(RUSAGE_CHILDREN);
    mono_ms start = clock_system.mono(&clock_system);
    struct solution s = {.engine = "none"};
    int r = strcmp(engine, "none") == 0 ? 0 : solve_by(engine, &s, p, deadline_ms);

    if (r < 0) {
        printf(", \"error\": \"no solver\"");
        return;
    }
    printf(", \"objective\": %" PRId64 ", \"bound\": %" PRId64 ", \"infeasible\": %s, \"engine\": \"%s\"",
           s.objective, s.bound, s.is_infeasible ? "true" : "false", s.engine);
    printf(", \"seconds\": %.3f, \"cpu\": %.3f, \"peakKb\": %ld",
           (double)mono_diff(start, clock_system.mono(&clock_system)) / 1000,
           cpu_seconds(RUSAGE_SELF) + cpu_seconds(RUSAGE_CHILDREN) - cpu, peak_kb());
    solution_done(&s);
}

int main(int argc, char **argv)
{
    static const char *const kinds[] = {"loose", "tight", "devices", "full", "apps"};
    struct instance instance = {0};
    struct small_problem small;
    const struct problem *p = &small.problem;
    uint64_t seed;

    if (argc < 8)
        return 2;
    seed = strtoull(argv[5], NULL, 10);
    if (strcmp(argv[1], "small") == 0)
        small_problem_make(&small, seed);
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        if (strcmp(argv[1], kinds[i]) == 0) {
            instance = instance_make((enum instance_kind)i, strtoul(argv[2], NULL, 10),
                                     strtoul(argv[3], NULL, 10), strtoul(argv[4], NULL, 10), seed);
            p = &instance.problem;
        }
    }
    printf("{\"seed\": %" PRIu64, seed);
    print_answer(argv[6], p, strtoll(argv[7], NULL, 10));
    if (argc > 8)
        print_problem(p);
    printf("}\n");
    instance_done(&instance);
    return 0;
}
