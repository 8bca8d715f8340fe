/* Which workload may go where, and what it gains: scores, pins and forbidden places, spreading. */
#include "controller/assist/rules/model.h"

#include "controller/assist/rules/request.h"
#include "controller/kube/json.h"
#include "exporter/base/hash.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

/* ---- Scores as whole numbers ---- */

enum { MAX_DECIMALS = 4, MAX_SCORE = 32000 };

/* 1.2 GB. */
#define MAX_CELLS ((size_t)600 * 1000 * 1000)

/* The scores of one cluster: a cell for each app and setting. */
struct board {
    const struct model *m;
    size_t first, n; /* its settings */
    double *sums;    /* [app * n + setting - first] */
    int32_t *best;   /* of the score that is being read */
    bool *has_best, *is_missing;
    uint64_t hash;
    int32_t value; /* of the item that is being read */
};

static size_t board_app(void *arg, struct str name)
{
    const struct board *b = arg;
    char text[256];

    if (name.n >= sizeof(text))
        return SIZE_MAX;
    memcpy(text, name.p, name.n);
    text[name.n] = '\0';
    return (uintptr_t)map_get(&b->m->app_ids, text) - (uintptr_t)1; /* SIZE_MAX for an unknown one */
}

static size_t board_device(void *arg, struct str name)
{
    const struct board *b = arg;

    for (size_t i = 0; i < b->n; i++)
        if (str_eq(name, str_of(b->m->settings[b->first + i].device)))
            return i;
    return SIZE_MAX;
}

/* Of several items that match the same cell the highest counts. */
static void board_found(void *arg, size_t app, size_t device)
{
    struct board *b = arg;
    const char *name = device == SIZE_MAX ? NULL : b->m->settings[b->first + device].device;

    for (size_t a = app == SIZE_MAX ? 0 : app; a < b->m->n_apps && (app == SIZE_MAX || a == app); a++)
        for (size_t i = 0; i < b->n; i++) {
            size_t cell = a * b->n + i;

            if (name && strcmp(b->m->settings[b->first + i].device, name) != 0)
                continue;
            if (!b->has_best[cell] || b->best[cell] < b->value)
                b->best[cell] = b->value;
            b->has_best[cell] = true;
        }
    b->hash = hash_chain_u64(b->hash, app);
    b->hash = hash_chain_u64(b->hash, device);
    b->hash = hash_chain_u64(b->hash, (uint64_t)(int64_t)b->value);
}

static void board_read(struct board *b, const struct input_score *score, const struct request_score *rs)
{
    size_t cells = b->m->n_apps * b->n;
    const struct score_matcher matcher = {board_app, board_device, board_found, b};

    memset(b->has_best, 0, cells * sizeof(bool));
    b->hash = 0;
    for (size_t i = 0; score->exists && !score->is_expired && i < score->n_items; i++) {
        b->value = score->items[i].value;
        score_format_match(&rs->format, score->items[i].name, &matcher);
    }
    for (size_t i = 0; i < cells; i++)
        if (b->has_best[i])
            b->sums[i] += rs->weight * b->best[i];
        else
            b->is_missing[i] = true;
}

static void model_note_missing(struct model *m, size_t w, size_t setting)
{
    if (m->n_missing < MODEL_MISSING_SHOWN)
        m->missing[m->n_missing] = (struct model_missing){(uint32_t)w, (uint32_t)setting};
    m->n_missing++;
}

static void board_write(const struct board *b, struct model *m, int16_t *scores)
{
    for (size_t i = 0; i < b->n; i++) {
        size_t setting = b->first + i;
        int16_t *row = &scores[setting * m->problem.n_workloads];
        uint32_t kind_id = m->sites[m->settings[setting].site].kind_id;

        for (size_t w = 0; w < m->problem.n_workloads; w++) {
            size_t cell = m->workloads[w].app_id * b->n + i;

            row[w] = SCORE_IMPOSSIBLE;
            if (m->workloads[w].kind_id != kind_id)
                continue;
            if (b->is_missing[cell])
                model_note_missing(m, w, setting);
            else
                row[w] = (int16_t)lround(b->sums[cell] * m->per_point);
        }
    }
}

