/* The scores of all workloads with all settings, as whole numbers. */
#include "controller/assist/rules/model_internal.h"
#include "controller/assist/rules/score_format.h"
#include "exporter/base/hash.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

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

static int model_fill_scores(struct model *m, int16_t *scores)
{
    const struct plan_request *rq = m->in->request;
    size_t cells = m->n_apps * REQUEST_MAX_POLICIES;
    CLEANUP(cleanup_free) double *sums = calloc(cells, sizeof(double));
    CLEANUP(cleanup_free) int32_t *best = calloc(cells, sizeof(int32_t));
    CLEANUP(cleanup_free) bool *flags = calloc(cells * 2, sizeof(bool));
    struct board b = {.m = m, .sums = sums, .best = best, .has_best = flags};

    if (!sums || !best || !flags)
        return -ENOMEM;
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
    return 0;
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
    if (!m->score_hashes || !scores)
        return -ENOMEM;
    m->problem.scores = scores;
    return model_fill_scores(m, scores);
}
