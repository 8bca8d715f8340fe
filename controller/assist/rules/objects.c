#include "controller/assist/rules/objects.h"

#include "controller/assist/rules/model.h"
#include "controller/assist/rules/request.h"
#include "controller/kube/json.h"
#include "controller/optimize/problem.h"
#include "exporter/base/buf.h"
#include "exporter/base/hash.h"
#include "exporter/base/json.h"

#include <errno.h>
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
        if (json_array_append_new(list, json_string(names[i])) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static json_t *cel_selector(const char *const *names, size_t n)
{
    BUF_AUTO(text, 4 << 20);
    int r =
        buf_puts(&text, n == 1 ? "managedCluster.metadata.name == " : "managedCluster.metadata.name in [");

    for (size_t i = 0; i < n && r == 0; i++) {
        r = i ? buf_puts(&text, ", ") : 0;
        r = r ?: buf_put_json(&text, str_of(names[i]));
    }
    r = r ?: n == 1 ? 0 : buf_putc(&text, ']');
    return r < 0 ? NULL : json_pack("{s:{s:[s%]}}", "celSelector", "celExpressions", text.p, text.n);
}

static json_t *label_selector(const char *label, const char *const *names, size_t n)
{
    if (n == 1)
        return json_pack("{s:{s:{s:s}}}", "labelSelector", "matchLabels", label, names[0]);
    return json_pack("{s:{s:[{s:s, s:s, s:o}]}}", "labelSelector", "matchExpressions", "key", label,
                     "operator", "In", "values", names_list(names, n));
}

static int predicate_add(json_t *predicates, enum selector by, const char *const *names, size_t n,
                         bool wants_claim)
{
    json_t *selector = by == BY_CEL ? cel_selector(names, n) : label_selector(selector_labels[by], names, n);
    json_t *claim = NULL;

    if (wants_claim) {
        claim = json_pack("{s:[{s:s, s:s, s:[s]}]}", "matchExpressions", "key", POLICY_CLAIM, "operator",
                          "In", "values", "compliant");
        if (json_object_set_new(selector, "claimSelector", claim) < 0) {
            json_decref(selector);
            return -ENOMEM;
        }
    }
    return json_array_append_new(predicates, json_pack("{s:o}", "requiredClusterSelector", selector)) < 0
               ? -ENOMEM
               : 0;
}

struct making {
    const struct model *m;
    const struct objects_run *run;
    struct objection *ob;
    json_t *list;
    enum selector *selectors; /* [cluster] of the request: chosen when first needed */
    bool *is_chosen;
    const char **names; /* scratch */
};

static int making_selector(struct making *mk, size_t cluster, enum selector *ret)
{
    int r = mk->is_chosen[cluster] ? 0 : selector_choose(mk->m->in, cluster, &mk->selectors[cluster], mk->ob);

    mk->is_chosen[cluster] = r == 0;
    *ret = mk->selectors[cluster];
    return r;
}

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

            r = making_selector(mk, site->cluster, &own);
            if (own == by)
                mk->names[found++] = site->cluster_name;
        }
        if (r == 0 && found)
            r = predicate_add(predicates, (enum selector)by, mk->names, found, wants_claim);
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

static int making_add(struct making *mk, json_t *object)
{
    return json_array_append_new(mk->list, object) < 0 ? -ENOMEM : 0;
}

static int making_placement(struct making *mk, const char *name, const struct problem_pair *placed, size_t n,
                            bool wants_claim)
{
    json_t *predicates = NULL;
    int r = making_predicates(mk, placed, n, wants_claim, &predicates);

    return r
               ?: making_add(mk, json_pack("{s:s, s:s, s:o, s:{s:i, s:o}}", "apiVersion",
                                           CLUSTER_GROUP "/v1beta1", "kind", "Placement", "metadata",
                                           metadata_of(mk, name), "spec", "numberOfClusters", (int)n,
                                           "predicates", predicates));
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
        if (s->setting[i] != NO_SETTING &&
            json_array_append_new(list, json_pack("{s:s, s:s, s:s}", "apiGroup", POLICY_GROUP, "kind",
                                                  "Policy", "name", m->settings[s->setting[i]].policy)) < 0) {
            json_decref(list);
            return NULL;
        }
    return list;
}

