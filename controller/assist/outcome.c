#include "controller/assist/api_error.h"
#include "controller/assist/model.h"
#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/escape.h"
#include "exporter/base/hash.h"

#include "controller/assist/api.h"
#include "controller/assist/snapshot.h"
#include "controller/kube/json.h"
#include "controller/optimize/problem.h"

#include <inttypes.h>
#include <stdio.h>

#define POLICY_CLAIM  "policy-watcher-claim"
#define CLUSTER_GROUP "cluster.open-cluster-management.io"
#define POLICY_GROUP  "policy.open-cluster-management.io"

/* PlacementDecisions have the Placement's name as a label's value, of at most 63 bytes. */
enum { MAX_NAME_CLUSTER = 63 - sizeof("placement--01234567") + 1, NAME_BYTES = 64 };

/* ---- What has no place, and why ---- */

struct no_place {
    const struct fleet_model *m;
    const struct solution *s;
    const struct problem_pair *placed; /* the workload's replicas */
    size_t n_placed;
};

/* How many replicas of the workload are placed from this one on. */
static size_t placed_alike(const struct solution *s, size_t first, uint32_t workload)
{
    size_t end = first;

    while (end < s->n_placed && s->placed[end].workload == workload)
        end++;
    return end - first;
}

static bool has_pair(const struct problem_pair *list, size_t n, struct problem_pair pair)
{
    return n && bsearch(&pair, list, n, sizeof(pair), problem_pair_compare);
}

/* How many settings are left of those that a workload might use, as one rule after the other is kept. */
struct places {
    size_t supplied, scored, positive, fitting, gaining, free;
};

static struct places finding_count(const struct no_place *f, uint32_t w)
{
    const struct opt_problem *p = &f->m->problem;
    struct places n = {0};

    for (size_t setting = 0; setting < p->n_settings; setting++) {
        int16_t score = problem_score(p, setting, w);
        uint32_t site = f->m->settings[setting].site;

        n.supplied += f->m->sites[site].kind_id == f->m->workloads[w].kind_id;
        if (score == SCORE_IMPOSSIBLE)
            continue;
        n.scored++;
        n.positive += score > 0;
        if (!problem_fits(p, setting, w))
            continue;
        n.fitting++;
        if (score <= 0)
            continue;
        n.gaining++;
        n.free += !has_pair(f->placed, f->n_placed, (struct problem_pair){w, site});
    }
    return n;
}

/* The reason, and the sentence that explains it. */
static const char *finding_explain(const struct no_place *f, uint32_t w, char message[256])
{
    const struct model_workload *workload = &f->m->workloads[w];
    const struct opt_problem *p = &f->m->problem;
    struct places n = finding_count(f, w);
    const struct {
        bool holds;
        const char *reason, *message;
    } rows[] = {
        {!n.supplied, "KindDiffers", "No policy of the request supplies %.60s."},
        {!n.scored && workload->lost_to_rules, "Pinned",
         "pin and forbid leave no cluster that has a score for it."},
        {!n.scored, "NoScore", "No policy that supplies %.60s has a score for app %.60s."},
        {f->s->is_infeasible, "MoveBudget", "No answer within moves.max was found."},
        {!n.positive, "NegativeScore", "No score for it is above 0."},
        {!n.fitting, "NoCapacity", "No policy with a score for it supplies as much as one replica requests."},
        {!n.gaining, "NegativeScore", "No score is above 0 where it fits."},
        {!n.free, "NoCapacity",
         "A cluster holds one replica, and no further cluster has room and a score above 0."},
        {p->max_moves != SIZE_MAX && f->s->n_moves >= p->max_moves, "MoveBudget",
         "There is no room without moving others, and moves.max allows no further move."},
        {true, "NoCapacity", "Where it fits, the room is taken by workloads that gain more."},
    };
    size_t i = 0;

    while (!rows[i].holds)
        i++;
    (void)snprintf(message, 256, rows[i].message, workload->kind, workload->app);
    return rows[i].reason;
}

static void answer_left_out(json_t *list, const struct fleet_model *m, const struct solution *s)
{
    struct no_place f = {.m = m, .s = s, .placed = s->placed};

    for (uint32_t w = 0; w < m->problem.n_workloads; w++, f.placed += f.n_placed) {
        const char *reason;
        char message[256];

        f.n_placed = placed_alike(s, (size_t)(f.placed - s->placed), w);
        if (f.n_placed == m->problem.replicas[w])
            continue;
        reason = finding_explain(&f, w, message);
        (void)json_array_append_new(list, json_pack("{s:s, s:i, s:s, s:s}", "workload", m->workloads[w].name,
                                                    "replicas", (int)(m->problem.replicas[w] - f.n_placed),
                                                    "reason", reason, "message", message));
    }
}

