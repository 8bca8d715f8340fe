/* Makes the answer to POST /plan, and shortens it for assistants. Owns nothing; the answer is made on the
 * worker of the request. */
#include "controller/assist/plan_answer.h"

#include "controller/assist/kind.h"
#include "controller/assist/left_out.h"
#include "controller/assist/list.h"
#include "controller/assist/model.h"
#include "controller/assist/plan_objects.h"
#include "controller/assist/resource_labels.h"
#include "controller/assist/snapshot.h"
#include "controller/kube/json.h"
#include "controller/optimize/problem.h"
#include "controller/optimize/solution.h"
#include "exporter/base/alloc.h"

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
        double score = model_points(m, problem_score(&m->problem, setting, w));
        json_t *one = json_object();

        kube_set_str(one, "workload", m->workloads[w].name);
        kube_set_str(one, "cluster", site->cluster_name);
        kube_set_str(one, "device", m->settings[setting].device);
        kube_set_str(one, "policy", m->settings[setting].policy);
        kube_set(one, "score", json_real(score));
        kube_append(list, one);
    }
}

/* A text, or null for NULL. */
static json_t *text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

/* used: of the site. */
static json_t *answer_cluster(const struct fleet_model *m, const struct solution *s, size_t site,
                              int64_t used)
{
    bool is_set = s->setting[site] != NO_SETTING;
    const struct model_setting *in_force = is_set ? &m->settings[s->setting[site]] : NULL;
    int64_t supplied = is_set ? problem_supply(&m->problem, s->setting[site])[0] : 0;
    json_t *one = json_object();

    kube_set_str(one, "name", m->sites[site].cluster_name);
    kube_set_str(one, "kind", m->sites[site].kind);
    kube_set(one, "device", text_or_null(is_set ? in_force->device : NULL));
    kube_set(one, "policy", text_or_null(is_set ? in_force->policy : NULL));
    kube_set(one, "supplied", amount_value(supplied));
    kube_set(one, "used", amount_value(used));
    return one;
}

static void answer_clusters(json_t *list, const struct fleet_model *m, const struct solution *s)
{
    CLEANUP(cleanup_free) int64_t *used = xcalloc(m->problem.n_sites + 1, sizeof(int64_t));

    for (size_t i = 0; i < s->n_placed; i++)
        used[s->placed[i].site] += problem_request(&m->problem, s->placed[i].workload)[0];
    for (size_t i = 0; i < m->problem.n_sites; i++)
        if (m->sites[i].cluster != SIZE_MAX)
            kube_append(list, answer_cluster(m, s, i, used[i]));
}

/* Both lists ascend: what a workload left is matched with what it gained, in order. */
static void answer_moves(json_t *list, const struct fleet_model *m, const struct solution *s)
{
    const struct opt_problem *p = &m->problem;
    size_t at = 0;

    for (size_t i = 0; i < p->n_running; i++) {
        const struct problem_pair from = p->running[i];
        const char *to = NULL;

        if (problem_has_pair(s->placed, s->n_placed, from))
            continue;
        while (at < s->n_placed && (s->placed[at].workload < from.workload ||
                                    (s->placed[at].workload == from.workload &&
                                     problem_has_pair(p->running, p->n_running, s->placed[at]))))
            at++;
        if (at < s->n_placed && s->placed[at].workload == from.workload)
            to = m->sites[s->placed[at++].site].cluster_name;
        kube_append(list, json_pack("{s:s, s:s, s:s?}", "workload", m->workloads[from.workload].name, "from",
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
    {"leftOut", left_out_list},        {"notes", answer_notes},
};

static const char *answer_status(const struct solution *s)
{
    if (s->is_infeasible)
        return "Infeasible";
    return s->objective == s->bound ? "Optimal" : "Feasible";
}

static json_t *answer_missing_scores(const struct fleet_model *m)
{
    json_t *missing = json_object();

    kube_set_int(missing, "count", (int64_t)m->n_missing);
    kube_set(missing, "first", json_incref(m->missing));
    return missing;
}

json_t *answer_make(const struct fleet_model *m, const struct solution *s)
{
    bool has_bound = s->bound != INT64_MIN && s->bound != INT64_MAX;
    json_t *answer = json_object(), *totals = json_object();

    kube_set_str(answer, "status", answer_status(s));
    kube_set(answer, "objective_value", points_or_null(m, s->objective, !s->is_infeasible));
    kube_set(answer, "bound", points_or_null(m, s->bound, has_bound));
    kube_set(answer, "gap", has_bound ? json_real(solution_gap(s)) : json_null());
    kube_set_str(answer, "engine", cstr(s->engine));
    kube_set_bool(answer, "deadlineReached", s->deadline_reached);
    for (size_t i = 0; i < ARRAY_SIZE(answer_lists); i++) {
        json_t *list = json_array();

        answer_lists[i].fill(list, m, s);
        /* Notes are never cut, and more are added later. */
        if (answer_lists[i].fill != answer_notes)
            kube_set_int(totals, answer_lists[i].key, (int64_t)json_array_size(list));
        kube_set(answer, answer_lists[i].key, list);
    }
    kube_set(answer, "missingScores", answer_missing_scores(m));
    kube_set(answer, "totals", totals);
    return answer;
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
