/* Builds the model of a request: workloads, clusters and their Policies, what runs, and pins. Owns the
 * model until it is handed over whole. On the worker of the request. What a request names and the hub
 * lacks is an error that names the field. */
#include "controller/assist/plan_request.h"

#include "controller/assist/api_error.h"
#include "controller/assist/basis.h"
#include "controller/assist/kind.h"
#include "controller/assist/model.h"
#include "controller/assist/preference.h"
#include "controller/assist/quantity.h"
#include "controller/assist/resource_labels.h"
#include "controller/assist/snapshot.h"
#include "controller/kube/json.h"
#include "controller/optimize/problem.h"
#include "exporter/base/alloc.h"
#include "exporter/base/strset.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

const char *request_namespace(const json_t *request)
{
    return kube_str(request, "namespace", NULL) ?: "default";
}

static int64_t number_of(const json_t *map, const char *key, int64_t otherwise)
{
    (void)kube_int(map, &otherwise, key, NULL);
    return otherwise;
}

/* kind: NULL: of the main resource. */
static char *amount_label(const char *prefix, const char *kind)
{
    if (!kind)
        return xasprintf("%s-amount", prefix);
    return xasprintf("%s-amount.%s", prefix, kind);
}

/* [resource]: of the labels <prefix>-amount and <prefix>-amount.<kind>. */
static int amounts_read(const struct fleet_model *m, const json_t *object, const char *kind,
                        const char *prefix, int64_t *into, struct api_error *error)
{
    for (size_t i = 0; i <= m->n_extra; i++) {
        CLEANUP(cleanup_free) char *label = amount_label(prefix, i ? m->extra[i - 1] : NULL);
        const char *s;

        if (i && !kube_label(object, label))
            continue;
        s = label_read(object, kind, label, error);
        if (!s)
            return -EINVAL;
        if (!quantity_parse(s, &into[i]))
            return api_error_set(error, 422,
                                 "%s %s: label %s is \"%s\", expected an amount such as 2, 500m or 2Gi", kind,
                                 kube_name(object), label, s);
    }
    return 0;
}

/* ---- Workloads ---- */

/* The resources that its labels name beside the main one. */
static int workload_note_extras(struct fleet_model *m, const json_t *object, struct api_error *error)
{
    static const struct str prefix = {REQUESTED "-amount.", sizeof(REQUESTED "-amount.") - 1};
    const char *key;
    json_t *v;

    json_object_foreach(kube_map(object, "metadata", "labels", NULL), key, v)
    {
        size_t i = 0;

        if (!str_starts(str_of(key), prefix))
            continue;
        while (i < m->n_extra && strcmp(m->extra[i], key + prefix.n) != 0)
            i++;
        if (i == MODEL_MAX_RESOURCES - 1)
            return api_error_set(error, 422, "workloads request more than %d kinds of resources",
                                 MODEL_MAX_RESOURCES);
        m->extra[i] = key + prefix.n;
        m->n_extra = size_max(m->n_extra, i + 1);
    }
    return 0;
}

static int workload_read(struct fleet_model *m, struct model_workload *w, struct api_error *error)
{
    const json_t *o = snapshot_get(m->hub, KIND_WORKLOADS, m->namespace, w->name);

    w->object = o;
    if (!o)
        return api_error_set(error, 404, "there is no ManifestWorkReplicaSet %s in namespace %s", w->name,
                             m->namespace);
    w->app = label_read(o, "ManifestWorkReplicaSet", "app", error);
    w->kind = w->app ? label_read(o, "ManifestWorkReplicaSet", REQUESTED "-kind", error) : NULL;
    w->placement = workload_placement(o);
    if (!w->kind)
        return -EINVAL;
    if (!w->placement)
        return api_error_set(error, 422, "ManifestWorkReplicaSet %s has no spec.placementRefs", w->name);
    w->app_id = (uint32_t)strset_add(&m->apps, str_of(w->app));
    w->kind_id = (uint32_t)strset_add(&m->kinds, str_of(w->kind));
    basis_note(m, "ManifestWorkReplicaSet", w->name,
               json_pack("{s:o, s:s}", "labels", labels_that_count(o), "placementRef", w->placement));
    return workload_note_extras(m, o, error);
}

DEFINE_ORDER(workload_compare, struct model_workload, strcmp(a->name, b->name))

