#include "controller/optimize/solve.h"

#include "controller/optimize/exact.h"
#include "controller/optimize/polish.h"
#include "controller/optimize/problem.h"
#include "controller/optimize/relax.h"
#include "exporter/base/clock.h"
#include "exporter/base/log.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

static bool solve_is_proven(const struct solution *s)
{
    return s->is_infeasible ? s->bound == INT64_MIN : s->bound <= s->objective;
}

static int solve_exactly(struct solution *s, const struct problem *p, const struct solve_options *o)
{
    int r = exact_solve(s, p, o);

    if (r == -EIO) {
        log_debug("dynamic-scoring-cbc gave no answer", L_STR("program", o->cbc));
        return 0;
    }
    return r == 0 && !s->is_infeasible ? polish_solution(s, p) : r;
}

int solve(struct solution *ret, const struct problem *p, const struct solve_options *o)
{
    mono_ms start = clock_system.mono(&clock_system);
    struct solve_options left = *o;
    struct solution s = {0};
    bool use_cbc;
    int r;

    if (problem_check(p))
        return -EINVAL;
    use_cbc = o->cbc && exact_is_for(p);
    if (use_cbc)
        left.deadline_ms /= 5;
    r = relax_solve(&s, p, &left);
    if (r < 0)
        return r;
    left.deadline_ms = o->deadline_ms - mono_diff(start, clock_system.mono(&clock_system));
    if (use_cbc && !solve_is_proven(&s) && left.deadline_ms > 0)
        r = solve_exactly(&s, p, &left);
    if (solve_is_proven(&s))
        s.deadline_reached = false;
    if (r < 0) {
        solution_done(&s);
        return r;
    }
    *ret = s;
    return 0;
}
