#include "controller/optimize/problem.h"

void solution_done(struct solution *s)
{
    free(s->setting);
    free(s->placed);
    *s = (struct solution){0};
}
