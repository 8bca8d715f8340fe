/* The scores of all workloads with all settings, as whole numbers. */
#include "controller/assist/api/operation.h"
#include "controller/assist/rules/model.h"
#include "controller/assist/rules/snapshot.h"
#include "controller/optimize/problem.h"

#include "controller/kube/json.h"
#include "exporter/base/hash.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum {
    KEY_BYTES = 600,
    MATCH_STEPS = 10000, /* of an item's name: enough unless its parts cannot be told apart */
    MAX_DECIMALS = 4,
    MAX_SCORE = 32000,
    MAX_POLICIES = 64, /* of one cluster, as the schema has it */
};

#define MAX_CELLS ((size_t)600 * 1000 * 1000)

/* ---- What is to be maximised ---- */

/* Reference documents have both spellings. */
static const char *preference_score(const json_t *o)
{
    const char *usual = kube_str(o, "addonPlacementScore", NULL);

    return usual ? usual : kube_str(o, "addOnPlacementScore", NULL);
}

const char *request_score(const json_t *request)
{
    return preference_score(json_object_get(request, "preference"));
}

static int format_add(struct model_score *s, enum score_part_kind kind, struct str text, struct objection *ob)
{
    if (kind == SCORE_LITERAL && text.n == 0)
        return 0;
    for (size_t i = 0; i < s->n_parts && (kind == SCORE_APP || kind == SCORE_DEVICE); i++)
        if (s->parts[i].kind == kind)
            return objection_set(ob, 422, "scoreDimensionFormat has a placeholder twice");
    if (s->n_parts == ARRAY_SIZE(s->parts))
        return objection_set(ob, 422, "scoreDimensionFormat has more than 16 parts");
    s->parts[s->n_parts].kind = kind;
    s->parts[s->n_parts++].text = text;
    return 0;
}

static int format_parse(struct model_score *s, const char *text, struct objection *ob)
{
    int r = 0;

    while (*text && r == 0) {
        const char *open = strstr(text, "${"), *close = open ? strchr(open, '}') : NULL;
        struct str name = {open ? open + 2 : NULL, close ? (size_t)(close - open - 2) : 0};

        if (open && name.n == 0)
            return objection_set(ob, 422,
                                 "scoreDimensionFormat has a placeholder without a name or without }");
        r = format_add(s, SCORE_LITERAL, (struct str){text, open ? (size_t)(open - text) : strlen(text)}, ob);
        if (r == 0 && open)
            r = format_add(s,
                           str_eq(name, STR("app"))      ? SCORE_APP
                           : str_eq(name, STR("device")) ? SCORE_DEVICE
                                                         : SCORE_ANY,
                           name, ob);
        text = open ? close + 1 : "";
    }
    return r;
}

int model_read_preference(struct model *m, struct objection *ob)
{
    const json_t *sum = json_object_get(m->request, "preference"), *list = json_object_get(sum, "scores");
    int r = 0;

    objection_at(ob, "preference.scores");
    if (list && preference_score(sum))
        return objection_set(ob, 422, "preference.scores excludes preference.addonPlacementScore");
    m->n_scores = list ? json_array_size(list) : 1;
    for (size_t i = 0; i < m->n_scores && r == 0; i++) {
        const json_t *o = list ? json_array_get(list, i) : sum, *weight = json_object_get(o, "weight");
        const char *own = kube_str(o, "scoreDimensionFormat", NULL);
        const char *format = own ? own : kube_str(sum, "scoreDimensionFormat", NULL);
        struct model_score *s = &m->scores[i];

        objection_at(ob, list ? "preference.scores[%zu]" : "preference", i);
        s->name = preference_score(o);
        s->weight = weight ? json_number_value(weight) : 1;
        if (!s->name || !format)
            return objection_set(ob, 422, "%s is missing",
                                 s->name ? "scoreDimensionFormat" : "addonPlacementScore");
        r = format_parse(s, format, ob);
    }
    return r;
}

/* ---- Scores of items ---- */

/* The scores of one cluster: a cell for each app and setting. */
struct board {
    struct model *m;
    const struct model_score *score; /* that is being read */
    size_t first, n;                 /* the cluster's settings */
    double *sums;                    /* [app * n + setting - first] */
    int32_t *best, value;            /* of the score, and of its item that is being read */
    bool *has_best, *is_missing;
    unsigned steps;
};