/* ---- The answer ---- */

/* Thousandths as a number. */
static json_t *amount_value(int64_t v)
{
    return v % 1000 ? json_real((double)v / 1000) : json_integer(v / 1000);
}

static void answer_placements(json_t *list, const struct fleet_model *m, const struct solution *s)
{
    for (size_t i = 0; i < s->n_placed; i++) {
        const struct model_site *site = &m->sites[s->placed[i].site];
        size_t setting = s->setting[s->placed[i].site], w = s->placed[i].workload;

        (void)json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s, s:f}", "workload",
                                                    m->workloads[w].name, "cluster", site->cluster_name,
                                                    "device", m->settings[setting].device, "policy",
                                                    m->settings[setting].policy, "score",
                                                    model_points(m, problem_score(&m->problem, setting, w))));
    }
}

static void answer_clusters(json_t *list, const struct fleet_model *m, const struct solution *s)
{
    CLEANUP(cleanup_free) int64_t *used = xcalloc(m->problem.n_sites + 1, sizeof(int64_t));

    for (size_t i = 0; i < s->n_placed; i++)
        used[s->placed[i].site] += problem_request(&m->problem, s->placed[i].workload)[0];
    for (size_t i = 0; i < m->problem.n_sites; i++) {
        const struct model_setting *in_force =
            s->setting[i] == NO_SETTING ? NULL : &m->settings[s->setting[i]];

        if (m->sites[i].cluster == SIZE_MAX)
            continue;
        (void)json_array_append_new(
            list, json_pack("{s:s, s:s, s:s?, s:s?, s:o, s:o}", "name", m->sites[i].cluster_name, "kind",
                            m->sites[i].kind, "device", in_force ? in_force->device : NULL, "policy",
                            in_force ? in_force->policy : NULL, "supplied",
                            amount_value(in_force ? problem_supply(&m->problem, s->setting[i])[0] : 0),
                            "used", amount_value(used[i])));
    }
}

/* Both lists ascend: what a workload left is matched with what it gained, in order. */
static void answer_moves(json_t *list, const struct fleet_model *m, const struct solution *s)
{
    const struct opt_problem *p = &m->problem;
    size_t at = 0;

    for (size_t i = 0; i < p->n_running; i++) {
        const struct problem_pair from = p->running[i];
        const char *to = NULL;

        if (has_pair(s->placed, s->n_placed, from))
            continue;
        while (at < s->n_placed && (s->placed[at].workload < from.workload ||
                                    (s->placed[at].workload == from.workload &&
                                     has_pair(p->running, p->n_running, s->placed[at]))))
            at++;
        if (at < s->n_placed && s->placed[at].workload == from.workload)
            to = m->sites[s->placed[at++].site].cluster_name;
        (void)json_array_append_new(list, json_pack("{s:s, s:s, s:s?}", "workload",
                                                    m->workloads[from.workload].name, "from",
                                                    m->sites[from.site].cluster_name, "to", to));
    }
}

static void answer_note_claims(json_t *notes, const struct fleet_model *m, const struct solution *s)
{
    const char *first = NULL;
    size_t n = 0;

    for (size_t i = 0; i < m->problem.n_sites && m->sites[i].cluster != SIZE_MAX; i++) {
        const json_t *cluster = m->clusters[m->sites[i].cluster];

        if (s->setting[i] == NO_SETTING ||
            list_find(kube_list(cluster, "status", "clusterClaims", NULL), "name", POLICY_CLAIM))
            continue;
        first = first ? first : m->sites[i].cluster_name;
        n++;
    }
    if (n)
        list_note(notes,
                  "%zu clusters (first: %.100s) report no ClusterClaim %s: workloads wait there until a "
                  "policy watcher runs.",
                  n, first, POLICY_CLAIM);
}

/* A Policy that says it is for another cluster may be offered by mistake; it is planned with all the same. */
static void answer_note_foreign_policies(json_t *notes, const struct fleet_model *m)
{
    const struct model_setting *first = NULL;
    const char *owner = NULL, *by = NULL;
    size_t n = 0;

    for (size_t i = 0; i < m->problem.n_settings; i++) {
        const struct model_setting *s = &m->settings[i];
        const char *its_by, *cluster = policy_cluster(m->hub, s->object, &its_by);

        if (!cluster || strcmp(cluster, s->cluster_name) == 0)
            continue;
        n++;
        if (first)
            continue;
        first = s;
        owner = cluster;
        by = its_by;
    }
    if (n == 1)
        list_note(notes, "Policy %.253s is offered to cluster %.253s, but its %s says that it is for %.253s.",
                  first->policy, first->cluster_name, by, owner);
    else if (n)
        list_note(notes,
                  "%zu Policies are offered to clusters that they are not for. The first, %.253s, is offered "
                  "to %.253s, "
                  "but its %s says that it is for %.253s.",
                  n, first->policy, first->cluster_name, by, owner);
}

