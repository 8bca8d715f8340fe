/* Reads and sets the label and the annotations. Owns nothing. Called by the placement on an agent's loop, and
 * by the hub's sweep. */
#include "controller/placement/owner.h"

#include "controller/kube/json.h"
#include "exporter/base/alloc.h"

bool object_is_labelled(const json_t *object)
{
    return strcmp(cstr(kube_label(object, SCORE_LABEL)), SCORE_LABEL_VALUE) == 0;
}

bool object_is_ours(const json_t *object, const char *owner)
{
    const char *is = kube_annotation(object, SCORE_OWNER_ANNOTATION);

    return is ? strcmp(is, owner) == 0 : object_is_labelled(object);
}

bool object_is_of_other_namespace(const json_t *object, const char *owner)
{
    const char *is = kube_annotation(object, SCORE_OWNER_ANNOTATION);
    const char *is_add_on = is ? strrchr(is, '/') : NULL, *add_on = strrchr(owner, '/');

    return is_add_on && add_on && strcmp(is_add_on, add_on) == 0 && strcmp(is, owner) != 0;
}

bool object_is_of_add_on(const json_t *object, const char *add_on)
{
    const char *owner = cstr(kube_annotation(object, SCORE_OWNER_ANNOTATION)), *slash = strrchr(owner, '/');

    return slash && strcmp(slash + 1, add_on) == 0 && object_is_labelled(object);
}

char *object_owner(const json_t *object)
{
    static const char *const labels[] = {SCORE_LABEL, "open-cluster-management.io/addon-name",
                                         "app.kubernetes.io/managed-by"};
    const json_t *reference = json_array_get(kube_list(object, "metadata", "ownerReferences", NULL), 0);
    const char *owner = kube_annotation(object, SCORE_OWNER_ANNOTATION);

    for (size_t i = 0; !owner && i < ARRAY_SIZE(labels); i++)
        owner = kube_label(object, labels[i]);
    if (reference)
        return xasprintf("%s %s", cstr(kube_str(reference, "kind", NULL)),
                         cstr(kube_str(reference, "name", NULL)));
    return owner ? xstrdup(owner) : NULL;
}

void metadata_set_ours(json_t *metadata, const char *owner, const char *score_name)
{
    json_t *annotations;

    kube_set_str(kube_set_object(metadata, "labels"), SCORE_LABEL, SCORE_LABEL_VALUE);
    annotations = kube_set_object(metadata, "annotations");
    kube_set_str(annotations, SCORE_OWNER_ANNOTATION, owner);
    kube_set_str(annotations, SCORE_NAME_ANNOTATION, score_name);
}
