#include "controller/assist/rules/answer.h"

#include "controller/assist/api/operation.h"
#include "controller/assist/rules/objects.h"
#include "controller/kube/json.h"
#include "controller/optimize/problem.h"

#include <stdio.h>

/* ---- What has no place, and why ---- */

enum left_out_reason {
    LEFT_OUT_KIND_DIFFERS,
    LEFT_OUT_NO_SCORE,
    LEFT_OUT_PINNED,
    LEFT_OUT_NO_CAPACITY,
    LEFT_OUT_NEGATIVE_SCORE,
    LEFT_OUT_SPREAD,
    LEFT_OUT_MOVE_BUDGET,
    LEFT_OUT_REASONS
};

struct left_out {
    uint32_t workload, replicas; /* replicas without a place */
    enum left_out_reason reason;
    char message[256];
};

/* "NoCapacity" */
static const char *left_out_reason_word(enum left_out_reason r);
WORD_TABLE(left_out_reason_word, enum left_out_reason, LEFT_OUT_REASONS,
           {[LEFT_OUT_KIND_DIFFERS] = "KindDiffers",
            [LEFT_OUT_NO_SCORE] = "NoScore",
            [LEFT_OUT_PINNED] = "Pinned",
            [LEFT_OUT_NO_CAPACITY] = "NoCapacity",
            [LEFT_OUT_NEGATIVE_SCORE] = "NegativeScore",
            [LEFT_OUT_SPREAD] = "Spread",
            [LEFT_OUT_MOVE_BUDGET] = "MoveBudget"});

enum { NO_LIMIT = UINT32_MAX };

struct finding {
    const struct model *m;
    const struct solution *s;
    size_t *first;    /* [workload]: of its placements in the solution; one more */
    uint32_t *limit;  /* [workload]: the first full limit of it alone */
    uint32_t *next;   /* [limit]: the next one of the same workload */
    uint32_t *shared; /* full limits of several workloads */
    size_t n_shared;
    bool *blocked, *taken; /* [site]: for the workload that is looked at */
};

static bool has_u32(const uint32_t *list, size_t n, uint32_t v)
{
    return n && bsearch(&v, list, n, sizeof(v), model_u32_compare);
}

static size_t limit_used(const struct finding *f, const struct problem_limit *l)
{
    size_t used = 0;

    for (size_t i = 0; i < l->n_workloads; i++)
        for (size_t j = f->first[l->workloads[i]]; j < f->first[l->workloads[i] + 1]; j++)
            used += has_u32(l->sites, l->n_sites, f->s->placed[j].site);
    return used;
}

static void finding_sort_limits(struct finding *f)
{
    const struct problem *p = &f->m->problem;

    for (size_t w = 0; w < p->n_workloads; w++)
        f->limit[w] = NO_LIMIT;
    for (size_t i = 0; i < p->n_limits; i++) {
        const struct problem_limit *l = &p->limits[i];

        if (limit_used(f, l) < l->max)
            continue;
        if (l->n_workloads > 1) {
            f->shared[f->n_shared++] = (uint32_t)i;
            continue;
        }
        f->next[i] = f->limit[l->workloads[0]];
        f->limit[l->workloads[0]] = (uint32_t)i;
    }
}

static void finding_block(struct finding *f, const struct problem_limit *l)
{
    for (size_t i = 0; i < l->n_sites; i++)
        f->blocked[l->sites[i]] = true;
}

static void finding_look_at(struct finding *f, uint32_t w)
{
    const struct problem *p = &f->m->problem;

    memset(f->blocked, 0, p->n_sites * sizeof(bool));
    memset(f->taken, 0, p->n_sites * sizeof(bool));
    for (size_t j = f->first[w]; j < f->first[w + 1]; j++)
        f->taken[f->s->placed[j].site] = true;
    for (uint32_t i = f->limit[w]; i != NO_LIMIT; i = f->next[i])
        finding_block(f, &p->limits[i]);
    for (size_t i = 0; i < f->n_shared; i++) {
        const struct problem_limit *l = &p->limits[f->shared[i]];

        if (has_u32(l->workloads, l->n_workloads, w))
            finding_block(f, l);
    }
}

static bool fits_alone(const struct problem *p, size_t setting, size_t w)
{
    const int64_t *request = problem_request(p, w), *supply = problem_supply(p, setting);

    for (size_t r = 0; r < p->n_resources; r++)
        if (request[r] > supply[r])
            return false;
    return true;
}

