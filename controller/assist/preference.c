/* Reads the formats of items, looks the scores up, and scales them. Owns a board of one cluster at a time.
 * On the worker of the request. */
#include "controller/assist/preference.h"

#include "controller/assist/api_error.h"
#include "controller/assist/basis.h"
#include "controller/assist/kind.h"
#include "controller/assist/model.h"
#include "controller/assist/score.h"
#include "controller/assist/snapshot.h"
#include "controller/optimize/problem.h"
#include "exporter/base/alloc.h"
#include "exporter/base/hash.h"

#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/score/format.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

enum {
    NAME_BYTES = 1024, /* of a format and of an item's name; longer ones match nothing */
    MAX_DECIMALS = 4,
    MAX_SCORE = 32000,
    MAX_POLICIES = 64, /* of one cluster, as the schema has it */
};

#define MAX_CELLS ((size_t)600 * 1000 * 1000)

/* ---- What is to be maximised ---- */

/* Reference documents have both spellings. */
static const char *preference_score(const json_t *o)
{
    return kube_str(o, "addonPlacementScore", NULL) ?: kube_str(o, "addOnPlacementScore", NULL);
}

const char *request_score(const json_t *request)
{
    return preference_score(json_object_get(request, "preference"));
}

/* The name of the placeholder that begins with "${"; empty without a name or the end. */
static struct str format_placeholder(const char *open)
{
    const char *end = strchr(open, '}');

    return (struct str){open + 2, end ? (size_t)(end - open - 2) : 0};
}

/* No scorer's format has such a placeholder: to take it as any text would plan with the wrong items. */
static int format_fail_unknown(struct str placeholder, struct api_error *error)
{
    BUF_AUTO(known, 256);

    format_put_placeholders(&known);
    return api_error_set(error, 422, "scoreDimensionFormat has an unknown placeholder %.*s; known are %.*s",
                         STR_ARG(placeholder), STR_ARG(buf_str(&known)));
}

static int format_check(const char *format, struct api_error *error)
{
    struct str unknown = format_unknown_placeholder(format);
    unsigned apps = 0, devices = 0;

    if (strlen(format) > NAME_BYTES)
        return api_error_set(error, 422, "scoreDimensionFormat has more than %d bytes", NAME_BYTES);
    for (const char *open; (open = strstr(format, "${"));) {
        struct str name = format_placeholder(open);

        if (name.n == 0)
            return api_error_set(error, 422,
                                 "scoreDimensionFormat has a placeholder without a name or without }");
        apps += str_eq(name, STR("app"));
        devices += str_eq(name, STR("device"));
        format = name.p + name.n + 1;
    }
    if (apps > 1 || devices > 1)
        return api_error_set(error, 422, "scoreDimensionFormat has a placeholder twice");
    if (unknown.n)
        return format_fail_unknown(unknown, error);
    return 0;
}

/* Writes the name of the items for an app and a device, with a NUL for each other placeholder. */
static void format_print(const char *format, struct str app, const char *device, struct buf *into)
{
    buf_clear(into);
    for (const char *open; (open = strstr(format, "${"));) {
        struct str name = format_placeholder(open);

        buf_put(into, format, (size_t)(open - format));
        if (str_eq(name, STR("app")))
            buf_put_str(into, app);
        else if (str_eq(name, STR("device")))
            buf_puts(into, device);
        else
            buf_putc(into, '\0');
        format = name.p + name.n + 1;
    }
    buf_puts(into, format);
}

/* Each NUL of the pattern matches at least one byte. */
static bool format_matches(struct str pattern, struct str name)
{
    size_t p = 0, i = 0, after_nul = 0, tried = 0; /* both of the last NUL: where the rest begins */

    while (i < name.n) {
        if (p < pattern.n && pattern.p[p] == '\0') {
            after_nul = ++p;
            tried = ++i;
        } else if (p < pattern.n && pattern.p[p] == name.p[i]) {
            p++;
            i++;
        } else if (after_nul) {
            p = after_nul;
            i = ++tried;
        } else
            return false;
    }
    return p == pattern.n;
}