static int model_read_workloads(struct fleet_model *m, struct api_error *error)
{
    const json_t *list = json_object_get(m->request, "targetWorkloads");
    size_t n = json_array_size(list), first;
    uint32_t *replicas = model_alloc(m, n, sizeof(uint32_t));
    int64_t *requests;
    int r = 0;

    m->workloads = model_alloc(m, n, sizeof(*m->workloads));
    for (size_t i = 0; i < n && r == 0; i++) {
        api_error_at(error, "targetWorkloads[%zu].name", i);
        m->workloads[i].name = kube_str(json_array_get(list, i), "name", NULL);
        m->workloads[i].at = i;
        r = workload_read(m, &m->workloads[i], error);
    }
    if (r < 0)
        return r;
    qsort(m->workloads, n, sizeof(*m->workloads), workload_compare);
    m->problem.n_workloads = n;
    m->problem.n_resources = 1 + m->n_extra;
    m->problem.replicas = replicas;
    m->problem.requests = requests = model_alloc(m, n * m->problem.n_resources, sizeof(int64_t));
    for (size_t i = 0; i < n && r == 0; i++) {
        const struct model_workload *w = &m->workloads[i];

        api_error_at(error, "targetWorkloads[%zu].name", w->at);
        replicas[i] = (uint32_t)number_of(json_array_get(list, w->at), "replicas", 1);
        (void)strset_add(&m->workload_names, str_of(w->name));
        first = strset_add(&m->placements, str_of(w->placement));
        if (first != i) /* both would write it */
            return api_error_set(error, 422,
                                 "ManifestWorkReplicaSets %s and %s refer to the same Placement %s",
                                 m->workloads[first].name, w->name, w->placement);
        r = amounts_read(m, w->object, "ManifestWorkReplicaSet", REQUESTED,
                         &requests[i * m->problem.n_resources], error);
    }
    return r;
}

/* ---- Clusters and their policies ---- */

DEFINE_ORDER(setting_compare, struct model_setting,
             strcmp(a->cluster_name, b->cluster_name) ?: strcmp(a->kind, b->kind)
                 ?: strcmp(a->device, b->device))

static int setting_read(struct fleet_model *m, struct model_setting *s, struct api_error *error)
{
    s->object = snapshot_get(m->hub, KIND_POLICIES, m->namespace, s->policy);
    if (!s->object)
        return api_error_set(error, 404, "there is no Policy %s in namespace %s", s->policy, m->namespace);
    s->kind = label_read(s->object, "Policy", SUPPLIED "-kind", error);
    s->device = s->kind ? label_read(s->object, "Policy", SUPPLIED "-device", error) : NULL;
    if (!s->device)
        return -EINVAL;
    basis_note(m, "Policy", s->policy, json_pack("{s:o}", "labels", labels_that_count(s->object)));
    return 0;
}

static int cluster_read(struct fleet_model *m, size_t c, const json_t *asked, struct api_error *error)
{
    const char *name = kube_str(asked, "name", NULL);
    const json_t *cluster = snapshot_get(m->hub, KIND_CLUSTERS, "", name), *one;
    size_t i;

    api_error_at(error, "clusters[%zu].name", c);
    m->clusters[c] = cluster;
    if (!cluster)
        return api_error_set(error, 404, "there is no ManagedCluster %s", name);
    if (strset_add(&m->cluster_names, str_of(name)) != c)
        return api_error_set(error, 422, "cluster %s appears twice", name);
    basis_note(m, "ManagedCluster", name, json_pack("{s:o}", "labels", labels_that_count(cluster)));
    json_array_foreach(json_object_get(asked, "availablePolicies"), i, one)
    {
        struct model_setting *s = &m->settings[m->problem.n_settings++];

        *s = (struct model_setting){
            .cluster_name = name, .policy = cstr(kube_str(one, "name", NULL)), .cluster = c, .at = i};
        api_error_at(error, "clusters[%zu].availablePolicies[%zu].name", c, i);
        if (setting_read(m, s, error) < 0)
            return -EINVAL;
    }
    return 0;
}