static int making_binding(struct making *mk, const struct solution *s, size_t site, const char *placement)
{
    char name[NAME_BYTES];

    cluster_object_name(name, "binding", mk->m->sites[site].cluster_name, mk->run->id);
    return making_add(mk, json_pack("{s:s, s:s, s:o, s:{s:s, s:s, s:s}, s:o}", "apiVersion",
                                    POLICY_GROUP "/v1", "kind", "PlacementBinding", "metadata",
                                    metadata_of(mk, name), "placementRef", "apiGroup", CLUSTER_GROUP, "kind",
                                    "Placement", "name", placement, "subjects", subjects_of(mk->m, s, site)));
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
        r = bindings ? making_binding(mk, s, site, name)
                     : making_placement(mk, name, &(struct problem_pair){0, (uint32_t)site}, 1, false);
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
    size_t n = m->in->request->n_clusters;
    CLEANUP(cleanup_free) enum selector *selectors = xcalloc(n + 1, sizeof(*selectors));
    CLEANUP(cleanup_free) bool *is_chosen = xcalloc(n + 1, sizeof(bool));
    CLEANUP(cleanup_free) const char **names = xcalloc(m->problem.n_sites + 1, sizeof(*names));
    json_auto_t *list = json_array();
    struct making mk = {m, run, ob, list, selectors, is_chosen, names};
    int r = 0;

    r = r ?: making_clusters(&mk, s, false);
    r = r ?: making_clusters(&mk, s, true);
    r = r ?: making_workloads(&mk, s);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(list);
    return 0;
}

/* ---- As YAML ---- */

enum { MAX_DEPTH = 32 };

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

static int yaml_string(struct str s, struct buf *into)
{
    return yaml_is_plain(s) ? buf_put_str(into, s) : buf_put_json(into, s);
}

static int yaml_indent(unsigned depth, struct buf *into)
{
    return buf_printf(into, "%*s", (int)depth * 2, "");
}

static int yaml_value(const json_t *v, unsigned depth, bool after_dash, struct buf *into);

/* What follows "key:" or "- ". */
static int yaml_inner(const json_t *v, unsigned depth, bool after_dash, struct buf *into)
{
    bool is_empty = json_is_object(v) ? json_object_size(v) == 0 : json_array_size(v) == 0;
    int r;

    if (!json_is_object(v) && !json_is_array(v)) {
        r = after_dash ? 0 : buf_putc(into, ' ');
        r = r ?: json_is_string(v) ? yaml_string(kube_text(v, NULL), into) : kube_json_print(v, into);
        return r ?: buf_putc(into, '\n');
    }
    if (is_empty)
        return buf_printf(into, "%s%s\n", after_dash ? "" : " ", json_is_object(v) ? "{}" : "[]");
    r = after_dash ? 0 : buf_putc(into, '\n');
    return r ?: yaml_value(v, depth, after_dash, into);
}

/* A container that is not empty. The first line has its indentation already if it follows a dash. Lists in
 * maps are indented as their keys are, so that the two look as kubectl prints them. */
static int yaml_value(const json_t *v, unsigned depth, bool after_dash, struct buf *into)
{
    const char *key;
    json_t *item;
    size_t i;
    int r = depth > MAX_DEPTH ? -EFBIG : 0;

    json_object_foreach((json_t *)(uintptr_t)v, key, item)
    {
        r = r ?: after_dash ? 0 : yaml_indent(depth, into);
        r = r ?: yaml_string(str_of(key), into);
        r = r ?: buf_putc(into, ':');
        r = r ?: yaml_inner(item, json_is_array(item) ? depth : depth + 1, false, into);
        after_dash = false;
    }
    json_array_foreach(v, i, item)
    {
        r = r ?: after_dash ? 0 : yaml_indent(depth, into);
        r = r ?: buf_puts(into, "- ");
        r = r ?: yaml_inner(item, depth + 1, true, into);
        after_dash = false;
    }
    return r;
}

int yaml_print(const json_t *objects, struct buf *into)
{
    json_t *o;
    size_t i;
    int r = 0;

    json_array_foreach(objects, i, o)
    {
        r = r ?: i ? buf_puts(into, "---\n") : 0;
        r = r ?: yaml_value(o, 0, false, into);
    }
    return r;
}
