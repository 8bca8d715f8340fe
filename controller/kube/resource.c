/* The kinds that this program reads or writes, and the versions of them that it knows. Constants. */
#include "controller/kube/resource.h"

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
