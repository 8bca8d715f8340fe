/* Whose an AddOnPlacementScore is. */
#include "controller/kube/json.h"
#include "controller/placement/placement_internal.h"
#include "controller/placement/slot.h"

#include <stdio.h>

bool placement_is_ours(const struct placement *p, const json_t *object)
{
    const char *owner = kube_annotation(object, PLACEMENT_OWNER);

    return owner ? strcmp(owner, p->o.owner) == 0 : placement_is_labelled(object);
}

bool placement_is_labelled(const json_t *object)
{
    const char *label = kube_label(object, PLACEMENT_LABEL);

    return label && strcmp(label, PLACEMENT_LABEL_VALUE) == 0;
}

bool placement_owner(const json_t *object, char ret[OWNER_BYTES])
{
    static const char *const labels[] = {PLACEMENT_LABEL, "open-cluster-management.io/addon-name",
                                         "app.kubernetes.io/managed-by"};
    const json_t *reference = json_array_get(kube_list(object, "metadata", "ownerReferences", NULL), 0);
    const char *owner = kube_annotation(object, PLACEMENT_OWNER);

    for (size_t i = 0; !owner && i < ARRAY_SIZE(labels); i++)
        owner = kube_label(object, labels[i]);
    if (reference)
        (void)snprintf(ret, OWNER_BYTES, "%s %s", cstr(kube_str(reference, "kind", NULL)),
                       cstr(kube_str(reference, "name", NULL)));
    else
        (void)snprintf(ret, OWNER_BYTES, "%s", cstr(owner));
    return reference || owner;
}
