#include "controller/hub/state/writes.h"

void last_status_done(struct last_status *s)
{
    json_decref(s->sent);
    json_decref(s->result);
    *s = (struct last_status){0};
}

bool status_would_change(const json_t *status, const json_t *patch)
{
    const char *name;
    const json_t *wanted;

    json_object_foreach((json_t *)(uintptr_t)patch, name, wanted)
    {
        const json_t *found = json_object_get(status, name);

        if (json_is_null(wanted) ? found != NULL : !found || !json_equal(found, wanted))
            return true;
    }
    return false;
}

/* A copy without these members, and without this one of each condition. */
static json_t *status_without(const json_t *status, const char *const *members, const char *of_condition)
{
    json_t *copy = json_deep_copy(status), *condition;
    size_t i;

    for (const char *const *m = members; *m; m++)
        (void)json_object_del(copy, *m);
    json_array_foreach(kube_list(copy, "conditions", NULL), i, condition)
    {
        (void)json_object_del(condition, of_condition);
    }
    return copy;
}

static bool status_equal_without(const json_t *a, const json_t *b, const char *const *members,
                                 const char *of_condition)
{
    json_auto_t *x = status_without(a, members, of_condition), *y = status_without(b, members, of_condition);

    return x && y && json_equal(x, y);
}

bool status_equal_but_times(const json_t *a, const json_t *b)
{
    static const char *const none[] = {NULL};

    return status_equal_without(a, b, none, "lastTransitionTime");
}

bool status_equal_but_counts(const json_t *a, const json_t *b)
{
    static const char *const counts[] = {"clusters", "failingClusters", "masks", "summariesBytes", NULL};

    return status_equal_without(a, b, counts, "message");
}
