/* Owns nothing: a problem is its caller's. Any thread. */
#include "controller/optimize/problem.h"

#include "exporter/base/def.h"

#include <stdlib.h>

int problem_pair_compare(const void *pa, const void *pb)
{
    const struct problem_pair *a = pa, *b = pb;

    return COMPARE(a->workload, b->workload) ?: COMPARE(a->site, b->site);
}

bool problem_has_pair(const struct problem_pair *list, size_t n, struct problem_pair pair)
{
    return n && bsearch(&pair, list, n, sizeof(pair), problem_pair_compare);
}
