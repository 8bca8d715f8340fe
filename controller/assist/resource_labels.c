/* Owns nothing; any thread that has the objects. */
#include "controller/assist/resource_labels.h"

#include "controller/assist/api_error.h"
#include "controller/assist/kind.h"
#include "controller/assist/snapshot.h"
#include "controller/kube/json.h"

const char *workload_placement(const json_t *workload)
{
    return kube_str(json_array_get(kube_list(workload, "spec", "placementRefs", NULL), 0), "name", NULL);
}

static const char *policy_cluster_by_name(const struct snapshot *hub, const char *policy)
{
    for (const char *dash = strchr(policy, '-'); dash; dash = strchr(dash + 1, '-'))
        if (snapshot_get(hub, KIND_CLUSTERS, "", dash + 1))
            return dash + 1;
    return NULL;
}

const char *policy_cluster(const struct snapshot *hub, const json_t *policy, const char **ret_by)
{
    const char *label = kube_label(policy, "cluster-name");

    *ret_by = label ? "label" : "name";
    return label ? label : policy_cluster_by_name(hub, kube_name(policy));
}

const char *label_read(const json_t *object, const char *kind, const char *label, struct api_error *error)
{
    const char *s = kube_label(object, label);

    if (s && *s)
        return s;
    (void)api_error_set(error, 422, "%s %s has no label %s", kind, kube_name(object), label);
    return NULL;
}

json_t *labels_that_count(const json_t *object)
{
    json_t *out = json_object(), *value;
    const char *key;

    json_object_foreach(kube_map(object, "metadata", "labels", NULL), key, value)
    {
        if (strcmp(key, "app") == 0 || strcmp(key, "cluster-name") == 0 || strcmp(key, "name") == 0 ||
            str_starts(str_of(key), STR(REQUESTED "-")) || str_starts(str_of(key), STR(SUPPLIED "-")))
            (void)json_object_set(out, key, value);
    }
    return out;
}
