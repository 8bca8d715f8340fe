#include "controller/assist/rules/answer.h"

#include "controller/assist/rules/left_out.h"
#include "controller/assist/rules/objects.h"
#include "controller/kube/json.h"
#include "controller/optimize/problem.h"

#include <errno.h>
#include <stdio.h>

WORD_TABLE(
    answer_status_word, enum answer_status, ANSWER_STATUSES,
    {[ANSWER_OPTIMAL] = "Optimal", [ANSWER_FEASIBLE] = "Feasible", [ANSWER_INFEASIBLE] = "Infeasible"});

enum answer_status answer_status(const struct solution *s)
{
    if (s->is_infeasible)
        return ANSWER_INFEASIBLE;
    return s->objective == s->bound ? ANSWER_OPTIMAL : ANSWER_FEASIBLE;
}

/* Takes the item. */
static int list_add(json_t *list, json_t *item)
{
    return json_array_append_new(list, item) < 0 ? -ENOMEM : 0;
}

/* Thousandths as a number. */
static json_t *amount_value(int64_t v)
{
    return v % 1000 ? json_real((double)v / 1000) : json_integer(v / 1000);
}

static int answer_placements(json_t *list, const struct model *m, const struct solution *s)
{
    int r = 0;

    for (size_t i = 0; i < s->n_placed && r == 0; i++) {
        const struct model_site *site = &m->sites[s->placed[i].site];
        size_t setting = s->setting[s->placed[i].site], w = s->placed[i].workload;

        r = list_add(list, json_pack("{s:s, s:s, s:s, s:s, s:f}", "workload", m->workloads[w].name, "cluster",
                                     site->cluster_name, "device", m->settings[setting].device, "policy",
                                     m->settings[setting].policy, "score",
                                     model_points(m, problem_score(&m->problem, setting, w))));
    }
    return r;
}

static int answer_clusters(json_t *list, const struct model *m, const struct solution *s)
{
    CLEANUP(cleanup_free) int64_t *used = calloc(m->problem.n_sites + 1, sizeof(int64_t));
    int r = used ? 0 : -ENOMEM;

    for (size_t i = 0; i < s->n_placed && r == 0; i++)
        used[s->placed[i].site] += problem_request(&m->problem, s->placed[i].workload)[0];
    for (size_t i = 0; i < m->problem.n_sites && r == 0; i++) {
        const struct model_setting *in_force =
            s->setting[i] == NO_SETTING ? NULL : &m->settings[s->setting[i]];

        if (m->sites[i].cluster == SIZE_MAX)
            continue;
        r = list_add(list,
                     json_pack("{s:s, s:s, s:s?, s:s?, s:o, s:o}", "name", m->sites[i].cluster_name, "kind",
                               m->kinds[m->sites[i].kind_id], "device", in_force ? in_force->device : NULL,
                               "policy", in_force ? in_force->policy : NULL, "supplied",
                               amount_value(in_force ? problem_supply(&m->problem, s->setting[i])[0] : 0),
                               "used", amount_value(used[i])));
    }
    return r;
}

static bool has_pair(const struct problem_pair *list, size_t n, struct problem_pair pair)
{
    return n && bsearch(&pair, list, n, sizeof(pair), model_pair_compare);
}

/* Both lists ascend: what a workload left is matched with what it gained, in order. */
static int answer_moves(json_t *list, const struct model *m, const struct solution *s)
{
    const struct problem *p = &m->problem;
    size_t at = 0;
    int r = 0;

    for (size_t i = 0; i < p->n_running && r == 0; i++) {
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
        r = list_add(list, json_pack("{s:s, s:s, s:s?}", "workload", m->workloads[from.workload].name, "from",
                                     m->sites[from.site].cluster_name, "to", to));
    }
    return r;
}

static int answer_left_out(json_t *list, const struct model *m, const struct solution *s)
{
    CLEANUP(cleanup_free) struct left_out *found = NULL;
    size_t n = 0;
    int r = left_out_find(&found, &n, m, s);

    for (size_t i = 0; i < n && r == 0; i++)
        r = list_add(list, json_pack("{s:s, s:i, s:s, s:s}", "workload", m->workloads[found[i].workload].name,
                                     "replicas", (int)found[i].replicas, "reason",
                                     left_out_reason_word(found[i].reason), "message", found[i].message));
    return r;
}

static json_t *missing_value(const struct model *m)
{
    json_auto_t *list = json_array();

    for (size_t i = 0; i < size_min(m->n_missing, MODEL_MISSING_SHOWN); i++) {
        const struct model_setting *setting = &m->settings[m->missing[i].setting];

        if (list_add(list, json_pack("{s:s, s:s, s:s}", "workload", m->workloads[m->missing[i].workload].name,
                                     "cluster", m->sites[setting->site].cluster_name, "device",
                                     setting->device)) < 0)
            return NULL;
    }
    return json_pack("{s:I, s:O}", "count", (json_int_t)m->n_missing, "first", list);
}

static int PRINTF_LIKE(2, 3) note_add(json_t *notes, const char *fmt, ...)
{
    char text[512];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    return list_add(notes, json_string(text));
}

static bool reports_claim(const json_t *cluster)
{
    json_t *claims = kube_list(cluster, "status", "clusterClaims", NULL), *one;
    size_t i;

    json_array_foreach(claims, i, one)
    {
        const char *name = kube_str(one, "name", NULL);

        if (name && strcmp(name, POLICY_CLAIM) == 0)
            return true;
    }
    return false;
}

