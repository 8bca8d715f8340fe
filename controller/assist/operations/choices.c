/* GET /policies and /workloads: what a request for a plan may name. */
#include "controller/assist/api/operation.h"
#include "controller/assist/api/schemas.h"
#include "controller/assist/operations/answer.h"
#include "controller/assist/operations/operations.h"
#include "controller/assist/rules/model.h"
#include "controller/assist/state/reader.h"
#include "controller/assist/state/snapshot.h"
#include "controller/kube/json.h"

#include <stdio.h>

#define SUPPLIED "resource-supply"
#define ASKED    "resource-request"

enum {
    FEW_COMPLIANT = 5, /* clusters named for each policy, for assistants */
    FEW_CLUSTERS = 10, /* for each workload */
    KEY_BYTES = 1024,
};

/* ---- Labels that say what workloads request and policies supply ---- */

static const char *resources_label(const json_t *object, const char *prefix, const char *suffix)
{
    char key[256];

    (void)snprintf(key, sizeof(key), "%s%s", prefix, suffix);
    return kube_label(object, key);
}

/* The first kind; NULL without. */
static const char *resources_kind(const json_t *object, const char *prefix)
{
    return resources_label(object, prefix, "-kind");
}

/* {"gpu": "2", "memory": "16"}: the labels <prefix>-kind with <prefix>-amount, and <prefix>-amount.<kind>. */
static json_t *resources_of_labels(const json_t *object, const char *prefix)
{
    const char *kind = resources_kind(object, prefix), *name;
    json_t *amounts = json_object(), *value;
    size_t n = strlen(prefix);

    if (kind)
        (void)json_object_set_new(amounts, kind,
                                  json_string(cstr(resources_label(object, prefix, "-amount"))));
    json_object_foreach(kube_map(object, "metadata", "labels", NULL), name, value)
    {
        if (strncmp(name, prefix, n) == 0 && str_starts(str_of(name + n), STR("-amount.")))
            (void)json_object_set(amounts, name + n + strlen("-amount."), value);
    }
    return amounts;
}

static json_t *named(const json_t *object)
{
    return json_pack("{s:s}", "name", kube_name(object));
}

/* ---- Which clusters Placements have selected ---- */

static const char *decisions_key(char key[KEY_BYTES], const char *namespace, const char *placement)
{
    (void)snprintf(key, KEY_BYTES, "%s/%s", namespace, placement);
    return key;
}

/* A new list unless the map has one. Borrowed. */
static json_t *list_of(json_t *map, const char *key)
{
    if (!json_object_get(map, key))
        (void)json_object_set_new(map, key, json_array());
    return json_object_get(map, key);
}

/* {"namespace/placement": ["cluster", ...]}: a Placement may have several PlacementDecisions. */
static json_t *decisions_index(const struct snapshot *hub)
{
    json_t *index = json_object();
    const json_t *decision, *one;
    size_t at = 0, i;

    while ((decision = snapshot_next(hub, KIND_DECISIONS, &at))) {
        const char *placement = kube_label(decision, PLACEMENT_LABEL);
        char key[KEY_BYTES];

        if (!placement)
            continue;
        json_array_foreach(kube_list(decision, "status", "decisions", NULL), i, one)
        {
            (void)json_array_append_new(
                list_of(index, decisions_key(key, kube_namespace(decision), placement)),
                json_string(cstr(kube_str(one, "clusterName", NULL))));
        }
    }
    return index;
}

/* Borrowed; NULL without. */
static json_t *decisions_selected(const json_t *index, const char *namespace, const char *placement)
{
    char key[KEY_BYTES];

    return json_object_get(index, decisions_key(key, namespace, placement));
}

/* ---- Policies ---- */