int preference_read(struct fleet_model *m, struct api_error *error)
{
    const json_t *sum = json_object_get(m->request, "preference"), *list = json_object_get(sum, "scores");
    int r = 0;

    api_error_at(error, "preference.scores");
    if (list && preference_score(sum))
        return api_error_set(error, 422, "preference.scores excludes preference.addonPlacementScore");
    m->n_scores = list ? json_array_size(list) : 1;
    for (size_t i = 0; i < m->n_scores && r == 0; i++) {
        const json_t *o = list ? json_array_get(list, i) : sum, *weight = json_object_get(o, "weight");
        struct model_score *s = &m->scores[i];

        api_error_at(error, list ? "preference.scores[%zu]" : "preference", i);
        s->name = preference_score(o);
        s->format = kube_str(o, "scoreDimensionFormat", NULL) ?: kube_str(sum, "scoreDimensionFormat", NULL);
        s->weight = weight ? json_number_value(weight) : 1;
        if (!s->name || !s->format)
            return api_error_set(error, 422, "%s is missing",
                                 s->name ? "scoreDimensionFormat" : "addonPlacementScore");
        r = format_check(s->format, error);
    }
    return r;
}

/* ---- Scores of items ---- */

/* The scores of one cluster: a cell for each app and setting. */
struct board {
    struct fleet_model *m;
    size_t first, n; /* the cluster's settings */
    double *sums;    /* [app * n + setting - first] */
    bool *is_missing;
};

/* The highest value of the items whose names match; false without any. */
static bool score_find(const struct score *s, struct str pattern, int32_t *ret)
{
    const char *nul = pattern.n ? memchr(pattern.p, '\0', pattern.n) : NULL;
    struct str fixed = {pattern.p, nul ? (size_t)(nul - pattern.p) : pattern.n};
    size_t low = 0, high = s->n_items;
    bool found = false;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (str_cmp(s->items[middle].name, fixed) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < s->n_items && str_starts(s->items[low].name, fixed); low++) {
        const struct score_item *item = &s->items[low];

        if (item->name.n <= NAME_BYTES && format_matches(pattern, item->name)) {
            *ret = found && *ret > item->value ? *ret : item->value;
            found = true;
        } else if (!nul) /* names that only begin so are sorted after the equal ones */
            break;
    }
    return found;
}

/* What of a score a plan depends on; the score may be NULL. */
static json_t *score_basis(const struct score *score, uint64_t hash)
{
    json_t *basis = json_object();
    const char *validity = "missing";

    if (score)
        validity = score->is_expired ? "expired" : "valid";
    kube_set(basis, "values", json_sprintf("%016" PRIx64, hash));
    kube_set_str(basis, "validity", validity);
    return basis;
}

/* Adds one score of the cluster. */
static void board_read(struct board *b, const struct model_score *wanted, const char *cluster)
{
    const struct score *score = snapshot_get(b->m->hub, KIND_SCORES, cluster, wanted->name);
    bool has_app = strstr(wanted->format, "${app}"), found = false;
    BUF_AUTO(pattern, 1 << 20);
    CLEANUP(cleanup_free) char *name = xasprintf("%s/%s", cluster, wanted->name);
    uint64_t hash = 0;
    int32_t value = 0;

    for (size_t i = 0; i < b->n; i++)
        for (size_t app = 0; app < b->m->apps.n; app++) {
            size_t cell = app * b->n + i;

            if (score && !score->is_expired && (app == 0 || has_app)) {
                format_print(wanted->format, b->m->apps.list[app], b->m->settings[b->first + i].device,
                             &pattern);
                found = score_find(score, buf_str(&pattern), &value);
            }
            hash = hash_chain_u64(hash, found ? (uint64_t)(int64_t)value : UINT64_MAX / 2);
            if (found)
                b->sums[cell] += wanted->weight * value;
            else
                b->is_missing[cell] = true;
        }
    basis_note(b->m, "AddOnPlacementScore", name, score_basis(score, hash));
}

static void board_write(const struct board *b, int16_t *scores)
{
    struct fleet_model *m = b->m;

    for (size_t i = 0; i < b->n; i++) {
        size_t setting = b->first + i;
        const struct model_setting *s = &m->settings[setting];
        int16_t *row = &scores[setting * m->problem.n_workloads];
        uint32_t kind_id = m->sites[s->site].kind_id;

        for (size_t w = 0; w < m->problem.n_workloads; w++) {
            size_t cell = m->workloads[w].app_id * b->n + i;

            row[w] = SCORE_IMPOSSIBLE;
            if (m->workloads[w].kind_id != kind_id)
                continue;
            if (b->is_missing[cell] && m->n_missing++ < MODEL_MISSING_SHOWN)
                (void)json_array_append_new(m->missing,
                                            json_pack("{s:s, s:s, s:s}", "workload", m->workloads[w].name,
                                                      "cluster", s->cluster_name, "device", s->device));
            if (!b->is_missing[cell])
                row[w] = (int16_t)lround(b->sums[cell] * m->per_point);
        }
    }
}

