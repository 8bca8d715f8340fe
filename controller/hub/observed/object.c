/* Questions about one object, asked by all rooms. Owns nothing; any thread. */
#include "controller/hub/observed/object.h"

bool object_is_deleting(const json_t *object)
{
    return kube_str(object, "metadata", "deletionTimestamp", NULL) != NULL;
}

bool object_has_finalizer(const json_t *object, const char *finalizer)
{
    return kube_list_has(kube_list(object, "metadata", "finalizers", NULL), finalizer);
}

bool object_has_same_spec(const json_t *a, const json_t *b)
{
    return object_generation(a) == object_generation(b) &&
           json_equal(kube_get(a, "spec", NULL), kube_get(b, "spec", NULL));
}

int64_t object_generation(const json_t *object)
{
    int64_t n = 0;

    (void)kube_int(object, &n, "metadata", "generation", NULL);
    return n;
}
