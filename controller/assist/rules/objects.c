#include "controller/assist/rules/objects.h"

#include "controller/assist/rules/model.h"
#include "controller/assist/rules/request.h"
#include "controller/kube/json.h"
#include "controller/optimize/problem.h"
#include "exporter/base/buf.h"
#include "exporter/base/hash.h"
#include "exporter/base/json.h"

#include <inttypes.h>
#include <stdio.h>

#define CLUSTER_GROUP "cluster.open-cluster-management.io"
#define POLICY_GROUP  "policy.open-cluster-management.io"

/* PlacementDecisions have the Placement's name as a label's value, of at most 63 bytes. */
enum { MAX_NAME_CLUSTER = 63 - sizeof("placement--01234567") + 1, NAME_BYTES = 64 };

/* How a Placement selects a cluster. */
enum selector { BY_CLUSTER_NAME, BY_NAME, BY_CEL, SELECTORS };

static const char *const selector_labels[] = {"cluster-name", "name"};

static int selector_choose(const struct inputs *in, size_t cluster, enum selector *ret, struct objection *ob)
{
    const json_t *o = in->clusters[cluster];
    const char *name = in->request->clusters[cluster].name;
    char field[64];

    for (*ret = BY_CLUSTER_NAME; *ret < BY_CEL; (*ret)++) {
        const char *value = kube_label(o, selector_labels[*ret]);

        if (value && strcmp(value, name) == 0)
            return 0;
    }
    if (in->has_cel)
        return 0;
    (void)snprintf(field, sizeof(field), "clusters[%zu].name", cluster);
    return objection_set(
        ob, 422, field,
        "no Placement can select ManagedCluster %s: it has no label cluster-name=%s, and the hub's "
        "Placements have no celSelector; run: kubectl label managedcluster %s cluster-name=%s",
        name, name, name, name);
}

/* ["a", "b"] */
static json_t *names_list(const char *const *names, size_t n)
{
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        (void)json_array_append_new(list, json_string(names[i]));
    return list;
}

static json_t *cel_selector(const char *const *names, size_t n)
{
    json_auto_t *list = names_list(names, n);
    CLEANUP(cleanup_free)
    char *text = n == 1 ? json_dumps(json_array_get(list, 0), JSON_ENCODE_ANY) : json_dumps(list, 0);

    return json_pack("{s:{s:[s++]}}", "celSelector", "celExpressions", "managedCluster.metadata.name ",
                     n == 1 ? "== " : "in ", text);
}

static json_t *label_selector(const char *label, const char *const *names, size_t n)
{
    if (n == 1)
        return json_pack("{s:{s:{s:s}}}", "labelSelector", "matchLabels", label, names[0]);
    return json_pack("{s:{s:[{s:s, s:s, s:o}]}}", "labelSelector", "matchExpressions", "key", label,
                     "operator", "In", "values", names_list(names, n));
}

static json_t *predicate_of(enum selector by, const char *const *names, size_t n, bool wants_claim)
{
    json_t *selector = by == BY_CEL ? cel_selector(names, n) : label_selector(selector_labels[by], names, n);

    if (wants_claim)
        (void)json_object_set_new(selector, "claimSelector",
                                  json_pack("{s:[{s:s, s:s, s:[s]}]}", "matchExpressions", "key",
                                            POLICY_CLAIM, "operator", "In", "values", "compliant"));
    return json_pack("{s:o}", "requiredClusterSelector", selector);
}

struct making {
    const struct model *m;
    const struct objects_run *run;
    struct objection *ob;
    json_t *list;
    const char **names; /* scratch */
};

/* Predicates are alternatives: one for each way to select. */
static int making_predicates(struct making *mk, const struct problem_pair *placed, size_t n, bool wants_claim,
                             json_t **ret)
{
    json_t *predicates = json_array();
    int r = 0;

    for (unsigned by = 0; by < SELECTORS && r == 0; by++) {
        size_t found = 0;

        for (size_t i = 0; i < n && r == 0; i++) {
            const struct model_site *site = &mk->m->sites[placed[i].site];
            enum selector own = BY_CEL;

            r = selector_choose(mk->m->in, site->cluster, &own, mk->ob);
            if (own == by)
                mk->names[found++] = site->cluster_name;
        }
        if (r == 0 && found)
            (void)json_array_append_new(predicates,
                                        predicate_of((enum selector)by, mk->names, found, wants_claim));
    }
    if (r < 0)
        json_decref(predicates);
    else
        *ret = predicates;
    return r;
}

