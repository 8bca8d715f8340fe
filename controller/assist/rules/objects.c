#include "controller/assist/rules/objects.h"

#include "controller/assist/api/operation.h"
#include "controller/assist/rules/snapshot.h"
#include "controller/kube/json.h"
#include "controller/optimize/problem.h"
#include "exporter/base/hash.h"
#include "exporter/base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#define CLUSTER_GROUP "cluster.open-cluster-management.io"
#define POLICY_GROUP  "policy.open-cluster-management.io"

/* PlacementDecisions have the Placement's name as a label's value, of at most 63 bytes. */
enum { MAX_NAME_CLUSTER = 63 - sizeof("placement--01234567") + 1, NAME_BYTES = 64 };

struct making {
    const struct model *m;
    const struct solution *s;
    const char *hash;
    uint32_t id;
    json_t *list;
};

/* ---- Placements ---- */

static const char *const selector_labels[] = {"cluster-name", "name"};

/* The label by which a Placement can select the cluster; NULL without. */
static const char *selector_of(const struct model *m, const struct model_site *site)
{
    for (size_t i = 0; i < ARRAY_SIZE(selector_labels); i++)
        if (strcmp(cstr(kube_label(m->clusters[site->cluster].object, selector_labels[i])),
                   site->cluster_name) == 0)
            return selector_labels[i];
    return NULL;
}

static int check_selectors(const struct making *mk, struct objection *ob)
{
    for (size_t i = 0; i < mk->m->problem.n_sites; i++) {
        const struct model_site *site = &mk->m->sites[i];
        const char *name = site->cluster_name;

        if (mk->s->setting[i] == NO_SETTING || selector_of(mk->m, site))
            continue;
        objection_at(ob, "clusters[%zu].name", site->cluster);
        return objection_set(
            ob, 422,
            "no Placement can select ManagedCluster %s: it has no label cluster-name=%s; run: "
            "kubectl label managedcluster %s cluster-name=%s",
            name, name, name, name);
    }
    return 0;
}

/* The names are taken. */
static json_t *predicate_of(const char *label, json_t *names, bool wants_claim)
{
    json_t *selector =
        json_array_size(names) == 1
            ? json_pack("{s:{s:{s:O}}}", "labelSelector", "matchLabels", label, json_array_get(names, 0))
            : json_pack("{s:{s:[{s:s, s:s, s:O}]}}", "labelSelector", "matchExpressions", "key", label,
                        "operator", "In", "values", names);

    json_decref(names);
    if (wants_claim)
        (void)json_object_set_new(selector, "claimSelector",
                                  json_pack("{s:[{s:s, s:s, s:[s]}]}", "matchExpressions", "key",
                                            POLICY_CLAIM, "operator", "In", "values", "compliant"));
    return json_pack("{s:o}", "requiredClusterSelector", selector);
}

/* Predicates are alternatives: one for each label that selects clusters. */
static json_t *predicates_of(const struct making *mk, const struct problem_pair *placed, size_t n,
                             bool wants_claim)
{
    json_t *predicates = json_array();

    for (size_t by = 0; by < ARRAY_SIZE(selector_labels); by++) {
        json_t *names = json_array();

        for (size_t i = 0; i < n; i++) {
            const struct model_site *site = &mk->m->sites[placed[i].site];

            if (selector_of(mk->m, site) == selector_labels[by])
                (void)json_array_append_new(names, json_string(site->cluster_name));
        }
        if (json_array_size(names))
            (void)json_array_append_new(predicates, predicate_of(selector_labels[by], names, wants_claim));
        else
            json_decref(names);
    }
    return predicates;
}

static json_t *metadata_of(const struct making *mk, const char *name)
{
    return json_pack("{s:s, s:s, s:{s:s}, s:{s:s}}", "name", name, "namespace", mk->m->namespace, "labels",
                     GENERATED_LABEL, "true", "annotations", PLAN_ANNOTATION, mk->hash);
}