/* How many settings are left of those that a workload might use, as one rule after the other is kept. */
struct places {
    size_t scored, fitting, gaining, free, allowed;
};

static struct places finding_count(const struct finding *f, uint32_t w)
{
    const struct problem *p = &f->m->problem;
    struct places n = {0};

    for (size_t setting = 0; setting < p->n_settings; setting++) {
        int16_t score = problem_score(p, setting, w);
        uint32_t site = f->m->settings[setting].site;

        if (score == SCORE_IMPOSSIBLE)
            continue;
        n.scored++;
        if (!fits_alone(p, setting, w))
            continue;
        n.fitting++;
        if (score <= 0)
            continue;
        n.gaining++;
        if (f->taken[site])
            continue;
        n.free++;
        n.allowed += !f->blocked[site];
    }
    return n;
}

static void PRINTF_LIKE(3, 4)
    left_out_because(struct left_out *l, enum left_out_reason reason, const char *fmt, ...)
{
    va_list args;

    l->reason = reason;
    va_start(args, fmt);
    (void)vsnprintf(l->message, sizeof(l->message), fmt, args);
    va_end(args);
}

static void finding_explain(struct finding *f, struct left_out *l)
{
    const struct model_workload *w = &f->m->workloads[l->workload];
    const char *kind = f->m->kinds[w->kind_id];
    struct places n;

    finding_look_at(f, l->workload);
    n = finding_count(f, l->workload);
    if (!w->has_kind)
        left_out_because(l, LEFT_OUT_KIND_DIFFERS, "No policy of the request supplies %.60s.", kind);
    else if (!n.scored && w->lost_to_rules)
        left_out_because(l, LEFT_OUT_PINNED, "pin and forbid leave no cluster that has a score for it.");
    else if (!n.scored)
        left_out_because(l, LEFT_OUT_NO_SCORE, "No policy that supplies %.60s has a score for app %.60s.",
                         kind, w->app);
    else if (f->s->is_infeasible)
        left_out_because(l, LEFT_OUT_MOVE_BUDGET, "No answer within moves.max was found.");
    else if (!n.fitting)
        left_out_because(l, LEFT_OUT_NO_CAPACITY,
                         "No policy with a score for it supplies as much as one replica requests.");
    else if (!n.gaining)
        left_out_because(l, LEFT_OUT_NEGATIVE_SCORE, "No score is above 0 where it fits.");
    else if (!n.free)
        left_out_because(l, LEFT_OUT_NO_CAPACITY,
                         "A cluster holds one replica, and no further cluster has room and a score above 0.");
    else if (!n.allowed)
        left_out_because(l, LEFT_OUT_SPREAD, "spread allows no further replica where it fits.");
    else if (f->m->problem.max_moves != SIZE_MAX && f->s->n_moves >= f->m->problem.max_moves)
        left_out_because(l, LEFT_OUT_MOVE_BUDGET,
                         "There is no room without moving others, and moves.max allows no further move.");
    else
        left_out_because(l, LEFT_OUT_NO_CAPACITY,
                         "Where it fits, the room is taken by workloads that gain more.");
}

static void finding_run(struct finding *f, struct left_out *list, size_t n)
{
    const struct problem *p = &f->m->problem;

    f->limit = xcalloc(p->n_workloads + 1, sizeof(uint32_t));
    f->next = xcalloc(p->n_limits + 1, sizeof(uint32_t));
    f->shared = xcalloc(p->n_limits + 1, sizeof(uint32_t));
    f->blocked = xcalloc(p->n_sites + 1, sizeof(bool));
    f->taken = xcalloc(p->n_sites + 1, sizeof(bool));
    finding_sort_limits(f);
    for (size_t i = 0; i < n; i++)
        finding_explain(f, &list[i]);
    free(f->limit);
    free(f->next);
    free(f->shared);
    free(f->blocked);
    free(f->taken);
}

/* All of them, ascending by workload; to be freed. */
static struct left_out *left_out_find(size_t *ret_n, const struct model *m, const struct solution *s)
{
    CLEANUP(cleanup_free) size_t *first = xcalloc(m->problem.n_workloads + 1, sizeof(*first));
    struct finding f = {.m = m, .s = s, .first = first};
    struct left_out *list = xcalloc(m->problem.n_workloads + 1, sizeof(*list));
    size_t n = 0, at = 0;