static size_t board_app(const struct board *b, struct str name)
{
    char text[256];

    if (name.n >= sizeof(text))
        return SIZE_MAX;
    memcpy(text, name.p, name.n);
    text[name.n] = '\0';
    return model_index(&b->m->app_ids, text);
}

static size_t board_device(const struct board *b, struct str name)
{
    for (size_t i = 0; i < b->n; i++)
        if (str_eq(name, str_of(b->m->settings[b->first + i].device)))
            return i;
    return SIZE_MAX;
}

/* Of several items that match the same cell the highest counts. SIZE_MAX: of all apps, of all devices. */
static void board_found(struct board *b, size_t app, size_t device)
{
    const char *name = device == SIZE_MAX ? NULL : b->m->settings[b->first + device].device;

    for (size_t a = app == SIZE_MAX ? 0 : app; a < b->m->app_ids.n && (app == SIZE_MAX || a == app); a++)
        for (size_t i = 0; i < b->n; i++) {
            size_t cell = a * b->n + i;

            if (name && strcmp(b->m->settings[b->first + i].device, name) != 0)
                continue;
            if (!b->has_best[cell] || b->best[cell] < b->value)
                b->best[cell] = b->value;
            b->has_best[cell] = true;
        }
}

/* Finds every way in which the rest of an item's name matches the parts from this one on. */
static void board_match(struct board *b, size_t part, struct str rest, size_t app, size_t device)
{
    const struct model_score *s = b->score;
    enum score_part_kind kind = s->parts[part].kind;
    bool is_last = part + 1 >= s->n_parts;

    if (part == s->n_parts) {
        if (rest.n == 0)
            board_found(b, app, device);
        return;
    }
    if (kind == SCORE_LITERAL) {
        size_t n = s->parts[part].text.n;

        if (str_starts(rest, s->parts[part].text))
            board_match(b, part + 1, (struct str){rest.p + n, rest.n - n}, app, device);
        return;
    }
    for (size_t n = is_last ? rest.n : 1; n > 0 && n <= rest.n && b->steps < MATCH_STEPS; n++) {
        struct str name = {rest.p, n}, left = {rest.p + n, rest.n - n};
        bool ends =
            is_last || s->parts[part + 1].kind != SCORE_LITERAL || str_starts(left, s->parts[part + 1].text);

        b->steps++;
        if (ends && kind == SCORE_APP)
            app = board_app(b, name);
        if (ends && kind == SCORE_DEVICE)
            device = board_device(b, name);
        if (ends && (kind != SCORE_APP || app != SIZE_MAX) && (kind != SCORE_DEVICE || device != SIZE_MAX))
            board_match(b, part + 1, left, app, device);
    }
}

/* Adds one score of the cluster; `score` is NULL without the object. */
static void board_read(struct board *b, const struct score *score, const char *cluster)
{
    size_t cells = b->m->app_ids.n * b->n;
    uint64_t hash = 0;
    char name[KEY_BYTES], text[20];

    memset(b->has_best, 0, cells * sizeof(bool));
    for (size_t i = 0; score && !score->is_expired && i < score->n_items; i++) {
        b->value = score->items[i].value;
        b->steps = 0;
        board_match(b, 0, score->items[i].name, SIZE_MAX, SIZE_MAX);
    }
    for (size_t i = 0; i < cells; i++) {
        hash = hash_chain_u64(hash, b->has_best[i] ? (uint64_t)(int64_t)b->best[i] : UINT64_MAX / 2);
        if (b->has_best[i])
            b->sums[i] += b->score->weight * b->best[i];
        else
            b->is_missing[i] = true;
    }
    (void)snprintf(name, sizeof(name), "%s/%s", cluster, b->score->name);
    (void)snprintf(text, sizeof(text), "%016" PRIx64, hash);
    model_note_basis(b->m, "AddOnPlacementScore", name,
                     json_pack("{s:s, s:s}", "values", text, "validity",
                               !score              ? "missing"
                               : score->is_expired ? "expired"
                                                   : "valid"));
}

