/* Kinds of objects, as the API server names them. Constants. */
#pragma once

struct kube_resource {
    const char *group, *version, *plural, *kind; /* group: "" for the core */
    const struct kube_resource *other; /* in another version, for watches where this one is not served */
};

extern const struct kube_resource kube_configmaps, kube_secrets, kube_leases, kube_events,
    kube_addonplacementscores, kube_managedclusters, kube_managedclustersetbindings,
    kube_managedclusteraddons, kube_manifestworks, kube_dynamicscorers, kube_dynamicscoringconfigs,
    kube_policies, kube_placementbindings, kube_placements, kube_placementdecisions,
    kube_manifestworkreplicasets, kube_clusterclaims, kube_tokenreviews, kube_subjectaccessreviews;
