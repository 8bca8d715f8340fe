/* The kinds that this program reads or writes, and the versions of them that it knows: constants. Owns
 * nothing; any thread. */
#include "controller/kube/resource.h"

#include "controller/kube/json.h"

#include <stddef.h>

#define RESOURCE(plural, group, version, kind) \
    const struct kube_resource kube_##plural = {group, version, #plural, kind, NULL}

RESOURCE(configmaps, "", "v1", "ConfigMap");
RESOURCE(secrets, "", "v1", "Secret");
RESOURCE(leases, "coordination.k8s.io", "v1", "Lease");
RESOURCE(events, "events.k8s.io", "v1", "Event");
RESOURCE(tokenreviews, "authentication.k8s.io", "v1", "TokenReview");
RESOURCE(subjectaccessreviews, "authorization.k8s.io", "v1", "SubjectAccessReview");
RESOURCE(addonplacementscores, "cluster.open-cluster-management.io", "v1alpha1", "AddOnPlacementScore");
RESOURCE(clusterclaims, "cluster.open-cluster-management.io", "v1alpha1", "ClusterClaim");
RESOURCE(managedclusters, "cluster.open-cluster-management.io", "v1", "ManagedCluster");
RESOURCE(managedclustersetbindings, "cluster.open-cluster-management.io", "v1beta2",
         "ManagedClusterSetBinding");
RESOURCE(placements, "cluster.open-cluster-management.io", "v1beta1", "Placement");
RESOURCE(placementdecisions, "cluster.open-cluster-management.io", "v1beta1", "PlacementDecision");
RESOURCE(manifestworks, "work.open-cluster-management.io", "v1", "ManifestWork");
RESOURCE(manifestworkreplicasets, "work.open-cluster-management.io", "v1alpha1", "ManifestWorkReplicaSet");
RESOURCE(policies, "policy.open-cluster-management.io", "v1", "Policy");
RESOURCE(placementbindings, "policy.open-cluster-management.io", "v1", "PlacementBinding");
RESOURCE(dynamicscorers, "dynamic-scoring.open-cluster-management.io", "v1alpha1", "DynamicScorer");
RESOURCE(dynamicscoringconfigs, "dynamic-scoring.open-cluster-management.io", "v1alpha1",
         "DynamicScoringConfig");

static const struct kube_resource addons_v1beta1 = {"addon.open-cluster-management.io", "v1beta1",
                                                    "managedclusteraddons", "ManagedClusterAddOn",
                                                    &kube_managedclusteraddons};
const struct kube_resource kube_managedclusteraddons = {"addon.open-cluster-management.io", "v1alpha1",
                                                        "managedclusteraddons", "ManagedClusterAddOn",
                                                        &addons_v1beta1};

json_t *kube_resource_object(const struct kube_resource *r, const char *namespace, const char *name)
{
    json_t *object = json_object(), *metadata;

    if (*r->group)
        kube_set(object, "apiVersion", json_sprintf("%s/%s", r->group, r->version));
    else
        kube_set_str(object, "apiVersion", r->version);
    kube_set_str(object, "kind", r->kind);
    metadata = kube_set_object(object, "metadata");
    kube_set_str(metadata, "name", name);
    kube_set_str(metadata, "namespace", namespace);
    return object;
}
