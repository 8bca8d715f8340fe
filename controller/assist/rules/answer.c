#include "controller/assist/rules/answer.h"

#include "controller/assist/api/operation.h"
#include "controller/assist/rules/objects.h"
#include "controller/assist/rules/snapshot.h"
#include "controller/kube/json.h"
#include "controller/optimize/problem.h"

#include <stdio.h>

/* ---- What has no place, and why ---- */

struct finding {
    const struct model *m;
    const struct solution *s;
    size_t *first;                     /* [workload]: of its placements in the solution; one more */
    uint32_t *used[MODEL_MAX_SPREADS]; /* [value]: replicas of the members of a spread */
};

static bool fits_alone(const struct problem *p, size_t setting, size_t w)
{
    const int64_t *request = problem_request(p, w), *supply = problem_supply(p, setting);

    for (size_t r = 0; r < p->n_resources; r++)
        if (request[r] > supply[r])
            return false;
    return true;
}

/* Whether one more replica on the site would exceed a spread. */
static bool spread_is_full(const struct finding *f, uint32_t w, uint32_t site)
{
    for (size_t i = 0; i < f->m->n_spreads; i++) {
        const struct model_spread *s = &f->m->spreads[i];
        uint32_t value = s->value[site], n = 0;

        if (s->is_member)
            n = s->is_member[w] ? f->used[i][value] : 0;
        else
            for (size_t j = f->first[w]; j < f->first[w + 1]; j++)
                n += s->value[f->s->placed[j].site] == value;
        if (n >= s->max)
            return true;
    }
    return false;
}

static bool is_placed(const struct finding *f, uint32_t w, uint32_t site)
{
    for (size_t j = f->first[w]; j < f->first[w + 1]; j++)
        if (f->s->placed[j].site == site)
            return true;
    return false;
}

/* How many settings are left of those that a workload might use, as one rule after the other is kept. */
struct places {
    size_t supplied, scored, fitting, gaining, free, allowed;
};

static struct places finding_count(const struct finding *f, uint32_t w)
{
    const struct problem *p = &f->m->problem;
    struct places n = {0};

    for (size_t setting = 0; setting < p->n_settings; setting++) {
        int16_t score = problem_score(p, setting, w);
        uint32_t site = f->m->settings[setting].site;

        n.supplied += f->m->sites[site].kind_id == f->m->workloads[w].kind_id;
        if (score == SCORE_IMPOSSIBLE)
            continue;
        n.scored++;
        if (!fits_alone(p, setting, w))
            continue;
        n.fitting++;
        if (score <= 0)
            continue;
        n.gaining++;
        if (is_placed(f, w, site))
            continue;
        n.free++;
        n.allowed += !spread_is_full(f, w, site);
    }
    return n;
}

