#include "controller/assist/operations/decisions.h"

#include "controller/assist/rules/inputs.h"
#include "controller/assist/state/world.h"
#include "controller/kube/json.h"

#include <stdio.h>

enum { KEY_BYTES = 1024 };

static const char *decisions_key(char key[KEY_BYTES], const char *namespace, const char *placement)
{
    (void)snprintf(key, KEY_BYTES, "%s/%s", namespace, placement);
    return key;
}

static int decisions_add(json_t *index, const json_t *decision)
{
    const char *placement = kube_label(decision, PLACEMENT_LABEL);
    char key[KEY_BYTES];
    const json_t *one;
    json_t *list;
    size_t i;

    if (!placement)
        return 0;
    list = json_object_get(index, decisions_key(key, kube_namespace(decision), placement));
    if (!list && json_object_set_new(index, key, list = json_array()) < 0)
        return -1;
    json_array_foreach(kube_list(decision, "status", "decisions", NULL), i, one)
    {
        if (json_array_append_new(list, json_string(cstr(kube_str(one, "clusterName", NULL)))) < 0)
            return -1;
    }
    return 0;
}

json_t *decisions_index(const struct world *w, const char *namespace)
{
    json_auto_t *index = json_object();
    const json_t *decision;
    size_t at = 0;

    while (index && (decision = world_next(w, WORLD_DECISIONS, namespace, &at)))
        if (decisions_add(index, decision) < 0)
            return NULL;
    return TAKE_PTR(index);
}

json_t *decisions_of(const json_t *index, const char *namespace, const char *placement)
{
    char key[KEY_BYTES];

    return json_object_get(index, decisions_key(key, namespace, placement));
}
