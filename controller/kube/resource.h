/* Kinds of objects, as the API server names them. */
#pragma once

#include <jansson.h>

struct kube_resource {
    const char *group, *version, *plural, *kind; /* group: "" for the core */
    const struct kube_resource *other; /* in another version, for watches where this one is not served */
};

extern const struct kube_resource kube_configmaps, kube_secrets, kube_leases, kube_events,
    kube_addonplacementscores, kube_managedclusters, kube_managedclustersetbindings,
    kube_managedclusteraddons, kube_manifestworks, kube_dynamicscorers, kube_dynamicscoringconfigs,
    kube_policies, kube_placementbindings, kube_placements, kube_placementdecisions,
    kube_manifestworkreplicasets, kube_clusterclaims, kube_tokenreviews, kube_subjectaccessreviews;

/* A new object of the kind: apiVersion, kind and metadata, with a name and, unless it is NULL, a
 * namespace. */
json_t *kube_resource_object(const struct kube_resource *r, const char *namespace, const char *name);
