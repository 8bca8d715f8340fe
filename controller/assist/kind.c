/* A table. */
#include "controller/assist/kind.h"

#include "controller/kube/resource.h"

const struct kind_info kind_info[KINDS] = {
    [KIND_CLUSTERS] = {&kube_managedclusters, "ManagedClusters"},
    [KIND_POLICIES] = {&kube_policies, "Policies",
                       .label_selector = "!policy.open-cluster-management.io/root-policy",
                       .is_optional = true},
    [KIND_WORKLOADS] = {&kube_manifestworkreplicasets, "ManifestWorkReplicaSets", .is_optional = true},
    [KIND_SCORERS] = {&kube_dynamicscorers, "DynamicScorers"},
    [KIND_PLACEMENTS] = {&kube_placements, "Placements"},
    [KIND_DECISIONS] = {&kube_placementdecisions, "PlacementDecisions"},
    [KIND_BINDINGS] = {&kube_placementbindings, "PlacementBindings", .is_optional = true},
    [KIND_SET_BINDINGS] = {&kube_managedclustersetbindings, "ManagedClusterSetBindings"},
    [KIND_SCORES] = {&kube_addonplacementscores, "AddOnPlacementScores"},
};