static void make_placement(struct making *mk, const char *name, const struct problem_pair *placed, size_t n,
                           bool wants_claim)
{
    (void)json_array_append_new(mk->list, json_pack("{s:s, s:s, s:o, s:{s:i, s:o}}", "apiVersion",
                                                    CLUSTER_GROUP "/v1beta1", "kind", "Placement", "metadata",
                                                    metadata_of(mk, name), "spec", "numberOfClusters", (int)n,
                                                    "predicates", predicates_of(mk, placed, n, wants_claim)));
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

static void make_binding(struct making *mk, const char *cluster, const char *placement, json_t *subjects)
{
    char name[NAME_BYTES];

    cluster_object_name(name, "binding", cluster, mk->id);
    (void)json_array_append_new(mk->list,
                                json_pack("{s:s, s:s, s:o, s:{s:s, s:s, s:s}, s:o}", "apiVersion",
                                          POLICY_GROUP "/v1", "kind", "PlacementBinding", "metadata",
                                          metadata_of(mk, name), "placementRef", "apiGroup", CLUSTER_GROUP,
                                          "kind", "Placement", "name", placement, "subjects", subjects));
}

/* For each cluster with policies in force: its sites are neighbours. */
static void make_clusters(struct making *mk, bool bindings)
{
    const struct model *m = mk->m;

    for (size_t i = 0, end; i < m->problem.n_sites && m->sites[i].cluster != SIZE_MAX; i = end) {
        json_t *subjects = json_array();
        char name[NAME_BYTES];

        for (end = i; end < m->problem.n_sites && m->sites[end].cluster == m->sites[i].cluster; end++)
            if (mk->s->setting[end] != NO_SETTING)
                (void)json_array_append_new(subjects, json_pack("{s:s, s:s, s:s}", "apiGroup", POLICY_GROUP,
                                                                "kind", "Policy", "name",
                                                                m->settings[mk->s->setting[end]].policy));
        cluster_object_name(name, "placement", m->sites[i].cluster_name, mk->id);
        if (json_array_size(subjects) && !bindings)
            make_placement(mk, name, &(struct problem_pair){0, (uint32_t)i}, 1, false);
        if (json_array_size(subjects) && bindings)
            make_binding(mk, m->sites[i].cluster_name, name, json_incref(subjects));
        json_decref(subjects);
    }
}

int objects_make(json_t **ret, const struct model *m, const struct solution *s, uint32_t id, const char *hash,
                 struct objection *ob)
{
    json_auto_t *list = json_array();
    struct making mk = {m, s, hash, id, list};
    int r = check_selectors(&mk, ob);

    if (r < 0)
        return r;
    make_clusters(&mk, false);
    make_clusters(&mk, true);
    for (size_t i = 0, end; i < s->n_placed; i = end) {
        for (end = i; end < s->n_placed && s->placed[end].workload == s->placed[i].workload;)
            end++;
        make_placement(&mk, m->workloads[s->placed[i].workload].placement, &s->placed[i], end - i, true);
    }
    *ret = TAKE_PTR(list);
    return 0;
}

/* ---- As YAML ---- */

/* Words that YAML 1.1 or 1.2 might take for something else are shorter, and numbers begin with a digit. */
static int yaml_string(struct buf *into, struct str s)
{
    bool is_plain = s.n > 5 && str_has_only(s, "-._/") && str_has_only((struct str){s.p, 1}, "") &&
                    (s.p[0] < '0' || s.p[0] > '9');

    return is_plain ? buf_put_str(into, s) : buf_put_json(into, s);
}

/* The value after "key:" or "-". The first line of a map in a list has its indentation already. Lists in maps
 * are indented as their keys are, as kubectl prints them. */
static int yaml_value(struct buf *into, const json_t *v, int depth, bool in_list)
{
    bool is_first = in_list;
    const char *key;
    json_t *item;
    size_t i;
    int r = 0;

    if (json_is_string(v))
        return buf_putc(into, ' ') ?: yaml_string(into, kube_text(v, NULL)) ?: buf_putc(into, '\n');
    if (!json_is_object(v) && !json_is_array(v))
        return buf_printf(into, " %" JSON_INTEGER_FORMAT "\n", json_integer_value(v));
    r = buf_puts(into, in_list ? " " : "\n");
    json_object_foreach((json_t *)(uintptr_t)v, key, item)
    {
        r = r ?: buf_printf(into, "%*s%s:", is_first ? 0 : depth * 2, "", key);
        r = r ?: yaml_value(into, item, json_is_array(item) ? depth : depth + 1, false);
        is_first = false;
    }
    json_array_foreach(v, i, item)
    {
        r = r ?: buf_printf(into, "%*s-", depth * 2, "") ?: yaml_value(into, item, depth + 1, true);
    }
    return r;
}

int yaml_print(const json_t *objects, struct buf *into)
{
    const char *key;
    json_t *o, *v;
    size_t i;
    int r = 0;

    json_array_foreach(objects, i, o)
    {
        r = r ?: buf_puts(into, i ? "---\n" : "");
        json_object_foreach(o, key, v)
        {
            r = r ?: buf_printf(into, "%s:", key);
            r = r ?: yaml_value(into, v, json_is_array(v) ? 0 : 1, false);
        }
    }
    return r;
}