static const char *policy_cluster_by_name(const struct snapshot *hub, const char *policy)
{
    for (const char *dash = strchr(policy, '-'); dash; dash = strchr(dash + 1, '-'))
        if (snapshot_get(hub, KIND_CLUSTERS, "", dash + 1))
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

/* The bindings of plans say which policy is in force, not for which clusters it may be chosen. */
static json_t *policy_clusters_by_bindings(const struct snapshot *hub, const json_t *policy,
                                           const json_t *decisions)
{
    json_t *clusters = json_array();
    const json_t *binding;
    size_t at = 0;

    while ((binding = snapshot_next(hub, KIND_BINDINGS, &at))) {
        const char *placement = kube_str(binding, "placementRef", "name", NULL);
        json_t *selected =
            placement ? decisions_selected(decisions, kube_namespace(policy), placement) : NULL;

        if (selected && !kube_label(binding, GENERATED_LABEL) &&
            policy_is_subject(binding, kube_name(policy)))
            (void)json_array_extend(clusters, selected);
    }
    return clusters;
}

/* Which clusters a Policy is for. Policies do not say so, and so the first of these that applies decides:
 *   1. the label cluster-name of the Policy, as ManagedClusters have it;
 *   2. its name, if it ends in "-" and the name of a ManagedCluster: the longest such name;
 *   3. a PlacementBinding that no plan made: the clusters that its Placement has selected;
 *   4. else it is for any cluster.
 * A new array of names; empty: any cluster. *ret_by is "label", "name", "binding" or "any". */
static json_t *policy_clusters(const struct snapshot *hub, const json_t *policy, const json_t *decisions,
                               const char **ret_by)
{
    const char *cluster = kube_label(policy, "cluster-name");
    json_t *bound;

    *ret_by = "label";
    if (!cluster) {
        *ret_by = "name";
        cluster = policy_cluster_by_name(hub, kube_name(policy));
    }
    if (cluster)
        return json_pack("[s]", cluster);
    bound = policy_clusters_by_bindings(hub, policy, decisions);
    *ret_by = json_array_size(bound) ? "binding" : "any";
    return bound;
}

static bool policies_are_disabled(const json_t *policy)
{
    bool disabled;

    return kube_bool(policy, &disabled, "spec", "disabled", NULL) && disabled;
}

static const char *policies_device(const json_t *policy)
{
    return cstr(kube_label(policy, SUPPLIED "-device"));
}

static bool policies_match(const struct answer *a, const json_t *policy, const json_t *clusters)
{
    const char *kind = call_text(a->call, "kind"), *device = call_text(a->call, "device");
    const char *cluster = call_text(a->call, "cluster");

    return (!kind || strcmp(kind, cstr(resources_kind(policy, SUPPLIED))) == 0) &&
           (!device || strcmp(device, policies_device(policy)) == 0) &&
           (!cluster || json_array_size(clusters) == 0 || kube_list_has(clusters, cluster));
}

/* [{"cluster", "compliant"}] from the status that the governance controllers keep. */
static json_t *policies_compliance(const struct answer *a, const json_t *policy)
{
    size_t max = answer_is_short(a) ? FEW_COMPLIANT : SIZE_MAX, i;
    json_t *list = json_array(), *one;

    json_array_foreach(kube_list(policy, "status", "status", NULL), i, one)
    {
        const char *compliant = kube_str(one, "compliant", NULL);

        if (i < max)
            (void)json_array_append_new(list, json_pack("{s:s,s:s}", "cluster",
                                                        cstr(kube_str(one, "clustername", NULL)), "compliant",
                                                        compliant ? compliant : "unknown"));
    }
    return list;
}

static json_t *policies_item(const struct answer *a, const json_t *policy, json_t *clusters, const char *by)
{
    return json_pack("{s:s,s:s,s:O,s:s,s:s,s:o,s:s,s:b,s:o}", "namespace", kube_namespace(policy), "name",
                     kube_name(policy), "clusters", clusters, "clustersBy", by, "kind",
                     cstr(resources_kind(policy, SUPPLIED)), "amounts", resources_of_labels(policy, SUPPLIED),
                     "device", policies_device(policy), "disabled", policies_are_disabled(policy),
                     "compliance", policies_compliance(a, policy));
}

/* What the request's member `clusters` is made of, while policies are read one by one. */
struct policies_offer {
    const char *namespace; /* NULL: none yet */
    bool is_mixed;         /* of several namespaces */
    json_t *by_cluster;    /* {"cluster": [{"name": policy}]}; "": for any */
};

static void policies_offer_add(struct policies_offer *offer, const json_t *policy, const json_t *clusters)
{
    const json_t *cluster;
    size_t i;

    if (policies_are_disabled(policy))
        return;
    offer->is_mixed |= offer->namespace && strcmp(offer->namespace, kube_namespace(policy)) != 0;
    offer->namespace = kube_namespace(policy);
    if (json_array_size(clusters) == 0)
        (void)json_array_append_new(list_of(offer->by_cluster, ""), named(policy));
    json_array_foreach(clusters, i, cluster)
    {
        (void)json_array_append_new(list_of(offer->by_cluster, json_string_value(cluster)), named(policy));
    }
}

/* Clusters in ascending order; those that exist. */
static json_t *policies_offer_value(const struct answer *a, const struct policies_offer *offer)
{
    const char *only = call_text(a->call, "cluster");
    json_t *list = json_array();
    const json_t *cluster;
    size_t at = 0;

    while ((cluster = snapshot_next(a->hub, KIND_CLUSTERS, &at))) {
        const char *name = kube_name(cluster);
        json_auto_t *policies = list_head(json_object_get(offer->by_cluster, name), SIZE_MAX);

        (void)json_array_extend(policies, list_of(offer->by_cluster, ""));
        if (json_array_size(policies) > 0 && (!only || strcmp(only, name) == 0))
            (void)json_array_append_new(list,
                                        json_pack("{s:s,s:O}", "name", name, "availablePolicies", policies));
    }
    return list;
}

static void policies_put_offer(struct answer *a, const json_t *decisions)
{
    json_auto_t *by_cluster = json_object();
    struct policies_offer offer = {.by_cluster = by_cluster};
    size_t at = 0, unusable = 0;
    const json_t *policy;

    while ((policy = snapshot_next(a->hub, KIND_POLICIES, &at))) {
        const char *by;
        json_auto_t *clusters = policy_clusters(a->hub, policy, decisions, &by);

        if (!resources_kind(policy, SUPPLIED))
            unusable++;
        else if (policies_match(a, policy, clusters))
            policies_offer_add(&offer, policy, clusters);
    }
    if (offer.is_mixed)
        answer_note(a, "The policies are in several namespaces: clusters is there with `namespace`.");
    else
        answer_put_if_short(a, "clusters", policies_offer_value(a, &offer),
                            "ask with cluster, kind or device, or with a larger maxBytes");
    if (unusable)
        answer_note(a, "%zu Policies are not listed: they lack the label " SUPPLIED "-kind.", unusable);
}

static void policies_answer(struct answer *a)
{
    json_auto_t *decisions = decisions_index(a->hub);
    const json_t *policy;
    size_t at = 0;

    policies_put_offer(a, decisions);
    while ((policy = snapshot_next(a->hub, KIND_POLICIES, &at))) {
        const char *by;
        json_auto_t *clusters =
            resources_kind(policy, SUPPLIED) ? policy_clusters(a->hub, policy, decisions, &by) : NULL;

        if (clusters && policies_match(a, policy, clusters) && listing_wants(&a->listing))
            listing_add(&a->listing, policies_item(a, policy, clusters, by));
    }
}

static void policies_run(void *arg, struct call *c)
{
    const struct reader_query q = {.kinds = KIND_BIT(KIND_POLICIES) | KIND_BIT(KIND_CLUSTERS) |
                                            KIND_BIT(KIND_BINDINGS) | KIND_BIT(KIND_DECISIONS),
                                   .namespace = call_text(c, "namespace")};

    answer_from_hub(arg, c, &q, policies_answer);
}

const struct operation policies_list = {
    .name = "policies_list",
    .method = "GET",
    .path = "/policies",
    .title = "List policies",
    .description =
        "Lists the Policies among which an optimization chooses for each cluster: those with the label "
        "resource-supply-kind, with the amounts of resources that a cluster supplies under the policy, the "
        "device, and whether clusters comply. `clusters` of the answer is ready to be passed to "
        "optimize_optimize_post: the clusters with their available policies, disabled ones left out. A "
        "policy is for the cluster that its label cluster-name or the end of its name says, or for those "
        "that a PlacementBinding selects, or for any (clustersBy). An optimization is for one namespace.",
    .input = schema_policies_list_input,
    .output = schema_policies_list_output,
    .effect = OPERATION_READS,
    .is_tool = true,
    .run = policies_run,
};

/* ---- Workloads ---- */

static bool workloads_match(const struct answer *a, const json_t *o)
{
    const char *app = call_text(a->call, "app"), *kind = call_text(a->call, "kind");

    return (!app || strcmp(app, cstr(kube_label(o, "app"))) == 0) &&
           (!kind || strcmp(kind, cstr(resources_kind(o, ASKED))) == 0);
}

static json_t *workloads_item(const struct answer *a, const json_t *o, const json_t *decisions)
{
    const char *placement = input_placement_name(o);
    const json_t *runs = decisions_selected(decisions, kube_namespace(o), placement);

    return json_pack("{s:s,s:s,s:s,s:s,s:o,s:s,s:o,s:I}", "namespace", kube_namespace(o), "name",
                     kube_name(o), "app", cstr(kube_label(o, "app")), "kind", cstr(resources_kind(o, ASKED)),
                     "amounts", resources_of_labels(o, ASKED), "placement", placement, "runsOn",
                     list_head(runs, answer_is_short(a) ? FEW_CLUSTERS : SIZE_MAX), "runsOnTotal",
                     (json_int_t)json_array_size(runs));
}

static bool workloads_are_usable(const json_t *o)
{
    return kube_label(o, "app") && resources_kind(o, ASKED) && input_placement_name(o);
}

/* Puts the request's member with all workloads of one namespace. */
static void workloads_put_targets(struct answer *a)
{
    json_auto_t *targets = json_array();
    const char *namespace = NULL;
    bool is_mixed = false;
    size_t unusable = 0, at = 0;
    const json_t *o;

    while ((o = snapshot_next(a->hub, KIND_WORKLOADS, &at))) {
        unusable += !workloads_are_usable(o);
        if (!workloads_are_usable(o) || !workloads_match(a, o))
            continue;
        is_mixed |= namespace && strcmp(namespace, kube_namespace(o)) != 0;
        namespace = kube_namespace(o);
        (void)json_array_append_new(targets, named(o));
    }
    if (is_mixed)
        answer_note(a, "The workloads are in several namespaces: targetWorkloads is there with "
                       "`namespace`.");
    else
        answer_put_if_short(a, "targetWorkloads", TAKE_PTR(targets),
                            "ask with app or kind, or with a larger maxBytes");
    if (unusable)
        answer_note(a,
                    "%zu ManifestWorkReplicaSets are not listed: they lack the label app, the "
                    "label " ASKED "-kind, or a placementRef.",
                    unusable);
}

static void workloads_answer(struct answer *a)
{
    json_auto_t *decisions = decisions_index(a->hub);
    const json_t *o;
    size_t at = 0;

    workloads_put_targets(a);
    while ((o = snapshot_next(a->hub, KIND_WORKLOADS, &at)))
        if (workloads_are_usable(o) && workloads_match(a, o) && listing_wants(&a->listing))
            listing_add(&a->listing, workloads_item(a, o, decisions));
}

static void workloads_run(void *arg, struct call *c)
{
    const struct reader_query q = {.kinds = KIND_BIT(KIND_WORKLOADS) | KIND_BIT(KIND_DECISIONS),
                                   .namespace = call_text(c, "namespace")};

    answer_from_hub(arg, c, &q, workloads_answer);
}

const struct operation workloads_list = {
    .name = "workloads_list",
    .method = "GET",
    .path = "/workloads",
    .title = "List workloads",
    .description =
        "Lists the workloads that can be placed: ManifestWorkReplicaSets with the labels app and "
        "resource-request-kind. Each has the amounts of resources that it asks for, and the clusters where "
        "it runs now. targetWorkloads is ready to be passed to optimize_optimize_post, and may be "
        "shortened to the workloads that the user means. An optimization is for one namespace.",
    .input = schema_workloads_list_input,
    .output = schema_workloads_list_output,
    .effect = OPERATION_READS,
    .is_tool = true,
    .run = workloads_run,
};
