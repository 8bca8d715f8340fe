#include "controller/assist/state/assist.h"

#include <errno.h>
#include <string.h>

struct assist {
    struct assist_options o;
};

int assist_new(struct assist **ret, const struct assist_options *o)
{
    struct assist *a = calloc(1, sizeof(*a));

    if (!a)
        return -ENOMEM;
    a->o = *o;
    *ret = a;
    return 0;
}

struct assist *assist_free(struct assist *a)
{
    free(a);
    return NULL;
}

bool assist_may_write(const struct assist *a, const char *namespace)
{
    for (size_t i = 0; i < a->o.n_write_namespaces; i++)
        if (strcmp(a->o.write_namespaces[i], namespace) == 0)
            return true;
    return false;
}