static int answer_note_claims(json_t *notes, const struct model *m, const struct solution *s)
{
    const char *first = NULL;
    size_t n = 0;

    for (size_t i = 0; i < m->problem.n_sites; i++)
        if (s->setting[i] != NO_SETTING && m->sites[i].cluster != SIZE_MAX &&
            !reports_claim(m->in->clusters[m->sites[i].cluster])) {
            first = first ? first : m->sites[i].cluster_name;
            n++;
        }
    return n ? note_add(notes,
                        "%zu clusters (first: %.100s) report no ClusterClaim %s: workloads wait there until "
                        "a policy "
                        "watcher runs.",
                        n, first, POLICY_CLAIM)
             : 0;
}

static int answer_notes(json_t *notes, const struct model *m, const struct solution *s)
{
    int r = 0;

    if (m->is_rounded)
        r = note_add(notes, "Scores are rounded to multiples of %g.", 1 / m->per_point);
    if (m->n_expired)
        r = r ?: note_add(notes, "%zu AddOnPlacementScores have expired and count as missing.", m->n_expired);
    r = r ?: answer_note_claims(notes, m, s);
    if (m->in->lacks_set_binding)
        r = r
                ?: note_add(notes,
                            "Namespace %.100s has no ManagedClusterSetBinding: Placements there select no "
                            "cluster.",
                            m->in->request->namespace);
    return r;
}

static json_t *points_or_null(const struct model *m, int64_t units, bool is_known)
{
    return is_known ? json_real(model_points(m, units)) : json_null();
}

static const struct answer_list {
    const char *key;
    int (*fill)(json_t *list, const struct model *m, const struct solution *s);
} answer_lists[] = {
    {"placements", answer_placements}, {"clusters", answer_clusters}, {"moves", answer_moves},
    {"leftOut", answer_left_out},      {"notes", answer_notes},
};

int answer_make(json_t **ret, const struct model *m, const struct solution *s)
{
    bool has_bound = s->bound != INT64_MIN && s->bound != INT64_MAX;
    json_auto_t *totals = json_object(),
                *all = json_pack("{s:s, s:o, s:o, s:o, s:s, s:b}", "status",
                                 answer_status_word(answer_status(s)), "objective_value",
                                 points_or_null(m, s->objective, !s->is_infeasible), "bound",
                                 points_or_null(m, s->bound, has_bound), "gap",
                                 has_bound ? json_real(solution_gap(s)) : json_null(), "engine",
                                 cstr(s->engine), "deadlineReached", (int)s->deadline_reached);
    int r = all && totals ? 0 : -ENOMEM;

    for (size_t i = 0; i < ARRAY_SIZE(answer_lists) && r == 0; i++) {
        json_t *list = json_array();

        r = list ? answer_lists[i].fill(list, m, s) : -ENOMEM;
        /* Notes are never cut, and more are added later. */
        if (r == 0 && answer_lists[i].fill != answer_notes &&
            json_object_set_new(totals, answer_lists[i].key,
                                json_integer((json_int_t)json_array_size(list))) < 0)
            r = -ENOMEM;
        if (json_object_set_new(all, answer_lists[i].key, list) < 0)
            r = -ENOMEM;
    }
    if (r == 0 && (json_object_set_new(all, "missingScores", missing_value(m)) < 0 ||
                   json_object_set(all, "totals", totals) < 0))
        r = -ENOMEM;
    if (r < 0)
        return r;
    *ret = TAKE_PTR(all);
    return 0;
}

/* ---- For those who want few bytes ---- */

/* The length is found by printing, which texts and lists that are longer by themselves save. */
static bool answer_fits(const json_t *answer, size_t max_bytes)
{
    size_t least = json_string_length(json_object_get(answer, "output_yaml"));

    for (size_t i = 0; i < ARRAY_SIZE(answer_lists); i++)
        least += json_array_size(json_object_get(answer, answer_lists[i].key));
    return least <= max_bytes && json_dumpb(answer, NULL, 0, JSON_COMPACT) <= max_bytes;
}

static json_t *list_head(const json_t *list, size_t n)
{
    json_auto_t *out = json_array();

    for (size_t i = 0; i < size_min(n, json_array_size(list)); i++)
        if (json_array_append(out, json_array_get(list, i)) < 0)
            return NULL;
    return TAKE_PTR(out);
}

static json_t *answer_shorten(const json_t *answer, size_t n)
{
    json_auto_t *out = json_copy((json_t *)(uintptr_t)answer);
    json_t *notes = json_copy(json_object_get(answer, "notes"));
    bool ok = out && notes && json_object_del(out, "output_yaml") <= 0;

    for (size_t i = 0; i < ARRAY_SIZE(answer_lists) - 1 && ok; i++)
        ok = json_object_set_new(out, answer_lists[i].key,
                                 list_head(json_object_get(answer, answer_lists[i].key), n)) == 0;
    if (notes &&
        note_add(notes,
                 "Cut to fit: output_yaml is left out, and lists show at most %zu items; totals counts them "
                 "all. POST /plan, or a larger maxBytes, shows the rest.",
                 n) < 0)
        ok = false;
    if (json_object_set_new(out, "notes", notes) < 0 || !ok)
        return NULL;
    return TAKE_PTR(out);
}

json_t *answer_cut(const json_t *answer, size_t max_bytes)
{
    static const size_t lengths[] = {1000, 300, 100, 50, 30, 20, 12, 8, 5, 3, 2, 1, 0};
    json_t *out = NULL;

    if (max_bytes == SIZE_MAX || answer_fits(answer, max_bytes))
        return json_incref((json_t *)(uintptr_t)answer);
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        json_decref(out);
        out = answer_shorten(answer, lengths[i]);
        if (!out || answer_fits(out, max_bytes))
            return out;
    }
    return out;
}
