/* Lists AddOnPlacementScores, and sums them up. Owns the rows of the summary while an answer is made. On
 * the worker that fills in the answer. */
#include "controller/assist/scores.h"

#include "controller/assist/call.h"
#include "controller/assist/kind.h"
#include "controller/assist/list.h"
#include "controller/assist/listing.h"
#include "controller/assist/score.h"
#include "controller/assist/scorer.h"
#include "controller/assist/snapshot.h"
#include "controller/kube/json.h"
#include "controller/placement/items.h"
#include "exporter/base/alloc.h"
#include "exporter/base/map.h"

#define DOMAIN "dynamic-scoring.open-cluster-management.io/"

enum { FEW_ITEMS = 5 }; /* of each object, for assistants */

/* ---- The summary of scores ---- */

enum { VALUES = ITEM_MAX - ITEM_MIN + 1, ROW_BYTES = 150 /* without texts */ };

/* What an assistant can read of 20,000 objects: a row for each name. */
struct summary_row {
    const struct score *first;
    size_t clusters, expired, items;
    size_t counts[VALUES];
};

/* Counts one more. Its values count unless it has expired, as for Placement. */
static void summary_add(struct map *by_name, const struct score *score)
{
    struct summary_row *row = map_get(by_name, score->name);

    if (!row) {
        row = xcalloc(1, sizeof(*row));
        row->first = score;
        map_set(by_name, score->name, row);
    }
    row->clusters++;
    row->expired += score->is_expired;
    if (score->is_expired)
        return;
    row->items += score->n_items;
    for (size_t i = 0; i < score->n_items; i++) {
        int32_t v = score->items[i].value;

        if (v < ITEM_MIN)
            v = ITEM_MIN;
        if (v > ITEM_MAX)
            v = ITEM_MAX;
        row->counts[v - ITEM_MIN]++;
    }
}

/* The nth value in ascending order; NULL without any. */
static json_t *summary_nth(const struct summary_row *row, size_t n)
{
    size_t i = 0;

    if (row->items == 0)
        return NULL;
    while (i < VALUES - 1 && n >= row->counts[i])
        n -= row->counts[i++];
    return json_integer((int)i + ITEM_MIN);
}

/* max_text: bytes of each of the scorer's texts. */
static json_t *summary_row_value(const struct snapshot *hub, const struct summary_row *row, size_t max_text)
{
    const json_t *scorer = max_text ? scorer_of_score(hub, row->first) : NULL;
    const char *description = scorer ? scorer_description(scorer) : "";
    json_t *value = json_object();

    kube_set_str(value, "name", row->first->name);
    kube_set_int(value, "clusters", (int64_t)row->clusters);
    kube_set_int(value, "expired", (int64_t)row->expired);
    kube_set_int(value, "items", (int64_t)row->items);
    kube_set(value, "min", summary_nth(row, 0));
    kube_set(value, "median", summary_nth(row, (row->items - 1) / 2));
    kube_set(value, "max", summary_nth(row, row->items - 1));
    if (scorer)
        kube_set(value, "scoreDimensionFormat", text_cut(scorer_dimension_format(scorer), max_text));
    if (*description)
        kube_set(value, "description", text_cut(description, max_text));
    return value;
}

DEFINE_ORDER(summary_compare_rows, struct summary_row *const, strcmp((*a)->first->name, (*b)->first->name))

/* A row for each name, in ascending order. For assistants, texts are cut so that all rows fit; if that is
 * not enough, the last rows are left out. */
static void summary_put(struct listing *l, const struct snapshot *hub, const struct map *by_name)
{
    size_t n = by_name->n, at = 0, room = listing_is_short(l) ? listing_room(l) * 7 / 8 : SIZE_MAX, bytes = 2;
    size_t each = n && listing_is_short(l) ? room / n : SIZE_MAX;
    size_t max_text = each == SIZE_MAX ? each : each > ROW_BYTES ? (each - ROW_BYTES) / 2 : 0;
    CLEANUP(cleanup_free) struct summary_row **rows = xcalloc(n + 1, sizeof(struct summary_row *));
    json_t *list = json_array();

    for (size_t i = 0; i < n; i++)
        rows[i] = map_next(by_name, &at);
    qsort(rows, n, sizeof(struct summary_row *), summary_compare_rows);
    for (size_t i = 0; i < n && bytes <= room; i++) {
        json_t *row = summary_row_value(hub, rows[i], max_text);

        bytes += listing_is_short(l) ? json_dumpb(row, NULL, 0, JSON_COMPACT) + 1 : 0;
        if (bytes <= room)
            (void)json_array_append(list, row);
        json_decref(row);
    }
    (void)json_object_set_new(l->head, "untrusted", json_true());
    n -= json_array_size(list);
    (void)json_object_set_new(l->head, "summary", list);
    if (n)
        list_note(l->notes, "%zu more scores are left out of the summary: ask with a larger maxBytes.", n);
}

