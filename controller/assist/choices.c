/* Reads Policies and ManifestWorkReplicaSets. Owns what it makes of them while an answer is made. On the
 * worker that fills in the answer. */
#include "controller/assist/choices.h"

#include "controller/assist/call.h"
#include "controller/assist/kind.h"
#include "controller/assist/list.h"
#include "controller/assist/listing.h"
#include "controller/assist/resource_labels.h"
#include "controller/assist/snapshot.h"
#include "controller/kube/json.h"

enum {
    FEW_COMPLIANT = 5, /* clusters named for each policy, for assistants */
    FEW_CLUSTERS = 10, /* for each workload */
};

/* ---- Labels that say what workloads request and policies supply ---- */

/* {"gpu": "2", "memory": "16"}: the kind with the label `prefix`, and others with <prefix>.<other kind>. */
static json_t *resources_of_labels(const json_t *object, const char *kind, const char *prefix)
{
    json_t *amounts = kind ? json_pack("{s:s}", kind, cstr(kube_label(object, prefix))) : json_object(),
           *value;
    const char *name;
    size_t n = strlen(prefix);

    json_object_foreach(kube_map(object, "metadata", "labels", NULL), name, value)
    {
        if (strncmp(name, prefix, n) == 0 && name[n] == '.')
            (void)json_object_set(amounts, name + n + 1, value);
    }
    return amounts;
}

/* ---- Which clusters Placements have selected ---- */

/* The member `name` of the map, borrowed; `otherwise` (taken) is added if it is missing. */
static json_t *member_of(json_t *map, const char *name, json_t *otherwise)
{
    if (json_object_get(map, name))
        json_decref(otherwise);
    else
        (void)json_object_set_new(map, name, otherwise);
    return json_object_get(map, name);
}

/* {"namespace": {"placement": ["cluster", ...]}}: a Placement may have several PlacementDecisions. */
static json_t *decisions_index(const struct snapshot *hub)
{
    json_t *index = json_object();
    const json_t *decision, *one;
    size_t at = 0, i;

    while ((decision = snapshot_next(hub, KIND_DECISIONS, &at))) {
        json_t *of_namespace = member_of(index, kube_namespace(decision), json_object());
        const char *placement = kube_label(decision, PLACEMENT_LABEL);

        json_array_foreach(kube_list(decision, "status", "decisions", NULL), i, one)
        {
            if (placement)
                (void)json_array_append_new(member_of(of_namespace, placement, json_array()),
                                            json_string(cstr(kube_str(one, "clusterName", NULL))));
        }
    }
    return index;
}

/* ---- Policies and workloads alike ---- */

/* Whether an argument is absent, or the item's member of that name. */
static bool choice_matches(const struct call *c, const json_t *item, const char *name)
{
    const char *wanted = call_text(c, name);

    return !wanted || strcmp(wanted, cstr(kube_str(item, name, NULL))) == 0;
}

static json_t *choice_name(const json_t *item)
{
    return json_pack("{s:O}", "name", json_object_get(item, "name"));
}

/* Puts the member that a request for a plan takes as it is, unless the items are of several namespaces, or
 * it takes more than half of the room. */
static void choices_put(struct listing *l, const json_t *items, const char *name, json_t *value,
                        const char *arguments)
{
    const char *first = cstr(kube_str(json_array_get(items, 0), "namespace", NULL));
    bool is_mixed = false;

    for (size_t i = 0; i < json_array_size(items); i++)
        is_mixed |= strcmp(first, cstr(kube_str(json_array_get(items, i), "namespace", NULL))) != 0;
    if (is_mixed)
        list_note(l->notes, "The items are in several namespaces: %s is there with `namespace`.", name);
    else if (listing_is_short(l) && json_dumpb(value, NULL, 0, JSON_COMPACT) > listing_room(l) / 2)
        list_note(l->notes, "%s is left out as it is too long: ask with %s, or with a larger maxBytes.", name,
                  arguments);
    else
        (void)json_object_set(l->head, name, value);
    json_decref(value);
}

/* ---- Policies ---- */

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

        if (!kube_label(binding, GENERATED_LABEL) && policy_is_subject(binding, kube_name(policy)))
            (void)json_array_extend(clusters, kube_list(decisions, kube_namespace(policy), placement, NULL));
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
    const char *cluster = policy_cluster(hub, policy, ret_by);
    json_t *bound;

    if (cluster)
        return json_pack("[s]", cluster);
    bound = policy_clusters_by_bindings(hub, policy, decisions);
    *ret_by = json_array_size(bound) ? "binding" : "any";
    return bound;
}

/* [{"cluster", "compliant"}] from the status that the governance controllers keep. */
static json_t *policies_compliance(const json_t *policy, size_t max)
{
    json_t *list = json_array(), *one;
    size_t i;

    json_array_foreach(kube_list(policy, "status", "status", NULL), i, one)
    {
        if (i < max)
            (void)json_array_append_new(list, json_pack("{s:s,s:s}", "cluster",
                                                        cstr(kube_str(one, "clustername", NULL)), "compliant",
                                                        kube_str(one, "compliant", NULL) ?: "unknown"));
    }
    return list;
}

