#include "controller/assist/operations/resources.h"

#include "controller/kube/json.h"

#include <stdio.h>

static const char *resources_label(const json_t *object, const char *prefix, const char *suffix)
{
    char key[256];

    (void)snprintf(key, sizeof(key), "%s%s", prefix, suffix);
    return kube_label(object, key);
}

const char *resources_kind(const json_t *object, const char *prefix)
{
    return resources_label(object, prefix, "-kind");
}

json_t *resources_of_labels(const json_t *object, const char *prefix)
{
    const char *kind = resources_kind(object, prefix), *name;
    json_auto_t *amounts = json_object();
    size_t n = strlen(prefix);
    json_t *value;

    if (kind &&
        json_object_set_new(amounts, kind, json_string(cstr(resources_label(object, prefix, "-amount")))) < 0)
        return NULL;
    json_object_foreach(kube_map(object, "metadata", "labels", NULL), name, value)
    {
        if (strncmp(name, prefix, n) == 0 && str_starts(str_of(name + n), STR("-amount.")) &&
            json_object_set(amounts, name + n + strlen("-amount."), value) < 0)
            return NULL;
    }
    return TAKE_PTR(amounts);
}
