#include "controller/assist/operations/score_summary.h"

#include "controller/assist/operations/answer.h"
#include "controller/assist/operations/scorers.h"
#include "exporter/base/map.h"

#include <errno.h>

/* AddOnPlacementScore allows -100 to 100; the API server refuses others. */
enum { LEAST = -100, MOST = 100, VALUES = MOST - LEAST + 1 };

struct summary_row {
    const struct world_score *first;
    size_t clusters, expired, items;
    size_t counts[VALUES];
};

void score_summary_done(struct score_summary *s)
{
    struct summary_row *row;

    for (size_t at = 0; (row = map_next(&s->by_name, &at));)
        free(row);
    map_done(&s->by_name);
}

static struct summary_row *summary_row_of(struct score_summary *s, const struct world_score *score)
{
    struct summary_row *row = map_get(&s->by_name, score->name);

    if (row || !(row = calloc(1, sizeof(*row))))
        return row;
    row->first = score;
    if (map_set(&s->by_name, score->name, row) == 0)
        return row;
    free(row);
    return NULL;
}

int score_summary_add(struct score_summary *s, const struct world_score *score, bool is_expired)
{
    struct summary_row *row = summary_row_of(s, score);

    if (!row)
        return -ENOMEM;
    row->clusters++;
    row->expired += is_expired;
    if (is_expired)
        return 0;
    row->items += score->n_items;
    for (size_t i = 0; i < score->n_items; i++) {
        int32_t v = score->items[i].value;

        row->counts[(v < LEAST ? LEAST : v > MOST ? MOST : v) - LEAST]++;
    }
    return 0;
}

/* The nth value in ascending order. */
static int summary_nth(const struct summary_row *row, size_t n)
{
    size_t i = 0;

    while (i < VALUES - 1 && n >= row->counts[i])
        n -= row->counts[i++];
    return (int)i + LEAST;
}

/* How much of a scorer's texts a row has; 0: nothing. */
struct summary_texts {
    size_t format, description;
};

static json_t *summary_row_value(const struct world *w, const struct summary_row *row,
                                 const struct summary_texts *texts)
{
    const json_t *scorer = scorer_of_score(w, row->first);
    json_t *o =
        json_pack("{s:s,s:I,s:I,s:I}", "name", row->first->name, "clusters", (json_int_t)row->clusters,
                  "expired", (json_int_t)row->expired, "items", (json_int_t)row->items);
    int r = o ? 0 : -1;

    if (row->items && r == 0)
        r = json_object_set_new(o, "min", json_integer(summary_nth(row, 0))) |
            json_object_set_new(o, "median", json_integer(summary_nth(row, (row->items - 1) / 2))) |
            json_object_set_new(o, "max", json_integer(summary_nth(row, row->items - 1)));
    if (scorer && r == 0 && texts->format)
        r = json_object_set_new(o, "scoreDimensionFormat",
                                answer_text(scorer_dimension_format(scorer), texts->format));
    if (scorer && r == 0 && texts->description && *scorer_description(scorer))
        r = json_object_set_new(o, "description",
                                answer_text(scorer_description(scorer), texts->description));
    if (r == 0)
        return o;
    json_decref(o);
    return NULL;
}

static int summary_compare_rows(const void *a, const void *b)
{
    const struct summary_row *const *x = a, *const *y = b;

    return strcmp((*x)->first->name, (*y)->first->name);
}

/* The first rows, as many as fit. */
static json_t *summary_rows(struct summary_row *const *rows, size_t n, const struct world *w,
                            const struct summary_texts *texts, size_t max_bytes)
{
    json_auto_t *list = json_array();

    for (size_t i = 0, bytes = 2; i < n; i++) {
        json_t *row = summary_row_value(w, rows[i], texts);

        bytes += max_bytes == SIZE_MAX ? 0 : json_dumpb(row, NULL, 0, JSON_COMPACT) + 1;
        if (row && bytes > max_bytes) {
            json_decref(row);
            break;
        }
        if (json_array_append_new(list, row) < 0)
            return NULL;
    }
    return TAKE_PTR(list);
}

json_t *score_summary_value(const struct score_summary *s, const struct world *w, size_t max_bytes,
                            size_t *ret_left_out)
{
    static const struct summary_texts steps[] = {{SIZE_MAX, SIZE_MAX}, {120, 120}, {40, 40}, {0, 24}, {0, 0}};
    size_t n = s->by_name.n, at = 0;
    CLEANUP(cleanup_free) struct summary_row **rows = calloc(n + 1, sizeof(struct summary_row *));
    json_t *list = NULL;

    if (!rows)
        return NULL;
    for (size_t i = 0; i < n; i++)
        rows[i] = map_next(&s->by_name, &at);
    qsort(rows, n, sizeof(struct summary_row *), summary_compare_rows);
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        json_decref(list);
        list = summary_rows(rows, n, w, &steps[i], max_bytes);
        *ret_left_out = list ? n - json_array_size(list) : 0;
        if (*ret_left_out == 0)
            break;
    }
    return list;
}