    for (uint32_t w = 0; w < m->problem.n_workloads; w++) {
        f.first[w] = at;
        while (at < s->n_placed && s->placed[at].workload == w)
            at++;
        f.first[w + 1] = at;
        if (at - f.first[w] < m->problem.replicas[w])
            list[n++] = (struct left_out){w, m->problem.replicas[w] - (uint32_t)(at - f.first[w]), 0, ""};
    }
    finding_run(&f, list, n);
    *ret_n = n;
    return list;
}

/* ---- The answer ---- */

WORD_TABLE(
    answer_status_word, enum answer_status, ANSWER_STATUSES,
    {[ANSWER_OPTIMAL] = "Optimal", [ANSWER_FEASIBLE] = "Feasible", [ANSWER_INFEASIBLE] = "Infeasible"});

enum answer_status answer_status(const struct solution *s)
{
    if (s->is_infeasible)
        return ANSWER_INFEASIBLE;
    return s->objective == s->bound ? ANSWER_OPTIMAL : ANSWER_FEASIBLE;
}

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
                            m->kinds[m->sites[i].kind_id], "device", in_force ? in_force->device : NULL,
                            "policy", in_force ? in_force->policy : NULL, "supplied",
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

static void answer_left_out(json_t *list, const struct model *m, const struct solution *s)
{
    size_t n = 0;
    CLEANUP(cleanup_free) struct left_out *found = left_out_find(&n, m, s);

    for (size_t i = 0; i < n; i++)
        (void)json_array_append_new(
            list, json_pack("{s:s, s:i, s:s, s:s}", "workload", m->workloads[found[i].workload].name,
                            "replicas", (int)found[i].replicas, "reason",
                            left_out_reason_word(found[i].reason), "message", found[i].message));
}

static json_t *missing_value(const struct model *m)
{
    json_t *list = json_array();

    for (size_t i = 0; i < size_min(m->n_missing, MODEL_MISSING_SHOWN); i++) {
        const struct model_setting *setting = &m->settings[m->missing[i].setting];

        (void)json_array_append_new(
            list, json_pack("{s:s, s:s, s:s}", "workload", m->workloads[m->missing[i].workload].name,
                            "cluster", m->sites[setting->site].cluster_name, "device", setting->device));
    }
    return json_pack("{s:I, s:o}", "count", (json_int_t)m->n_missing, "first", list);
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

static void answer_note_claims(json_t *notes, const struct model *m, const struct solution *s)
{
    const char *first = NULL;
    size_t n = 0;

    for (size_t i = 0; i < m->problem.n_sites; i++)
        if (s->setting[i] != NO_SETTING && m->sites[i].cluster != SIZE_MAX &&
            !reports_claim(m->in->clusters[m->sites[i].cluster])) {
            first = first ? first : m->sites[i].cluster_name;
            n++;
        }
    if (n)
        list_note(notes,
                  "%zu clusters (first: %.100s) report no ClusterClaim %s: workloads wait there until "
                  "a policy "
                  "watcher runs.",
                  n, first, POLICY_CLAIM);
}

static void answer_notes(json_t *notes, const struct model *m, const struct solution *s)
{
    if (m->is_rounded)
        list_note(notes, "Scores are rounded to multiples of %g.", 1 / m->per_point);
    if (m->n_expired)
        list_note(notes, "%zu AddOnPlacementScores have expired and count as missing.", m->n_expired);
    answer_note_claims(notes, m, s);
    if (m->in->lacks_set_binding)
        list_note(notes,
                  "Namespace %.100s has no ManagedClusterSetBinding: Placements there select no cluster.",
                  m->in->request->namespace);
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
    json_t *totals = json_object(),
           *all = json_pack("{s:s, s:o, s:o, s:o, s:s, s:b}", "status", answer_status_word(answer_status(s)),
                            "objective_value", points_or_null(m, s->objective, !s->is_infeasible), "bound",
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
    (void)json_object_set_new(all, "missingScores", missing_value(m));
    (void)json_object_set_new(all, "totals", totals);
    return all;
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
    static const size_t lengths[] = {1000, 300, 100, 50, 30, 20, 12, 8, 5, 3, 2, 1, 0};
    json_t *out = NULL;

    if (max_bytes == SIZE_MAX || answer_fits(answer, max_bytes))
        return json_incref((json_t *)(uintptr_t)answer);
    for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
        json_decref(out);
        out = answer_shorten(answer, lengths[i]);
        if (answer_fits(out, max_bytes))
            return out;
    }
    return out;
}
