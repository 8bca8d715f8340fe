/* Makes the objects of a plan. Owns the list until it is handed over. On the worker of the request. */
#include "controller/assist/plan_objects.h"

#include "controller/assist/api_error.h"
#include "controller/assist/model.h"
#include "controller/assist/snapshot.h"
#include "controller/kube/json.h"
#include "controller/kube/resource.h"
#include "controller/optimize/problem.h"
#include "controller/optimize/solution.h"
#include "exporter/base/hash.h"

#include <inttypes.h>
#include <stdio.h>

/* PlacementDecisions have the Placement's name as a label's value, of at most 63 bytes. */
enum { MAX_NAME_CLUSTER = 63 - sizeof("placement--01234567") + 1, NAME_BYTES = 64 };

struct making {
    const struct fleet_model *m;
    const struct solution *s;
    const char *hash;
    uint32_t id;
    json_t *list;
};

/* ---- Placements ---- */

static const char *const selector_labels[] = {"cluster-name", "name"};

/* The label by which a Placement can select the cluster; NULL without. */
static const char *selector_of(const struct fleet_model *m, const struct model_site *site)
{
    for (size_t i = 0; i < ARRAY_SIZE(selector_labels); i++)
        if (strcmp(cstr(kube_label(m->clusters[site->cluster], selector_labels[i])), site->cluster_name) == 0)
            return selector_labels[i];
    return NULL;
}

static int check_selectors(const struct making *mk, struct api_error *error)
{
    for (size_t i = 0; i < mk->m->problem.n_sites; i++) {
        const struct model_site *site = &mk->m->sites[i];
        const char *name = site->cluster_name;

        if (mk->s->setting[i] == NO_SETTING || selector_of(mk->m, site))
            continue;
        api_error_at(error, "clusters[%zu].name", site->cluster);
        return api_error_set(
            error, 422,
            "no Placement can select ManagedCluster %s: it has no label cluster-name=%s; run: "
            "kubectl label managedcluster %s cluster-name=%s",
            name, name, name, name);
    }
    return 0;
}

/* {"matchExpressions": [{"key", "operator": "In", "values"}]}. The values are taken. */
static json_t *selector_in(const char *key, json_t *values)
{
    json_t *selector = json_object(), *expressions = json_array(), *one = json_object();

    kube_set_str(one, "key", key);
    kube_set_str(one, "operator", "In");
    kube_set(one, "values", values);
    kube_append(expressions, one);
    kube_set(selector, "matchExpressions", expressions);
    return selector;
}

static json_t *selector_is(const char *key, json_t *value)
{
    json_t *selector = json_object();

    kube_set(kube_set_object(selector, "matchLabels"), key, json_incref(value));
    return selector;
}

static json_t *predicate_of(const char *label, json_t *names, bool wants_claim)
{
    json_t *predicate = json_object(), *clusters = kube_set_object(predicate, "requiredClusterSelector");

    if (json_array_size(names) == 1)
        kube_set(clusters, "labelSelector", selector_is(label, json_array_get(names, 0)));
    else
        kube_set(clusters, "labelSelector", selector_in(label, json_incref(names)));
    if (wants_claim)
        kube_set(clusters, "claimSelector", selector_in(POLICY_CLAIM, json_pack("[s]", "compliant")));
    return predicate;
}

/* Predicates are alternatives: one for each label that selects clusters. */
static json_t *predicates_of(const struct making *mk, const struct problem_pair *placed, size_t n,
                             bool wants_claim)
{
    json_t *predicates = json_array();

    for (size_t by = 0; by < ARRAY_SIZE(selector_labels); by++) {
        json_auto_t *names = json_array();

        for (size_t i = 0; i < n; i++) {
            const struct model_site *site = &mk->m->sites[placed[i].site];

            if (selector_of(mk->m, site) == selector_labels[by])
                (void)json_array_append_new(names, json_string(site->cluster_name));
        }
        if (json_array_size(names))
            (void)json_array_append_new(predicates, predicate_of(selector_labels[by], names, wants_claim));
    }
    return predicates;
}

