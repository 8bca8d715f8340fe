/* Solves a generated placement problem and prints the answer, and on wish the problem, as JSON.
 *
 *     placement-solve KIND SITES WORKLOADS SETTINGS SEED DEADLINE-MS [problem]
 *
 * KIND: loose, tight, devices, full, apps (test/bench/placement_instances.h), or small, which has all options
 * and sizes of its own. */
#include "controller/optimize/problem.h"
#include "controller/optimize/solution.h"
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

static double cpu_seconds(void)
{
    struct rusage u;

    (void)getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6;
}

/* getrusage() would count what the caller had when it started this program. */
static long peak_kb(void)
{
    char line[256];
    long own = 0;
    FILE *f = fopen("/proc/self/status", "re");

    while (f && fgets(line, sizeof(line), f)) {
        if (strncmp(line, "VmHWM:", 6) == 0)
            own = strtol(line + 6, NULL, 10);
    }
    if (f)
        (void)fclose(f);
    return own;
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

static void print_problem(const struct opt_problem *p)
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
    printf("], \"scores\": [");
    for (size_t i = 0; i < p->n_settings * p->n_workloads; i++)
        printf(p->scores[i] == SCORE_IMPOSSIBLE ? "%snull" : "%s%d", i ? ", " : "", p->scores[i]);
    printf("]}");
}

static void print_answer(const struct opt_problem *p, int64_t deadline_ms)
{
    double cpu = cpu_seconds();
    mono_ms start = clock_system.mono(&clock_system);
    struct solution s;

    solve(&s, p, deadline_ms, NULL);
    printf(", \"objective\": %" PRId64 ", \"bound\": %" PRId64 ", \"infeasible\": %s, \"engine\": \"%s\"",
           s.objective, s.bound, s.is_infeasible ? "true" : "false", s.engine);
    printf(", \"seconds\": %.3f, \"cpu\": %.3f, \"peakKb\": %ld",
           (double)mono_diff(start, clock_system.mono(&clock_system)) / 1000, cpu_seconds() - cpu, peak_kb());
    solution_done(&s);
}

int main(int argc, char **argv)
{
    static const char *const kinds[] = {"loose", "tight", "devices", "full", "apps"};
    struct instance instance = {0};
    struct small_problem small;
    const struct opt_problem *p = &small.problem;
    uint64_t seed;

    if (argc < 7)
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
    print_answer(p, strtoll(argv[6], NULL, 10));
    if (argc > 7)
        print_problem(p);
    printf("}\n");
    instance_done(&instance);
    return 0;
}