static json_t *metadata_of(const struct making *mk, const char *name)
{
    return json_pack("{s:s, s:s, s:{s:s}, s:{s:s}}", "name", name, "namespace", mk->m->in->request->namespace,
                     "labels", GENERATED_LABEL, "true", "annotations", PLAN_ANNOTATION, mk->run->hash);
}

static int making_placement(struct making *mk, const char *name, const struct problem_pair *placed, size_t n,
                            bool wants_claim)
{
    json_t *predicates = NULL;
    int r = making_predicates(mk, placed, n, wants_claim, &predicates);

    if (r == 0)
        (void)json_array_append_new(
            mk->list, json_pack("{s:s, s:s, s:o, s:{s:i, s:o}}", "apiVersion", CLUSTER_GROUP "/v1beta1",
                                "kind", "Placement", "metadata", metadata_of(mk, name), "spec",
                                "numberOfClusters", (int)n, "predicates", predicates));
    return r;
}

/* "<kind>-<cluster>-<run>" */
static void cluster_object_name(char out[NAME_BYTES], const char *kind, const char *cluster, uint32_t id)
{
    size_t n = strlen(cluster);

    if (n <= MAX_NAME_CLUSTER)
        (void)snprintf(out, NAME_BYTES, "%s-%s-%08" PRIx32, kind, cluster, id);
    else
        (void)snprintf(out, NAME_BYTES, "%s-%.*s-%08" PRIx32 "-%08" PRIx32, kind, MAX_NAME_CLUSTER - 9,
                       cluster, (uint32_t)hash_lasting(str_of(cluster)), id);
}

/* The policies in force on the cluster of site `first`: its sites are neighbours. */
static json_t *subjects_of(const struct model *m, const struct solution *s, size_t first)
{
    json_t *list = json_array();

    for (size_t i = first; i < m->problem.n_sites && m->sites[i].cluster == m->sites[first].cluster; i++)
        if (s->setting[i] != NO_SETTING)
            (void)json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "apiGroup", POLICY_GROUP, "kind",
                                                        "Policy", "name", m->settings[s->setting[i]].policy));
    return list;
}

static void making_binding(struct making *mk, const struct solution *s, size_t site, const char *placement)
{
    char name[NAME_BYTES];

    cluster_object_name(name, "binding", mk->m->sites[site].cluster_name, mk->run->id);
    (void)json_array_append_new(mk->list, json_pack("{s:s, s:s, s:o, s:{s:s, s:s, s:s}, s:o}", "apiVersion",
                                                    POLICY_GROUP "/v1", "kind", "PlacementBinding",
                                                    "metadata", metadata_of(mk, name), "placementRef",
                                                    "apiGroup", CLUSTER_GROUP, "kind", "Placement", "name",
                                                    placement, "subjects", subjects_of(mk->m, s, site)));
}

/* The first site of each cluster that has a policy in force. */
static size_t next_cluster(const struct model *m, const struct solution *s, size_t site, size_t last)
{
    while (site < m->problem.n_sites &&
           (s->setting[site] == NO_SETTING || m->sites[site].cluster == SIZE_MAX ||
            (last != SIZE_MAX && m->sites[site].cluster == m->sites[last].cluster)))
        site++;
    return site;
}

static int making_clusters(struct making *mk, const struct solution *s, bool bindings)
{
    const struct model *m = mk->m;
    size_t last = SIZE_MAX, site = next_cluster(m, s, 0, last);
    int r = 0;

    for (; site < m->problem.n_sites && r == 0; last = site, site = next_cluster(m, s, site, last)) {
        char name[NAME_BYTES];

        cluster_object_name(name, "placement", m->sites[site].cluster_name, mk->run->id);
        if (bindings)
            making_binding(mk, s, site, name);
        else
            r = making_placement(mk, name, &(struct problem_pair){0, (uint32_t)site}, 1, false);
    }
    return r;
}

static int making_workloads(struct making *mk, const struct solution *s)
{
    int r = 0;

    for (size_t i = 0, end; i < s->n_placed && r == 0; i = end) {
        for (end = i; end < s->n_placed && s->placed[end].workload == s->placed[i].workload;)
            end++;
        r = making_placement(mk, mk->m->workloads[s->placed[i].workload].placement, &s->placed[i], end - i,
                             true);
    }
    return r;
}