static json_t *policies_item(const struct listing *l, const struct snapshot *hub, const json_t *policy,
                             const json_t *decisions)
{
    const char *kind = kube_label(policy, SUPPLIED "-kind"), *by;
    json_t *item = json_object(), *clusters = policy_clusters(hub, policy, decisions, &by);

    kube_set_str(item, "namespace", kube_namespace(policy));
    kube_set_str(item, "name", kube_name(policy));
    kube_set(item, "clusters", clusters);
    kube_set_str(item, "clustersBy", by);
    kube_set_str(item, "kind", cstr(kind));
    kube_set(item, "amounts", resources_of_labels(policy, kind, SUPPLIED "-amount"));
    kube_set_str(item, "device", cstr(kube_label(policy, SUPPLIED "-device")));
    kube_set_bool(item, "disabled", kube_bool(policy, "spec", "disabled", NULL));
    kube_set(item, "compliance", policies_compliance(policy, listing_at_most(l, FEW_COMPLIANT)));
    return item;
}

/* What the request's member `clusters` is made of: {"cluster": [{"name": policy}]}; "": for any. */
static json_t *policies_by_cluster(const json_t *items)
{
    json_t *by_cluster = json_object();
    const json_t *item, *cluster;
    size_t i, j;

    json_array_foreach(items, i, item)
    {
        const json_t *clusters = json_object_get(item, "clusters");

        if (json_is_true(json_object_get(item, "disabled")))
            continue;
        if (json_array_size(clusters) == 0)
            (void)json_array_append_new(member_of(by_cluster, "", json_array()), choice_name(item));
        json_array_foreach(clusters, j, cluster)
        {
            (void)json_array_append_new(member_of(by_cluster, json_string_value(cluster), json_array()),
                                        choice_name(item));
        }
    }
    return by_cluster;
}

/* Clusters in ascending order; those that exist. */
static json_t *policies_offer(const struct call *c, const struct snapshot *hub, const json_t *items)
{
    json_auto_t *by_cluster = policies_by_cluster(items);
    const char *only = call_text(c, "cluster");
    json_t *list = json_array();
    const json_t *cluster;
    size_t at = 0;

    while ((cluster = snapshot_next(hub, KIND_CLUSTERS, &at))) {
        const char *name = kube_name(cluster);
        json_auto_t *policies = list_head(json_object_get(by_cluster, name), SIZE_MAX);

        (void)json_array_extend(policies, member_of(by_cluster, "", json_array()));
        if (json_array_size(policies) > 0 && (!only || strcmp(only, name) == 0))
            (void)json_array_append_new(list,
                                        json_pack("{s:s,s:O}", "name", name, "availablePolicies", policies));
    }
    return list;
}

void policies_fill(struct listing *l, const struct snapshot *hub)
{
    json_auto_t *decisions = decisions_index(hub), *items = json_array();
    const char *cluster = call_text(l->call, "cluster");
    size_t at = 0, unusable = 0;
    const json_t *policy;

    while ((policy = snapshot_next(hub, KIND_POLICIES, &at))) {
        json_auto_t *item = policies_item(l, hub, policy, decisions);
        const json_t *clusters = json_object_get(item, "clusters");

        if (!kube_label(policy, SUPPLIED "-kind"))
            unusable++;
        else if (choice_matches(l->call, item, "kind") && choice_matches(l->call, item, "device") &&
                 (!cluster || json_array_size(clusters) == 0 || kube_list_has(clusters, cluster)))
            (void)json_array_append(items, item);
    }
    choices_put(l, items, "clusters", policies_offer(l->call, hub, items), "cluster, kind or device");
    if (unusable)
        list_note(l->notes, "%zu Policies are not listed: they lack the label " SUPPLIED "-kind.", unusable);
    listing_add_all(l, items);
}

/* ---- Workloads ---- */

static json_t *workloads_item(const struct listing *l, const json_t *o, const json_t *decisions)
{
    const char *placement = workload_placement(o), *kind = kube_label(o, REQUESTED "-kind");
    const json_t *runs = kube_list(decisions, kube_namespace(o), placement, NULL);
    json_t *item = json_object();

    kube_set_str(item, "namespace", kube_namespace(o));
    kube_set_str(item, "name", kube_name(o));
    kube_set_str(item, "app", cstr(kube_label(o, "app")));
    kube_set_str(item, "kind", cstr(kind));
    kube_set(item, "amounts", resources_of_labels(o, kind, REQUESTED "-amount"));
    kube_set_str(item, "placement", placement);
    kube_set(item, "runsOn", list_head(runs, listing_at_most(l, FEW_CLUSTERS)));
    kube_set_int(item, "runsOnTotal", (int64_t)json_array_size(runs));
    return item;
}

void workloads_fill(struct listing *l, const struct snapshot *hub)
{
    json_auto_t *decisions = decisions_index(hub), *items = json_array();
    json_t *targets = json_array();
    size_t at = 0, unusable = 0;
    const json_t *o;

    while ((o = snapshot_next(hub, KIND_WORKLOADS, &at))) {
        bool is_usable = kube_label(o, "app") && kube_label(o, REQUESTED "-kind") && workload_placement(o);
        json_auto_t *item = is_usable ? workloads_item(l, o, decisions) : NULL;

        unusable += !is_usable;
        if (!item || !choice_matches(l->call, item, "app") || !choice_matches(l->call, item, "kind"))
            continue;
        (void)json_array_append(items, item);
        (void)json_array_append_new(targets, choice_name(item));
    }
    choices_put(l, items, "targetWorkloads", targets, "app or kind");
    if (unusable)
        list_note(l->notes,
                  "%zu ManifestWorkReplicaSets are not listed: they lack the label app, the label " REQUESTED
                  "-kind, or a placementRef.",
                  unusable);
    listing_add_all(l, items);
}
