#include "controller/assist/state/assist.h"

#include <errno.h>
#include <string.h>

struct assist {
    struct assist_options o;
    struct world *world;
};

int assist_new(struct assist **ret, const struct assist_options *o)
{
    CLEANUP(cleanup_assist_free) struct assist *a = calloc(1, sizeof(*a));
    const struct world_options world = {.loop = o->loop, .kube = o->kube};

    if (!a || world_new(&a->world, &world) < 0)
        return -ENOMEM;
    a->o = *o;
    *ret = TAKE_PTR(a);
    return 0;
}

struct assist *assist_free(struct assist *a)
{
    if (a)
        a->world = world_free(a->world);
    free(a);
    return NULL;
}

const struct world *assist_world(const struct assist *a)
{
    return a->world;
}

const struct assist_options *assist_options(const struct assist *a)
{
    return &a->o;
}

const struct assist_last_plan *assist_last_plan(const struct assist *a)
{
    (void)a;
    return NULL;
}

bool assist_may_write(const struct assist *a, const char *namespace)
{
    for (size_t i = 0; i < a->o.n_write_namespaces; i++)
        if (strcmp(a->o.write_namespaces[i], namespace) == 0)
            return true;
    return false;
}