/* Settings are in order: those of a cluster and a kind are one site. */
static int model_add_sites(struct fleet_model *m, struct api_error *error)
{
    struct opt_problem *p = &m->problem;
    int64_t *supplies = model_alloc(m, p->n_settings * p->n_resources, sizeof(int64_t));
    uint32_t *first = (uint32_t *)(uintptr_t)p->first_setting;
    int r = 0;

    for (size_t i = 0; i < p->n_settings && r == 0; i++) {
        struct model_setting *o = &m->settings[i], *last = i ? o - 1 : NULL;
        bool same = last && last->cluster == o->cluster && strcmp(last->kind, o->kind) == 0;

        api_error_at(error, "clusters");
        if (same && strcmp(last->device, o->device) == 0)
            return api_error_set(error, 422, "cluster %s: Policies %s and %s both supply device %s",
                                 o->cluster_name, last->policy, o->policy, o->device);
        if (!same) {
            first[p->n_sites] = (uint32_t)i;
            m->sites[p->n_sites++] = (struct model_site){o->cluster, o->cluster_name, o->kind,
                                                         (uint32_t)strset_add(&m->kinds, str_of(o->kind))};
        }
        o->site = (uint32_t)p->n_sites - 1;
        api_error_at(error, "clusters[%zu].availablePolicies[%zu].name", o->cluster, o->at);
        r = amounts_read(m, o->object, "Policy", SUPPLIED, &supplies[i * p->n_resources], error);
    }
    p->supplies = supplies;
    return r;
}

static size_t count_decisions(const struct snapshot *hub)
{
    size_t n = 0, at = 0;
    const json_t *o;

    while ((o = snapshot_next(hub, KIND_DECISIONS, &at)))
        n += json_array_size(kube_list(o, "status", "decisions", NULL));
    return n;
}

static int model_read_clusters(struct fleet_model *m, struct api_error *error)
{
    const json_t *list = json_object_get(m->request, "clusters"), *one;
    size_t n = 0, i;
    int r = 0;

    json_array_foreach(list, i, one) n += json_array_size(json_object_get(one, "availablePolicies"));
    m->n_clusters = json_array_size(list);
    m->clusters = model_alloc(m, m->n_clusters, sizeof(*m->clusters));
    m->settings = model_alloc(m, n, sizeof(*m->settings));
    /* There is room for clusters where workloads run without being offered there. */
    m->sites = model_alloc(m, n + count_decisions(m->hub), sizeof(*m->sites));
    m->problem.first_setting = model_alloc(m, n + count_decisions(m->hub) + 1, sizeof(uint32_t));
    for (i = 0; i < m->n_clusters && r == 0; i++)
        r = cluster_read(m, i, json_array_get(list, i), error);
    if (r < 0)
        return r;
    qsort(m->settings, n, sizeof(*m->settings), setting_compare);
    return model_add_sites(m, error);
}

/* ---- Where workloads run ---- */

/* Of a cluster and a kind; the next one after those in `sites` if there is none. */
static size_t site_of(struct fleet_model *m, struct strset *sites, const char *cluster, uint32_t kind_id)
{
    char *key = model_alloc(m, strlen(cluster) + 12, 1);

    (void)sprintf(key, "%s/%" PRIu32, cluster, kind_id);
    return strset_add(sites, str_of(key));
}

/* Those of the targets' Placements. Adds sites without settings where nothing is offered. */
static size_t model_list_running(struct fleet_model *m, struct strset *sites, struct problem_pair *into)
{
    size_t n = 0, at = 0, i;
    const json_t *o, *one;

    while ((o = snapshot_next(m->hub, KIND_DECISIONS, &at))) {
        size_t w = strset_find(&m->placements, str_of(kube_label(o, PLACEMENT_LABEL))), site;

        if (w == SIZE_MAX || strcmp(kube_namespace(o), m->namespace) != 0)
            continue;
        json_array_foreach(kube_list(o, "status", "decisions", NULL), i, one)
        {
            const struct model_workload *workload = &m->workloads[w];
            const char *cluster = kube_str(one, "clusterName", NULL);

            if (!cluster || !*cluster)
                continue;
            site = site_of(m, sites, cluster, workload->kind_id);
            if (site == m->problem.n_sites)
                m->sites[m->problem.n_sites++] =
                    (struct model_site){SIZE_MAX, cluster, workload->kind, workload->kind_id};
            into[n++] = (struct problem_pair){(uint32_t)w, (uint32_t)site};
        }
    }
    return n;
}