/* ---- Parts of a score ---- */

static json_t *scores_items(const struct score *s, size_t max)
{
    json_t *list = json_array();

    for (size_t i = 0; i < s->n_items && i < max; i++)
        (void)json_array_append_new(list, json_pack("{s:s%,s:i}", "name", s->items[i].name.p,
                                                    s->items[i].name.n, "value", (int)s->items[i].value));
    return list;
}

/* Name, namespace, labels, annotations, and two annotations from the DynamicScorer. */
static json_t *scores_metadata(const struct snapshot *hub, const struct score *s)
{
    const json_t *scorer = scorer_of_score(hub, s);
    json_t *annotations = json_copy(kube_map(s->object, "metadata", "annotations", NULL)) ?: json_object();

    if (scorer) {
        (void)json_object_set_new(annotations, DOMAIN "description", json_string(scorer_description(scorer)));
        (void)json_object_set_new(annotations, DOMAIN "score-dimension-format",
                                  json_string(scorer_dimension_format(scorer)));
    }
    return json_pack("{s:s,s:s,s:O*,s:o}", "name", s->name, "namespace", s->cluster, "labels",
                     kube_map(s->object, "metadata", "labels", NULL), "annotations", annotations);
}

/* ---- The list of scores ---- */

static json_t *scores_status(const struct score *s, size_t max)
{
    json_t *status = json_object();

    kube_set(status, "scores", scores_items(s, max));
    kube_set(status, "validUntil", score_valid_until_value(s));
    return status;
}

/* For assistants: a few values, and what the summary does not have. */
static json_t *scores_short_item(const struct listing *l, const struct score *s)
{
    bool is_alone = call_text(l->call, "name") && call_text(l->call, "namespace");
    json_t *item = json_object(), *metadata = kube_set_object(item, "metadata");

    kube_set_str(metadata, "namespace", s->cluster);
    kube_set_str(metadata, "name", s->name);
    kube_set(item, "status", scores_status(s, is_alone ? listing_room(l) / 48 : FEW_ITEMS));
    kube_set_bool(item, "expired", s->is_expired);
    kube_set_int(item, "scoresTotal", (int64_t)s->n_items);
    return item;
}

static json_t *scores_item(const struct listing *l, const struct snapshot *hub, const struct score *s)
{
    json_t *item;

    if (listing_is_short(l))
        return scores_short_item(l, s);
    item = json_object();
    kube_set_str(item, "apiVersion", "cluster.open-cluster-management.io/v1alpha1");
    kube_set_str(item, "kind", "AddOnPlacementScore");
    kube_set(item, "metadata", scores_metadata(hub, s));
    kube_set(item, "status", scores_status(s, SIZE_MAX));
    kube_set_bool(item, "expired", s->is_expired);
    return item;
}

void scores_fill(struct listing *l, const struct snapshot *hub)
{
    struct map by_name = {0};
    struct summary_row *row;
    const struct score *s;

    for (size_t at = 0; (s = snapshot_next(hub, KIND_SCORES, &at));)
        summary_add(&by_name, s);
    summary_put(l, hub, &by_name);
    for (size_t at = 0; (row = map_next(&by_name, &at));)
        free(row);
    map_done(&by_name);
    if (listing_is_short(l))
        list_note(l->notes,
                  "Items show at most %d values; namespace (a cluster) and name together give the values of "
                  "one score.",
                  FEW_ITEMS);
    for (size_t at = 0; (s = snapshot_next(hub, KIND_SCORES, &at));)
        if (listing_wants(l))
            listing_add(l, scores_item(l, hub, s));
}