static double highest_of(const struct model *m, size_t score)
{
    double highest = 0;

    for (size_t c = 0; c < m->in->request->n_clusters; c++) {
        const struct input_score *s = &m->in->scores[c * m->in->request->n_scores + score];

        for (size_t i = 0; s->exists && i < s->n_items; i++)
            highest = fmax(highest, fabs((double)s->items[i].value));
    }
    return highest;
}

static bool is_whole(double v)
{
    return fabs(v - round(v)) < 1e-9 * fmax(1, fabs(v));
}

static bool scale_is_exact(const struct plan_request *rq, double scale)
{
    bool exact = is_whole(rq->move_cost * scale);

    for (size_t i = 0; i < rq->n_scores; i++)
        exact = exact && is_whole(rq->scores[i].weight * scale);
    return exact;
}

/* The smallest power of ten that makes all sums whole numbers; else as fine as 16 bits allow. */
static void model_choose_unit(struct model *m)
{
    const struct plan_request *rq = m->in->request;
    double highest = 0, scale = 1;

    for (size_t i = 0; i < rq->n_scores; i++)
        highest += fabs(rq->scores[i].weight) * highest_of(m, i);
    for (int i = 0; i < MAX_DECIMALS && !scale_is_exact(rq, scale); i++)
        scale *= 10;
    m->is_rounded = !scale_is_exact(rq, scale) || highest * scale > MAX_SCORE;
    if (m->is_rounded)
        scale = highest > 0 ? MAX_SCORE / highest : 1;
    m->per_point = scale;
    m->problem.unit = 1 / scale;
    m->problem.move_cost = llround(fmin(rq->move_cost * scale, MOVE_COST_MAX));
}

static int model_check_scores(struct model *m, struct objection *ob)
{
    const struct plan_request *rq = m->in->request;

    for (size_t s = 0; s < rq->n_scores; s++) {
        size_t exist = 0;

        for (size_t c = 0; c < rq->n_clusters; c++) {
            const struct input_score *one = &m->in->scores[c * rq->n_scores + s];

            exist += one->exists;
            m->n_expired += one->exists && one->is_expired;
        }
        if (exist == 0)
            return objection_set(ob, 404, "preference.addonPlacementScore",
                                 "no cluster of the request has an AddOnPlacementScore %s",
                                 rq->scores[s].name);
    }
    if (m->problem.n_workloads * m->problem.n_settings > MAX_CELLS)
        return objection_set(
            ob, 422, "targetWorkloads",
            "%zu workloads with %zu policies are %zu combinations, at most %zu can be solved",
            m->problem.n_workloads, m->problem.n_settings, m->problem.n_workloads * m->problem.n_settings,
            MAX_CELLS);
    return 0;
}

/* The settings of the cluster of setting `first`: its sites are neighbours. */
static size_t board_size(const struct model *m, size_t first)
{
    size_t end = first, cluster = m->sites[m->settings[first].site].cluster;

    while (end < m->problem.n_settings && m->sites[m->settings[end].site].cluster == cluster)
        end++;
    return end - first;
}

static void model_fill_scores(struct model *m, int16_t *scores)
{
    const struct plan_request *rq = m->in->request;
    size_t cells = m->n_apps * REQUEST_MAX_POLICIES;
    CLEANUP(cleanup_free) double *sums = xcalloc(cells, sizeof(double));
    CLEANUP(cleanup_free) int32_t *best = xcalloc(cells, sizeof(int32_t));
    CLEANUP(cleanup_free) bool *flags = xcalloc(cells * 2, sizeof(bool));
    struct board b = {.m = m, .sums = sums, .best = best, .has_best = flags};

    b.is_missing = flags + cells;
    for (; b.first < m->problem.n_settings; b.first += b.n) {
        size_t c = m->sites[m->settings[b.first].site].cluster;

        b.n = board_size(m, b.first);
        memset(sums, 0, m->n_apps * b.n * sizeof(double));
        memset(b.is_missing, 0, m->n_apps * b.n * sizeof(bool));
        for (size_t s = 0; s < rq->n_scores; s++) {
            board_read(&b, &m->in->scores[c * rq->n_scores + s], &rq->scores[s]);
            m->score_hashes[c * rq->n_scores + s] = b.hash;
        }
        board_write(&b, m, scores);
    }
}

