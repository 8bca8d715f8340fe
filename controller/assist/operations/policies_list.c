/* GET /policies. */
#include "controller/assist/api/listing.h"
#include "controller/assist/api/operation.h"
#include "controller/assist/operations/answer.h"
#include "controller/assist/operations/decisions.h"
#include "controller/assist/operations/operations.h"
#include "controller/assist/operations/policy_clusters.h"
#include "controller/assist/operations/resources.h"
#include "controller/assist/state/assist.h"
#include "controller/assist/state/world.h"
#include "controller/kube/json.h"

#define SUPPLIED "resource-supply"

enum { FEW_CLUSTERS = 5 }; /* named for each policy, for assistants */

static bool policies_are_disabled(const json_t *policy)
{
    bool disabled;

    return kube_bool(policy, &disabled, "spec", "disabled", NULL) && disabled;
}

static const char *policies_device(const json_t *policy)
{
    return cstr(kube_label(policy, SUPPLIED "-device"));
}

/* clusters: as policy_clusters() returns them. */
static bool policies_match(const struct answer *a, const json_t *policy, const json_t *clusters)
{
    const char *kind = answer_input(a, "kind"), *device = answer_input(a, "device");
    const char *cluster = answer_input(a, "cluster");

    return (!kind || strcmp(kind, cstr(resources_kind(policy, SUPPLIED))) == 0) &&
           (!device || strcmp(device, policies_device(policy)) == 0) &&
           (!cluster || json_array_size(clusters) == 0 || kube_list_has(clusters, cluster));
}

/* [{"cluster", "compliant"}] from the status that the governance controllers keep. */
static json_t *policies_compliance(const struct answer *a, const json_t *policy)
{
    size_t max = answer_is_short(a) ? FEW_CLUSTERS : SIZE_MAX, i;
    json_auto_t *list = json_array();
    const json_t *one;

    json_array_foreach(kube_list(policy, "status", "status", NULL), i, one)
    {
        const char *compliant = kube_str(one, "compliant", NULL);

        if (json_array_size(list) < max &&
            json_array_append_new(list,
                                  json_pack("{s:s,s:s}", "cluster", cstr(kube_str(one, "clustername", NULL)),
                                            "compliant", compliant ? compliant : "unknown")) < 0)
            return NULL;
    }
    return TAKE_PTR(list);
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
    json_t *by_cluster;    /* {"cluster": [{"name": policy}]} */
    json_t *for_any;       /* [{"name": policy}] */
};

static int policies_offer_add(struct policies_offer *offer, const json_t *policy, const json_t *clusters)
{
    const json_t *cluster;
    size_t i;

    if (policies_are_disabled(policy))
        return 0;
    offer->is_mixed |= offer->namespace && strcmp(offer->namespace, kube_namespace(policy)) != 0;
    offer->namespace = kube_namespace(policy);
    if (json_array_size(clusters) == 0)
        return json_array_append_new(offer->for_any, json_pack("{s:s}", "name", kube_name(policy)));
    json_array_foreach(clusters, i, cluster)
    {
        const char *name = json_string_value(cluster);
        json_t *list = json_object_get(offer->by_cluster, name);

        if (!list && json_object_set_new(offer->by_cluster, name, list = json_array()) < 0)
            return -1;
        if (json_array_append_new(list, json_pack("{s:s}", "name", kube_name(policy))) < 0)
            return -1;
    }
    return 0;
}

/* Clusters in ascending order; those that exist. NULL when out of memory. */
static json_t *policies_offer_value(const struct answer *a, const struct policies_offer *offer)
{
    const char *only = answer_input(a, "cluster");
    json_auto_t *list = json_array();
    const json_t *cluster;
    size_t at = 0;

    while ((cluster = world_next(a->world, WORLD_CLUSTERS, NULL, &at))) {
        json_t *own = json_object_get(offer->by_cluster, kube_name(cluster));
        json_t *policies = own ? json_copy(own) : json_array();

        if (!policies || json_array_extend(policies, offer->for_any) < 0) {
            json_decref(policies);
            return NULL;
        }
        if (json_array_size(policies) == 0 || (only && strcmp(only, kube_name(cluster)) != 0))
            json_decref(policies);
        else if (json_array_append_new(list, json_pack("{s:s,s:o}", "name", kube_name(cluster),
                                                       "availablePolicies", policies)) < 0)
            return NULL;
    }
    return TAKE_PTR(list);
}