static bool is_whole(double v)
{
    return fabs(v - round(v)) < 1e-9 * fmax(1, fabs(v));
}

static bool scale_is_exact(const struct fleet_model *m, double move_cost, double scale)
{
    bool exact = is_whole(move_cost * scale);

    for (size_t i = 0; i < m->n_scores; i++)
        exact = exact && is_whole(m->scores[i].weight * scale);
    return exact;
}

/* The smallest power of ten that makes all sums whole numbers; else as fine as 16 bits allow. `highest`:
 * what no sum exceeds. */
static void model_choose_unit(struct fleet_model *m, double highest)
{
    double move_cost = json_number_value(kube_get(m->request, "moves", "cost", NULL)), scale = 1;

    for (int i = 0; i < MAX_DECIMALS && !scale_is_exact(m, move_cost, scale); i++)
        scale *= 10;
    m->is_rounded = !scale_is_exact(m, move_cost, scale) || highest * scale > MAX_SCORE;
    if (m->is_rounded)
        scale = highest > 0 ? MAX_SCORE / highest : 1;
    m->per_point = scale;
    m->problem.move_cost = llround(fmin(move_cost * scale, MOVE_COST_MAX));
}

/* Adds what a score may contribute to a sum at most. */
static int model_check_score(struct fleet_model *m, const struct model_score *score, double *highest,
                             struct api_error *error)
{
    double most = -1;

    for (size_t c = 0; c < m->n_clusters; c++) {
        const struct score *s = snapshot_get(m->hub, KIND_SCORES, kube_name(m->clusters[c]), score->name);

        m->n_expired += s && s->is_expired;
        most = s ? fmax(most, 0) : most;
        for (size_t i = 0; s && i < s->n_items; i++)
            most = fmax(most, fabs((double)s->items[i].value));
    }
    if (most < 0)
        return api_error_set(error, 404, "no cluster of the request has an AddOnPlacementScore %s",
                             score->name);
    *highest += fabs(score->weight) * most;
    return 0;
}

static void model_fill_scores(struct fleet_model *m, int16_t *scores)
{
    size_t cells = m->apps.n * MAX_POLICIES;
    CLEANUP(cleanup_free) double *sums = xcalloc(cells, sizeof(double));
    CLEANUP(cleanup_free) bool *missing = xcalloc(cells, sizeof(bool));
    struct board b = {.m = m, .sums = sums, .is_missing = missing};

    for (; b.first < m->problem.n_settings; b.first += b.n) {
        const struct model_setting *s = &m->settings[b.first]; /* the sites of a cluster are neighbours */

        for (b.n = 1; b.first + b.n < m->problem.n_settings && s[b.n].cluster == s->cluster;)
            b.n++;
        memset(sums, 0, m->apps.n * b.n * sizeof(double));
        memset(missing, 0, m->apps.n * b.n * sizeof(bool));
        for (size_t i = 0; i < m->n_scores; i++)
            board_read(&b, &m->scores[i], s->cluster_name);
        board_write(&b, scores);
    }
}

int preference_read_scores(struct fleet_model *m, int16_t **ret, struct api_error *error)
{
    size_t cells = m->problem.n_workloads * m->problem.n_settings;
    double highest = 0;
    int r = 0;

    api_error_at(error, "preference.addonPlacementScore");
    for (size_t i = 0; i < m->n_scores && r == 0; i++)
        r = model_check_score(m, &m->scores[i], &highest, error);
    if (r < 0)
        return r;
    api_error_at(error, "targetWorkloads");
    if (cells > MAX_CELLS)
        return api_error_set(
            error, 422, "%zu workloads with %zu policies are %zu combinations, at most %zu can be solved",
            m->problem.n_workloads, m->problem.n_settings, cells, MAX_CELLS);
    model_choose_unit(m, highest);
    m->problem.scores = *ret = model_alloc(m, cells, sizeof(int16_t));
    model_fill_scores(m, *ret);
    return 0;
}