int model_read_scores(struct model *m, struct objection *ob)
{
    int16_t *scores;
    int r = model_check_scores(m, ob);

    if (r < 0)
        return r;
    model_choose_unit(m);
    m->score_hashes = model_alloc(m, m->in->request->n_clusters * m->in->request->n_scores, sizeof(uint64_t));
    scores = model_alloc(m, m->problem.n_workloads * m->problem.n_settings + 1, sizeof(int16_t));
    m->problem.scores = scores;
    model_fill_scores(m, scores);
    return 0;
}

/* ---- Pins and forbidden places ---- */

/* 240 MB. */
enum { MAX_LIMITS = 5 * 1000 * 1000 };

static void model_names(struct map *workloads, struct map *clusters, const struct model *m)
{
    const struct plan_request *rq = m->in->request;

    for (size_t i = 0; i < m->problem.n_workloads; i++)
        map_set(workloads, m->workloads[i].name, (void *)(uintptr_t)(i + 1));
    for (size_t i = 0; i < rq->n_clusters; i++)
        map_set(clusters, rq->clusters[i].name, (void *)(uintptr_t)(i + 1));
}

struct rule_reading {
    struct model *m;
    int16_t *scores;
    struct map workloads, clusters; /* name → index + 1 */
    bool *named;                    /* [cluster] of the request */
    struct objection *ob;
};

static int rule_apply(struct rule_reading *rd, const struct request_rule *rule, const char *option, size_t i,
                      bool is_pin)
{
    struct model *m = rd->m;
    size_t w = (uintptr_t)map_get(&rd->workloads, rule->workload);
    char field[64];

    (void)snprintf(field, sizeof(field), "%s[%zu].workload", option, i);
    if (w == 0)
        return objection_set(rd->ob, 422, field, "%s: %s is not among targetWorkloads", field,
                             rule->workload);
    w--;
    memset(rd->named, 0, m->in->request->n_clusters * sizeof(bool));
    for (size_t j = 0; j < rule->clusters.n; j++) {
        size_t c = (uintptr_t)map_get(&rd->clusters, rule->clusters.names[j]);

        (void)snprintf(field, sizeof(field), "%s[%zu].clusters[%zu]", option, i, j);
        if (c == 0)
            return objection_set(rd->ob, 422, field, "%s: %s is not among clusters", field,
                                 rule->clusters.names[j]);
        rd->named[c - 1] = true;
    }
    for (size_t s = 0; s < m->problem.n_settings; s++) {
        int16_t *score = &rd->scores[s * m->problem.n_workloads + w];

        if (rd->named[m->sites[m->settings[s].site].cluster] == is_pin || *score == SCORE_IMPOSSIBLE)
            continue;
        *score = SCORE_IMPOSSIBLE;
        m->workloads[w].lost_to_rules = true;
    }
    return 0;
}

int model_apply_rules(struct model *m, struct objection *ob)
{
    const struct plan_request *rq = m->in->request;
    struct rule_reading rd = {.m = m, .ob = ob, .scores = (int16_t *)(uintptr_t)m->problem.scores};
    int r = 0;

    if (rq->n_pins + rq->n_forbids == 0)
        return 0;
    rd.named = xcalloc(rq->n_clusters, sizeof(bool));
    model_names(&rd.workloads, &rd.clusters, m);
    for (size_t i = 0; i < rq->n_pins && r == 0; i++)
        r = rule_apply(&rd, &rq->pins[i], "pin", i, true);
    for (size_t i = 0; i < rq->n_forbids && r == 0; i++)
        r = rule_apply(&rd, &rq->forbids[i], "forbid", i, false);
    map_done(&rd.workloads);
    map_done(&rd.clusters);
    free(rd.named);
    return r;
}

/* ---- Spreading ---- */

struct value_site {
    const char *value; /* of the cluster's label; "" without it, which is a value as others are */
    uint32_t site;
};

static int value_site_compare(const void *pa, const void *pb)
{
    const struct value_site *a = pa, *b = pb;
    int r = strcmp(a->value, b->value);

    return r ?: (a->site > b->site) - (a->site < b->site);
}

int model_u32_compare(const void *pa, const void *pb)
{
    uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;

    return (a > b) - (a < b);
}