int objects_make(json_t **ret, const struct model *m, const struct solution *s, const struct objects_run *run,
                 struct objection *ob)
{
    CLEANUP(cleanup_free) const char **names = xcalloc(m->problem.n_sites + 1, sizeof(*names));
    json_auto_t *list = json_array();
    struct making mk = {m, run, ob, list, names};
    int r = making_clusters(&mk, s, false);

    r = r ?: making_clusters(&mk, s, true);
    r = r ?: making_workloads(&mk, s);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(list);
    return 0;
}

/* ---- As YAML ---- */

/* Whether it reads as this string in YAML 1.1 and 1.2 without quotes: letters, digits and a few others, and
 * no word or number. */
static bool yaml_is_plain(struct str s)
{
    static const char *const words[] = {"null", "true", "false", "yes", "no", "on", "off", "y", "n"};
    bool has_letter = false;

    if (s.n == 0 || s.n > 256 || !str_has_only(s, "-._/") || !str_has_only((struct str){s.p, 1}, "/"))
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        if (str_eq_nocase(s, str_of(words[i])))
            return false;
    /* "0x1f", "1e3", "0b1", "1_000" and "12" begin with a digit; a word that ends in one of g-z is none. */
    if (s.p[0] >= '0' && s.p[0] <= '9')
        for (size_t i = 0; i < s.n; i++)
            has_letter = has_letter || (s.p[i] >= 'g' && s.p[i] <= 'z' && s.p[i] != 'o' && s.p[i] != 'x');
    else
        has_letter = true;
    return has_letter;
}

/* The first error stays. */
struct yaml {
    struct buf *into;
    int r;
};

static void PRINTF_LIKE(2, 3) yaml_put(struct yaml *y, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    y->r = y->r ?: buf_vprintf(y->into, fmt, args);
    va_end(args);
}

static void yaml_string(struct yaml *y, struct str s)
{
    y->r = y->r ?: yaml_is_plain(s) ? buf_put_str(y->into, s) : buf_put_json(y->into, s);
}

static void yaml_value(struct yaml *y, const json_t *v, unsigned depth, bool after_dash);

/* What follows "key:" or "- ". */
static void yaml_inner(struct yaml *y, const json_t *v, unsigned depth, bool after_dash)
{
    bool is_empty = json_is_object(v) ? json_object_size(v) == 0 : json_array_size(v) == 0;
    const char *space = after_dash ? "" : " ";

    if (json_is_string(v)) {
        yaml_put(y, "%s", space);
        yaml_string(y, kube_text(v, NULL));
        yaml_put(y, "\n");
    } else if ((json_is_object(v) || json_is_array(v)) && !is_empty) {
        yaml_put(y, "%s", after_dash ? "" : "\n");
        yaml_value(y, v, depth, after_dash);
    } else {
        yaml_put(y, "%s", space);
        y->r = y->r ?: kube_json_print(v, y->into);
        yaml_put(y, "\n");
    }
}

/* A container that is not empty. The first line has its indentation already if it follows a dash. Lists in
 * maps are indented as their keys are, so that the two look as kubectl prints them. */
static void yaml_value(struct yaml *y, const json_t *v, unsigned depth, bool after_dash)
{
    const char *key;
    json_t *item;
    size_t i;

    json_object_foreach((json_t *)(uintptr_t)v, key, item)
    {
        yaml_put(y, "%*s", after_dash ? 0 : (int)depth * 2, "");
        yaml_string(y, str_of(key));
        yaml_put(y, ":");
        yaml_inner(y, item, json_is_array(item) ? depth : depth + 1, false);
        after_dash = false;
    }
    json_array_foreach(v, i, item)
    {
        yaml_put(y, "%*s- ", after_dash ? 0 : (int)depth * 2, "");
        yaml_inner(y, item, depth + 1, true);
        after_dash = false;
    }
}

int yaml_print(const json_t *objects, struct buf *into)
{
    struct yaml y = {.into = into};
    json_t *o;
    size_t i;

    json_array_foreach(objects, i, o)
    {
        yaml_put(&y, "%s", i ? "---\n" : "");
        yaml_value(&y, o, 0, false);
    }
    return y.r;
}