/* The reason, and the sentence that explains it. */
static const char *finding_explain(const struct finding *f, uint32_t w, char message[256])
{
    const struct model_workload *workload = &f->m->workloads[w];
    const struct problem *p = &f->m->problem;
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
        {!n.fitting, "NoCapacity", "No policy with a score for it supplies as much as one replica requests."},
        {!n.gaining, "NegativeScore", "No score is above 0 where it fits."},
        {!n.free, "NoCapacity",
         "A cluster holds one replica, and no further cluster has room and a score above 0."},
        {!n.allowed, "Spread", "spread allows no further replica where it fits."},
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

static void finding_count_used(struct finding *f)
{
    for (size_t i = 0; i < f->m->n_spreads; i++) {
        const struct model_spread *s = &f->m->spreads[i];

        f->used[i] = xcalloc(s->n_values + 1, sizeof(uint32_t));
        for (size_t j = 0; s->is_member && j < f->s->n_placed; j++)
            f->used[i][s->value[f->s->placed[j].site]] += s->is_member[f->s->placed[j].workload];
    }
}

static void answer_left_out(json_t *list, const struct model *m, const struct solution *s)
{
    CLEANUP(cleanup_free) size_t *first = xcalloc(m->problem.n_workloads + 1, sizeof(*first));
    struct finding f = {.m = m, .s = s, .first = first};

    for (size_t i = 0; i < s->n_placed; i++)
        first[s->placed[i].workload + 1]++;
    for (size_t w = 0; w < m->problem.n_workloads; w++)
        first[w + 1] += first[w];
    finding_count_used(&f);
    for (uint32_t w = 0; w < m->problem.n_workloads; w++) {
        size_t n = first[w + 1] - first[w];
        char message[256];

        if (n < m->problem.replicas[w]) {
            const char *reason = finding_explain(&f, w, message);

            (void)json_array_append_new(
                list, json_pack("{s:s, s:i, s:s, s:s}", "workload", m->workloads[w].name, "replicas",
                                (int)(m->problem.replicas[w] - n), "reason", reason, "message", message));
        }
    }
    for (size_t i = 0; i < m->n_spreads; i++)
        free(f.used[i]);
}

/* ---- The answer ---- */

/* Thousandths as a number. */
static json_t *amount_value(int64_t v)
{
    return v % 1000 ? json_real((double)v / 1000) : json_integer(v / 1000);
}

static void answer_placements(json_t *list, const struct model *m, const struct solution *s)
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

static void answer_clusters(json_t *list, const struct model *m, const struct solution *s)
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

static bool has_pair(const struct problem_pair *list, size_t n, struct problem_pair pair)
{
    return n && bsearch(&pair, list, n, sizeof(pair), problem_pair_compare);
}

/* Both lists ascend: what a workload left is matched with what it gained, in order. */
static void answer_moves(json_t *list, const struct model *m, const struct solution *s)
{
    const struct problem *p = &m->problem;
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

static bool reports_claim(const json_t *cluster)
{
    const json_t *one;
    size_t i;

    json_array_foreach(kube_list(cluster, "status", "clusterClaims", NULL), i, one)
    {
        if (strcmp(cstr(kube_str(one, "name", NULL)), POLICY_CLAIM) == 0)
            return true;
    }
    return false;
}

static void answer_note_claims(json_t *notes, const struct model *m, const struct solution *s)
{
    const char *first = NULL;
    size_t n = 0;

    for (size_t i = 0; i < m->problem.n_sites; i++)
        if (s->setting[i] != NO_SETTING && m->sites[i].cluster != SIZE_MAX &&
            !reports_claim(m->clusters[m->sites[i].cluster].object)) {
            first = first ? first : m->sites[i].cluster_name;
            n++;
        }
    if (n)
        list_note(notes,
                  "%zu clusters (first: %.100s) report no ClusterClaim %s: workloads wait there until a "
                  "policy watcher runs.",
                  n, first, POLICY_CLAIM);
}

static void answer_notes(json_t *notes, const struct model *m, const struct solution *s)
{
    const struct snapshot_list *set_bindings = &m->hub->lists[KIND_SET_BINDINGS];

    if (m->is_rounded)
        list_note(notes, "Scores are rounded to multiples of %g.", 1 / m->per_point);
    if (m->n_expired)
        list_note(notes, "%zu AddOnPlacementScores have expired and count as missing.", m->n_expired);
    answer_note_claims(notes, m, s);
    if (set_bindings->n == 0 && !set_bindings->lacks_kind)
        list_note(notes,
                  "Namespace %.100s has no ManagedClusterSetBinding: Placements there select no cluster.",
                  m->namespace);
}

static json_t *points_or_null(const struct model *m, int64_t units, bool is_known)
{
    return is_known ? json_real(model_points(m, units)) : json_null();
}

static const struct answer_list {
    const char *key;
    void (*fill)(json_t *list, const struct model *m, const struct solution *s);
} answer_lists[] = {
    {"placements", answer_placements}, {"clusters", answer_clusters}, {"moves", answer_moves},
    {"leftOut", answer_left_out},      {"notes", answer_notes},
};

json_t *answer_make(const struct model *m, const struct solution *s)
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
