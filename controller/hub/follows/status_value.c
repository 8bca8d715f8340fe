/* Members of a status, and what a merge patch needs besides them. Called as statuses are made. Owns
 * nothing. */
#include "controller/hub/follows/status_value.h"

static void status_null_removed(json_t *value, json_t *before)
{
    const char *name;
    json_t *was;

    json_object_foreach(before, name, was)
    {
        json_t *is = json_object_get(value, name);

        if (is)
            status_null_removed(is, was);
        else if (json_is_object(value) && !json_is_null(was))
            json_object_set_new(value, name, json_null());
    }
}

json_t *status_patch(json_t *status, const json_t *object, const char *const *ours)
{
    for (; *ours; ours++) {
        json_t *is = json_object_get(status, *ours), *was = kube_get(object, "status", *ours, NULL);

        if (is)
            status_null_removed(is, was);
        else if (was)
            json_object_set_new(status, *ours, json_null());
    }
    return status;
}

void status_set_count(json_t *status, const char *key, size_t n)
{
    json_object_set_new(status, key, json_integer((json_int_t)n));
}

void status_set_line(json_t *status, const char *key, const char *text)
{
    json_object_set_new(status, key, kube_line(text, STATUS_LINE_BYTES));
}

void status_set_optional(json_t *status, const char *key, json_t *value)
{
    if (value)
        json_object_set_new(status, key, value);
}
