/* Owns the lists of a solution, which are its caller's to free. Any thread. */
#include "controller/optimize/solution.h"

#include <stdlib.h>

void solution_done(struct solution *s)
{
    free(s->setting);
    free(s->placed);
    *s = (struct solution){0};
}

size_t solution_count_replicas(const struct solution *s, size_t first, uint32_t workload)
{
    size_t end = first;

    while (end < s->n_placed && s->placed[end].workload == workload)
        end++;
    return end - first;
}

double solution_gap(const struct solution *s)
{
    double size = s->objective < 0 ? -(double)s->objective : (double)s->objective;

    if (s->bound == INT64_MIN)
        return 0;
    return ((double)s->bound - (double)s->objective) / (size > 1 ? size : 1);
}
