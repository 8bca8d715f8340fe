#include "controller/assist/operations/policy_clusters.h"

#include "controller/assist/operations/decisions.h"
#include "controller/assist/rules/inputs.h"
#include "controller/assist/state/world.h"
#include "controller/kube/json.h"

static const char *policy_cluster_by_name(const struct world *w, const char *policy)
{
    for (const char *dash = strchr(policy, '-'); dash; dash = strchr(dash + 1, '-'))
        if (world_get(w, WORLD_CLUSTERS, "", dash + 1))
            return dash + 1;
    return NULL;
}

static bool policy_is_subject(const json_t *binding, const char *policy)
{
    const json_t *subject;
    size_t i;

    json_array_foreach(kube_list(binding, "subjects", NULL), i, subject)
    {
        if (strcmp(cstr(kube_str(subject, "kind", NULL)), "Policy") == 0 &&
            strcmp(cstr(kube_str(subject, "name", NULL)), policy) == 0)
            return true;
    }
    return false;
}

/* Those that the optimiser makes say which policy is in force, not for which clusters it may be chosen. */
static json_t *policy_clusters_by_bindings(const struct world *w, const json_t *policy,
                                           const json_t *decisions)
{
    json_auto_t *clusters = json_array();
    const json_t *binding;
    size_t at = 0;

    while (clusters && (binding = world_next(w, WORLD_BINDINGS, kube_namespace(policy), &at))) {
        const char *placement = kube_str(binding, "placementRef", "name", NULL);
        json_t *selected = placement ? decisions_of(decisions, kube_namespace(policy), placement) : NULL;

        if (selected && !kube_label(binding, GENERATED_LABEL) &&
            policy_is_subject(binding, kube_name(policy)) && json_array_extend(clusters, selected) < 0)
            return NULL;
    }
    return TAKE_PTR(clusters);
}

json_t *policy_clusters(const struct world *w, const json_t *policy, const json_t *decisions,
                        const char **ret_by)
{
    const char *cluster = kube_label(policy, "cluster-name");
    json_t *bound;

    *ret_by = "label";
    if (!cluster) {
        *ret_by = "name";
        cluster = policy_cluster_by_name(w, kube_name(policy));
    }
    if (cluster)
        return json_pack("[s]", cluster);
    bound = policy_clusters_by_bindings(w, policy, decisions);
    *ret_by = json_array_size(bound) ? "binding" : "any";
    return bound;
}