static void model_read_running(struct fleet_model *m)
{
    struct opt_problem *p = &m->problem;
    struct problem_pair *pairs = model_alloc(m, count_decisions(m->hub), sizeof(*pairs));
    uint32_t *first = (uint32_t *)(uintptr_t)p->first_setting;
    size_t n, n_offered = p->n_sites;
    struct strset sites = {0};
    json_t *names = NULL;

    for (size_t i = 0; i < p->n_sites; i++)
        (void)site_of(m, &sites, m->sites[i].cluster_name, m->sites[i].kind_id);
    n = model_list_running(m, &sites, pairs);
    strset_done(&sites);
    for (size_t i = n_offered; i <= p->n_sites; i++)
        first[i] = (uint32_t)p->n_settings;
    qsort(pairs, n, sizeof(*pairs), problem_pair_compare);
    for (size_t i = 0; i < n; i++) {
        const struct problem_pair *last = p->n_running ? &pairs[p->n_running - 1] : NULL;

        if (last && problem_pair_compare(&pairs[i], last) == 0)
            continue;
        if (!last || last->workload != pairs[i].workload) {
            names = json_array();
            basis_note(m, "PlacementDecision", m->workloads[pairs[i].workload].placement,
                       json_pack("{s:o}", "clusters", names));
        }
        (void)json_array_append_new(names, json_string(m->sites[pairs[i].site].cluster_name));
        pairs[p->n_running++] = pairs[i];
    }
    p->running = pairs;
}

/* ---- Pins and forbidden places ---- */

/* The index of a name; SIZE_MAX after the error. */
static size_t name_find(const struct strset *names, const char *name, const char *list,
                        struct api_error *error)
{
    size_t i = strset_find(names, str_of(name));

    if (i == SIZE_MAX)
        (void)api_error_set(error, 422, "%s: %s is not among %s", error->field, cstr(name), list);
    return i;
}

/* Marks the clusters that the rule, the at-th of the option, names. */
static int rule_mark_clusters(const struct fleet_model *m, bool *is_named, const json_t *rule,
                              const char *option, size_t at, struct api_error *error)
{
    const json_t *one;
    size_t i, found;

    json_array_foreach(json_object_get(rule, "clusters"), i, one)
    {
        api_error_at(error, "%s[%zu].clusters[%zu]", option, at, i);
        found = name_find(&m->cluster_names, json_string_value(one), "clusters", error);
        if (found == SIZE_MAX)
            return -EINVAL;
        is_named[found] = true;
    }
    return 0;
}

static int model_apply_rules(struct fleet_model *m, int16_t *scores, const char *option, bool is_pin,
                             struct api_error *error)
{
    CLEANUP(cleanup_free) bool *is_named = xcalloc(m->n_clusters + 1, sizeof(bool));
    const json_t *rule;
    size_t i, w;

    json_array_foreach(json_object_get(m->request, option), i, rule)
    {
        api_error_at(error, "%s[%zu].workload", option, i);
        w = name_find(&m->workload_names, kube_str(rule, "workload", NULL), "targetWorkloads", error);
        if (w == SIZE_MAX)
            return -EINVAL;
        memset(is_named, 0, m->n_clusters * sizeof(bool));
        if (rule_mark_clusters(m, is_named, rule, option, i, error) < 0)
            return -EINVAL;
        for (size_t s = 0; s < m->problem.n_settings; s++) {
            int16_t *score = &scores[s * m->problem.n_workloads + w];

            if (is_named[m->settings[s].cluster] == is_pin || *score == SCORE_IMPOSSIBLE)
                continue;
            *score = SCORE_IMPOSSIBLE;
            m->workloads[w].lost_to_rules = true;
        }
    }
    return 0;
}

int request_make_model(struct fleet_model **ret, const json_t *request, const struct snapshot *hub,
                       struct api_error *error)
{
    CLEANUP(cleanup_model_free) struct fleet_model *m = model_new(request, request_namespace(request), hub);
    int16_t *scores = NULL;
    int64_t max_moves = number_of(json_object_get(request, "moves"), "max", -1);
    int r;

    m->problem.max_moves = max_moves < 0 ? SIZE_MAX : (size_t)max_moves;
    r = preference_read(m, error) ?: model_read_workloads(m, error) ?: model_read_clusters(m, error);
    if (r == 0)
        model_read_running(m);
    r = r ?: preference_read_scores(m, &scores, error);
    r = r ?: model_apply_rules(m, scores, "pin", true, error);
    r = r ?: model_apply_rules(m, scores, "forbid", false, error);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(m);
    return 0;
}