static void answer_notes(json_t *notes, const struct fleet_model *m, const struct solution *s)
{
    const struct snapshot_list *set_bindings = &m->hub->lists[KIND_SET_BINDINGS];

    if (m->is_rounded)
        list_note(notes, "Scores are rounded to multiples of %g.", 1 / m->per_point);
    if (m->n_expired)
        list_note(notes, "%zu AddOnPlacementScores have expired and count as missing.", m->n_expired);
    answer_note_foreign_policies(notes, m);
    answer_note_claims(notes, m, s);
    if (set_bindings->n == 0 && !set_bindings->lacks_kind)
        list_note(notes,
                  "Namespace %.100s has no ManagedClusterSetBinding: Placements there select no cluster.",
                  m->namespace);
}

static json_t *points_or_null(const struct fleet_model *m, int64_t units, bool is_known)
{
    return is_known ? json_real(model_points(m, units)) : json_null();
}

static const struct answer_list {
    const char *key;
    void (*fill)(json_t *list, const struct fleet_model *m, const struct solution *s);
} answer_lists[] = {
    {"placements", answer_placements}, {"clusters", answer_clusters}, {"moves", answer_moves},
    {"leftOut", answer_left_out},      {"notes", answer_notes},
};

json_t *answer_make(const struct fleet_model *m, const struct solution *s)
{
    bool has_bound = s->bound != INT64_MIN && s->bound != INT64_MAX;
    const char *status = s->is_infeasible ? "Infeasible" : s->objective == s->bound ? "Optimal" : "Feasible";
    json_t *totals = json_object(),
           *all = json_pack("{s:s, s:o, s:o, s:o, s:s, s:b}", "status", status, "objective_value",
                            points_or_null(m, s->objective, !s->is_infeasible), "bound",
                            points_or_null(m, s->bound, has_bound), "gap",
                            has_bound ? json_real(solution_gap(s)) : json_null(), "engine", cstr(s->engine),
                            "deadlineReached", (int)s->deadline_reached);

    for (size_t i = 0; i < ARRAY_SIZE(answer_lists); i++) {
        json_t *list = json_array();

        answer_lists[i].fill(list, m, s);
        /* Notes are never cut, and more are added later. */
        if (answer_lists[i].fill != answer_notes)
            (void)json_object_set_new(totals, answer_lists[i].key,
                                      json_integer((json_int_t)json_array_size(list)));
        (void)json_object_set_new(all, answer_lists[i].key, list);
    }
    (void)json_object_set_new(
        all, "missingScores",
        json_pack("{s:I, s:O}", "count", (json_int_t)m->n_missing, "first", m->missing));
    (void)json_object_set_new(all, "totals", totals);
    return all;
}

/* ---- For those who want few bytes ---- */

/* Printing finds the length, which texts and lists that are longer by themselves save. */
static bool answer_fits(const json_t *answer, size_t max_bytes)
{
    size_t least = json_string_length(json_object_get(answer, "output_yaml"));

    for (size_t i = 0; i < ARRAY_SIZE(answer_lists); i++)
        least += json_array_size(json_object_get(answer, answer_lists[i].key));
    return least <= max_bytes && json_dumpb(answer, NULL, 0, JSON_COMPACT) <= max_bytes;
}

/* Lists have at most n elements, but for the notes, which are the last of them. */
static json_t *answer_shorten(const json_t *answer, size_t n)
{
    json_t *out = json_copy((json_t *)(uintptr_t)answer),
           *notes = json_copy(json_object_get(answer, "notes"));

    (void)json_object_del(out, "output_yaml");
    for (size_t i = 0; i < ARRAY_SIZE(answer_lists) - 1; i++)
        (void)json_object_set_new(out, answer_lists[i].key,
                                  list_head(json_object_get(answer, answer_lists[i].key), n));
    list_note(notes,
              "Cut to fit: output_yaml is left out, and lists show at most %zu items; totals counts them "
              "all. POST /plan, or a larger maxBytes, shows the rest.",
              n);
    (void)json_object_set_new(out, "notes", notes);
    return out;
}

json_t *answer_cut(const json_t *answer, size_t max_bytes)
{
    size_t n = 1000;
    json_t *out = NULL;

    if (max_bytes == SIZE_MAX || answer_fits(answer, max_bytes))
        return json_incref((json_t *)(uintptr_t)answer);
    do {
        json_decref(out);
        n = n * 2 / 3;
        out = answer_shorten(answer, n);
    } while (n && !answer_fits(out, max_bytes));
    return out;
}