/* A new object of the plan, with its label and annotation. */
static json_t *object_of_plan(const struct making *mk, const struct kube_resource *r, const char *name)
{
    json_t *object = kube_resource_object(r, mk->m->namespace, name);
    json_t *metadata = kube_get(object, "metadata", NULL);

    kube_set_str(kube_set_object(metadata, "labels"), GENERATED_LABEL, "true");
    kube_set_str(kube_set_object(metadata, "annotations"), PLAN_ANNOTATION, mk->hash);
    return object;
}

static void make_placement(struct making *mk, const char *name, const struct problem_pair *placed, size_t n,
                           bool wants_claim)
{
    json_t *placement = object_of_plan(mk, &kube_placements, name);
    json_t *spec = kube_set_object(placement, "spec");

    kube_set_int(spec, "numberOfClusters", (int64_t)n);
    kube_set(spec, "predicates", predicates_of(mk, placed, n, wants_claim));
    kube_append(mk->list, placement);
}

/* A reference, as PlacementBindings have them. */
static json_t *reference_to(const struct kube_resource *r, const char *name)
{
    json_t *reference = json_object();

    kube_set_str(reference, "apiGroup", r->group);
    kube_set_str(reference, "kind", r->kind);
    kube_set_str(reference, "name", name);
    return reference;
}

static void make_binding(struct making *mk, const char *name, const char *placement, json_t *policies)
{
    json_t *binding = object_of_plan(mk, &kube_placementbindings, name);

    kube_set(binding, "placementRef", reference_to(&kube_placements, placement));
    kube_set(binding, "subjects", json_incref(policies));
    kube_append(mk->list, binding);
}

/* ---- Clusters ---- */

/* "<kind>-<cluster>-<run>" */
static void cluster_object_name(char out[NAME_BYTES], const char *kind, const char *cluster, uint32_t id)
{
    if (strlen(cluster) <= MAX_NAME_CLUSTER)
        (void)snprintf(out, NAME_BYTES, "%s-%s-%08" PRIx32, kind, cluster, id);
    else
        (void)snprintf(out, NAME_BYTES, "%s-%.*s-%08" PRIx32 "-%08" PRIx32, kind, MAX_NAME_CLUSTER - 9,
                       cluster, (uint32_t)hash_lasting(str_of(cluster)), id);
}

/* For each cluster with policies in force: its sites are neighbours. */
static void make_clusters(struct making *mk, bool bindings)
{
    const struct fleet_model *m = mk->m;

    for (size_t i = 0, end; i < m->problem.n_sites && m->sites[i].cluster != SIZE_MAX; i = end) {
        json_auto_t *policies = json_array();
        char name[NAME_BYTES], binding[NAME_BYTES];

        for (end = i; end < m->problem.n_sites && m->sites[end].cluster == m->sites[i].cluster; end++)
            if (mk->s->setting[end] != NO_SETTING)
                kube_append(policies, reference_to(&kube_policies, m->settings[mk->s->setting[end]].policy));
        cluster_object_name(name, "placement", m->sites[i].cluster_name, mk->id);
        cluster_object_name(binding, "binding", m->sites[i].cluster_name, mk->id);
        if (json_array_size(policies) == 0)
            continue;
        if (bindings)
            make_binding(mk, binding, name, policies);
        else
            make_placement(mk, name, &(struct problem_pair){0, (uint32_t)i}, 1, false);
    }
}

int objects_make(json_t **ret, const struct fleet_model *m, const struct solution *s, uint32_t id,
                 const char *hash, struct api_error *error)
{
    json_auto_t *list = json_array();
    struct making mk = {m, s, hash, id, list};
    int r = check_selectors(&mk, error);

    if (r < 0)
        return r;
    make_clusters(&mk, false);
    make_clusters(&mk, true);
    for (size_t i = 0, n; i < s->n_placed; i += n) {
        n = solution_count_replicas(s, i, s->placed[i].workload);
        make_placement(&mk, m->workloads[s->placed[i].workload].placement, &s->placed[i], n, true);
    }
    *ret = TAKE_PTR(list);
    return 0;
}