struct limits {
    struct model *m;
    struct problem_limit *list;
    size_t n, cap;
};

static int limit_add(struct limits *all, const struct problem_limit *one, struct objection *ob)
{
    if (all->n == MAX_LIMITS)
        return objection_set(ob, 422, "spread", "spreading takes more than %d limits", MAX_LIMITS);
    if (all->n == all->cap) {
        all->list = xrealloc(all->list, (all->cap * 2 + 16) * sizeof(*all->list));
        all->cap = all->cap * 2 + 16;
    }
    all->list[all->n++] = *one;
    return 0;
}

/* The sites of one value, for the workloads together or each by itself. */
static int limit_group(struct limits *all, const struct problem_limit *group, const uint32_t *each,
                       struct objection *ob)
{
    struct problem_limit one = *group;
    int r = 0;

    if (group->n_workloads)
        return limit_add(all, group, ob);
    one.n_workloads = 1;
    for (size_t w = 0; w < all->m->problem.n_workloads && r == 0; w++) {
        one.workloads = &each[w];
        if (all->m->problem.replicas[w] > group->max)
            r = limit_add(all, &one, ob);
    }
    return r;
}

static int spread_workloads(struct model *m, const struct request_spread *s, size_t at,
                            const struct map *names, const uint32_t **ret, struct objection *ob)
{
    size_t n = s->workloads.n ? s->workloads.n : m->problem.n_workloads;
    uint32_t *list = model_alloc(m, n, sizeof(uint32_t));

    for (size_t i = 0; i < n; i++) {
        size_t w = s->workloads.n ? (uintptr_t)map_get(names, s->workloads.names[i]) : i + 1;
        char field[64];

        (void)snprintf(field, sizeof(field), "spread[%zu].workloads[%zu]", at, i);
        if (w == 0)
            return objection_set(ob, 422, field, "%s: %s is not among targetWorkloads", field,
                                 s->workloads.names[i]);
        list[i] = (uint32_t)(w - 1);
    }
    qsort(list, n, sizeof(*list), model_u32_compare);
    *ret = list;
    return 0;
}

static int spread_read(struct limits *all, const struct request_spread *s, size_t at, const struct map *names,
                       struct objection *ob)
{
    struct model *m = all->m;
    size_t n = 0;
    struct value_site *sites = model_alloc(m, m->problem.n_sites + 1, sizeof(*sites));
    uint32_t *flat = model_alloc(m, m->problem.n_sites + 1, sizeof(uint32_t));
    const uint32_t *workloads = NULL;
    int r = spread_workloads(m, s, at, names, &workloads, ob);

    if (r < 0)
        return r;
    for (; n < m->problem.n_sites && m->sites[n].cluster != SIZE_MAX; n++)
        sites[n] = (struct value_site){cstr(kube_label(m->in->clusters[m->sites[n].cluster], s->label)),
                                       (uint32_t)n};
    qsort(sites, n, sizeof(*sites), value_site_compare);
    for (size_t i = 0, end; i < n && r == 0; i = end) {
        for (end = i; end < n && strcmp(sites[end].value, sites[i].value) == 0; end++)
            flat[end] = sites[end].site;
        r = limit_group(all,
                        &(struct problem_limit){.workloads = workloads,
                                                .sites = &flat[i],
                                                .n_workloads = s->workloads.n,
                                                .n_sites = end - i,
                                                .max = s->max},
                        workloads, ob);
    }
    return r;
}

int model_read_limits(struct model *m, struct objection *ob)
{
    const struct plan_request *rq = m->in->request;
    struct limits all = {.m = m};
    struct map workloads = {0}, clusters = {0};
    int r = 0;

    if (rq->n_spreads)
        model_names(&workloads, &clusters, m);
    for (size_t i = 0; i < rq->n_spreads && r == 0; i++)
        r = spread_read(&all, &rq->spreads[i], i, &workloads, ob);
    map_done(&workloads);
    map_done(&clusters);
    if (r == 0 && all.n) {
        struct problem_limit *kept = model_alloc(m, all.n, sizeof(*kept));

        m->problem.limits = memcpy(kept, all.list, all.n * sizeof(*kept));
        m->problem.n_limits = all.n;
    }
    free(all.list);
    return r;
}