/* ---- Objects ---- */

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

static json_t *predicate_of(const char *label, json_t *names, bool wants_claim)
{
    json_t *selector =
        json_array_size(names) == 1
            ? json_pack("{s:{s:{s:O}}}", "labelSelector", "matchLabels", label, json_array_get(names, 0))
            : json_pack("{s:{s:[{s:s, s:s, s:O}]}}", "labelSelector", "matchExpressions", "key", label,
                        "operator", "In", "values", names);

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

/* For each cluster with policies in force: its sites are neighbours. */
static void make_clusters(struct making *mk, bool bindings)
{
    const struct fleet_model *m = mk->m;

    for (size_t i = 0, end; i < m->problem.n_sites && m->sites[i].cluster != SIZE_MAX; i = end) {
        json_auto_t *subjects = json_array();
        char name[NAME_BYTES], binding[NAME_BYTES];

        for (end = i; end < m->problem.n_sites && m->sites[end].cluster == m->sites[i].cluster; end++)
            if (mk->s->setting[end] != NO_SETTING)
                (void)json_array_append_new(subjects, json_pack("{s:s, s:s, s:s}", "apiGroup", POLICY_GROUP,
                                                                "kind", "Policy", "name",
                                                                m->settings[mk->s->setting[end]].policy));
        cluster_object_name(name, "placement", m->sites[i].cluster_name, mk->id);
        cluster_object_name(binding, "binding", m->sites[i].cluster_name, mk->id);
        if (json_array_size(subjects) && !bindings)
            make_placement(mk, name, &(struct problem_pair){0, (uint32_t)i}, 1, false);
        else if (json_array_size(subjects))
            (void)json_array_append_new(
                mk->list, json_pack("{s:s, s:s, s:o, s:{s:s, s:s, s:s}, s:O}", "apiVersion",
                                    POLICY_GROUP "/v1", "kind", "PlacementBinding", "metadata",
                                    metadata_of(mk, binding), "placementRef", "apiGroup", CLUSTER_GROUP,
                                    "kind", "Placement", "name", name, "subjects", subjects));
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
        n = placed_alike(s, i, s->placed[i].workload);
        make_placement(&mk, m->workloads[s->placed[i].workload].placement, &s->placed[i], n, true);
    }
    *ret = TAKE_PTR(list);
    return 0;
}

/* ---- As YAML ---- */

/* Words that YAML 1.1 or 1.2 might take for something else are shorter, and numbers begin with a digit. */
static void yaml_string(struct buf *into, struct str s)
{
    bool is_plain = s.n > 5 && str_has_only(s, "-._/") && str_has_only((struct str){s.p, 1}, "") &&
                    (s.p[0] < '0' || s.p[0] > '9');

    if (is_plain)
        buf_put_str(into, s);
    else
        buf_put_json_visible(into, s);
}

static void yaml_value(struct buf *into, const json_t *v, int depth, bool in_list);

/* Members and elements, each on a line at this depth; in a list the first one has its indentation already.
 * Lists in maps are indented as their keys are, as kubectl prints them. */
static void yaml_lines(struct buf *into, const json_t *v, int depth, bool in_list)
{
    const char *key;
    json_t *item;
    size_t i;

    json_object_foreach((json_t *)(uintptr_t)v, key, item)
    {
        buf_printf(into, "%*s%s:", in_list ? 0 : depth * 2, "", key);
        yaml_value(into, item, json_is_array(item) ? depth : depth + 1, false);
        in_list = false;
    }
    json_array_foreach(v, i, item)
    {
        buf_printf(into, "%*s-", depth * 2, "");
        yaml_value(into, item, depth + 1, true);
    }
}

/* What follows "key:" or "-". */
static void yaml_value(struct buf *into, const json_t *v, int depth, bool in_list)
{
    if (json_is_string(v)) {
        buf_putc(into, ' ');
        yaml_string(into, kube_text(v, NULL));
        buf_putc(into, '\n');
    } else if (json_is_integer(v)) {
        buf_printf(into, " %" JSON_INTEGER_FORMAT "\n", json_integer_value(v));
    } else {
        buf_putc(into, in_list ? ' ' : '\n');
        yaml_lines(into, v, depth, in_list);
    }
}

int yaml_print(const json_t *objects, struct buf *into)
{
    json_t *o;
    size_t i;

    json_array_foreach(objects, i, o)
    {
        if (i > 0)
            buf_puts(into, "---\n");
        yaml_lines(into, o, 0, false);
    }
    return buf_failed(into);
}