static void policies_put_offer(struct answer *a, const json_t *decisions)
{
    json_auto_t *by_cluster = json_object(), *for_any = json_array();
    struct policies_offer offer = {.by_cluster = by_cluster, .for_any = for_any};
    size_t at = 0, unusable = 0;
    const json_t *policy;
    int r = by_cluster && for_any ? 0 : -1;

    while (r == 0 && (policy = world_next(a->world, WORLD_POLICIES, answer_input(a, "namespace"), &at))) {
        const char *by;
        json_auto_t *clusters = policy_clusters(a->world, policy, decisions, &by);

        if (!resources_kind(policy, SUPPLIED))
            unusable++;
        else if (!clusters ||
                 (policies_match(a, policy, clusters) && policies_offer_add(&offer, policy, clusters) < 0))
            r = -1;
    }
    if (r < 0)
        answer_put(a, "clusters", NULL);
    else if (offer.is_mixed)
        answer_note(a, "The policies are in several namespaces: clusters is there with `namespace`.");
    else
        answer_put_if_short(a, "clusters", policies_offer_value(a, &offer),
                            "ask with cluster, kind or device, or with a larger maxBytes");
    if (unusable)
        answer_note(a, "%zu Policies are not listed: they lack the label " SUPPLIED "-kind.", unusable);
}

static void policies_run(void *arg, struct call *c)
{
    static const enum world_kind kinds[] = {WORLD_POLICIES, WORLD_CLUSTERS, WORLD_BINDINGS, WORLD_DECISIONS};
    const struct world *w = assist_world(arg);
    json_auto_t *decisions = NULL;
    const json_t *policy;
    struct answer a;
    size_t at = 0;

    if (!answer_begin(&a, c, w, kinds, ARRAY_SIZE(kinds)))
        return;
    decisions = decisions_index(w, answer_input(&a, "namespace"));
    policies_put_offer(&a, decisions);
    while ((policy = world_next(w, WORLD_POLICIES, answer_input(&a, "namespace"), &at))) {
        const char *by;
        json_auto_t *clusters =
            resources_kind(policy, SUPPLIED) ? policy_clusters(w, policy, decisions, &by) : NULL;

        if (clusters && policies_match(&a, policy, clusters) && listing_wants(&a.listing))
            listing_add(&a.listing, policies_item(&a, policy, clusters, by));
    }
    answer_end(&a);
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
    /* clang-format off */
    .input = SCHEMA({"type": "object", "additionalProperties": false, "properties": {
        "namespace": {"type": "string", "description": "All without."},
        "cluster": {"type": "string", "description": "Policies that this cluster may be given."},
        "kind": {"type": "string", "description": "Kind of resource supplied, such as gpu."},
        "device": {"type": "string", "description": "Value of the label resource-supply-device."},)
        LISTING_INPUT("Policies"),
    .output = SCHEMA({"type": "object", "required": ["items", "total", "shown"], "properties": {
        "clusters": {"type": "array", "items": {"type": "object", "required": ["name", "availablePolicies"],
            "properties": {"name": {"type": "string"}, "availablePolicies": {"type": "array", "items":
            {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}}}}},
        "items": {"type": "array", "items": {"type": "object", "required": ["namespace", "name", "clusters",
            "clustersBy", "kind", "amounts", "device", "disabled", "compliance"], "properties":
            {"namespace": {"type": "string"}, "name": {"type": "string"}, "clusters": {"type": "array",
            "items": {"type": "string"}, "description": "Empty: any cluster."}, "clustersBy": {"enum":
            ["label", "name", "binding", "any"]}, "kind": {"type": "string"}, "amounts": {"type": "object",
            "additionalProperties": {"type": "string"}}, "device": {"type": "string"}, "disabled": {"type":
            "boolean"}, "compliance": {"type": "array", "description":
            "Where it is in force now, the first clusters.", "items": {"type": "object", "properties":
            {"cluster": {"type": "string"}, "compliant": {"type": "string"}}}}}}},)
        LISTING_OUTPUT,
    /* clang-format on */
    .effect = OPERATION_READS,
    .is_tool = true,
    .run = policies_run,
};