static void model_note_missing(struct model *m, size_t w, size_t setting)
{
    const struct model_setting *s = &m->settings[setting];

    if (m->n_missing++ < MODEL_MISSING_SHOWN)
        (void)json_array_append_new(m->missing,
                                    json_pack("{s:s, s:s, s:s}", "workload", m->workloads[w].name, "cluster",
                                              m->sites[s->site].cluster_name, "device", s->device));
}

static void board_write(const struct board *b, int16_t *scores)
{
    struct model *m = b->m;

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

static bool is_whole(double v)
{
    return fabs(v - round(v)) < 1e-9 * fmax(1, fabs(v));
}

static bool scale_is_exact(const struct model *m, double move_cost, double scale)
{
    bool exact = is_whole(move_cost * scale);

    for (size_t i = 0; i < m->n_scores; i++)
        exact = exact && is_whole(m->scores[i].weight * scale);
    return exact;
}

/* The smallest power of ten that makes all sums whole numbers; else as fine as 16 bits allow. `highest`: what
 * no sum exceeds. */
static void model_choose_unit(struct model *m, double highest)
{
    double move_cost = json_number_value(kube_get(m->request, "moves", "cost", NULL)), scale = 1;

    for (int i = 0; i < MAX_DECIMALS && !scale_is_exact(m, move_cost, scale); i++)
        scale *= 10;
    m->is_rounded = !scale_is_exact(m, move_cost, scale) || highest * scale > MAX_SCORE;
    if (m->is_rounded)
        scale = highest > 0 ? MAX_SCORE / highest : 1;
    m->per_point = scale;
    m->problem.unit = 1 / scale;
    m->problem.move_cost = llround(fmin(move_cost * scale, MOVE_COST_MAX));
}

/* Adds what a score may contribute to a sum at most. */
static int model_check_score(struct model *m, const struct model_score *score, double *highest,
                             struct objection *ob)
{
    double most = -1;

    for (size_t c = 0; c < m->n_clusters; c++) {
        const struct score *s = snapshot_get(m->hub, KIND_SCORES, m->clusters[c].name, score->name);

        m->n_expired += s && s->is_expired;
        most = s ? fmax(most, 0) : most;
        for (size_t i = 0; s && i < s->n_items; i++)
            most = fmax(most, fabs((double)s->items[i].value));
    }
    if (most < 0)
        return objection_set(ob, 404, "no cluster of the request has an AddOnPlacementScore %s", score->name);
    *highest += fabs(score->weight) * most;
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
    size_t cells = m->app_ids.n * MAX_POLICIES;
    CLEANUP(cleanup_free) double *sums = xcalloc(cells, sizeof(double));
    CLEANUP(cleanup_free) int32_t *best = xcalloc(cells, sizeof(int32_t));
    CLEANUP(cleanup_free) bool *flags = xcalloc(cells * 2, sizeof(bool));
    struct board b = {.m = m, .sums = sums, .best = best, .has_best = flags, .is_missing = flags + cells};

    for (; b.first < m->problem.n_settings; b.first += b.n) {
        const char *cluster = m->sites[m->settings[b.first].site].cluster_name;

        b.n = board_size(m, b.first);
        memset(sums, 0, m->app_ids.n * b.n * sizeof(double));
        memset(b.is_missing, 0, m->app_ids.n * b.n * sizeof(bool));
        for (b.score = m->scores; b.score < m->scores + m->n_scores; b.score++)
            board_read(&b, snapshot_get(m->hub, KIND_SCORES, cluster, b.score->name), cluster);
        board_write(&b, scores);
    }
}

int model_read_scores(struct model *m, int16_t **ret, struct objection *ob)
{
    size_t cells = m->problem.n_workloads * m->problem.n_settings;
    double highest = 0;
    int r = 0;

    objection_at(ob, "preference.addonPlacementScore");
    for (size_t i = 0; i < m->n_scores && r == 0; i++)
        r = model_check_score(m, &m->scores[i], &highest, ob);
    if (r < 0)
        return r;
    objection_at(ob, "targetWorkloads");
    if (cells > MAX_CELLS)
        return objection_set(
            ob, 422, "%zu workloads with %zu policies are %zu combinations, at most %zu can be solved",
            m->problem.n_workloads, m->problem.n_settings, cells, MAX_CELLS);
    model_choose_unit(m, highest);
    m->problem.scores = *ret = model_alloc(m, cells, sizeof(int16_t));
    model_fill_scores(m, *ret);
    return 0;
}
