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

struct score_summary {
    struct map by_name;
    struct summary_row **rows;
    size_t n, cap;
};

int score_summary_new(struct score_summary **ret)
{
    struct score_summary *s = calloc(1, sizeof(*s));

    if (!s)
        return -ENOMEM;
    *ret = s;
    return 0;
}

struct score_summary *score_summary_free(struct score_summary *s)
{
    if (!s)
        return NULL;
    map_done(&s->by_name);
    for (size_t i = 0; i < s->n; i++)
        free(s->rows[i]);
    free(s->rows);
    free(s);
    return NULL;
}

static int summary_add_row(struct score_summary *s, const struct world_score *score)
{
    struct summary_row *row;

    if (s->n == s->cap) {
        size_t cap = s->cap ? 2 * s->cap : 32;
        struct summary_row **rows = reallocarray(s->rows, cap, sizeof(struct summary_row *));

        if (!rows)
            return -ENOMEM;
        s->rows = rows;
        s->cap = cap;
    }
    row = calloc(1, sizeof(*row));
    if (!row)
        return -ENOMEM;
    row->first = score;
    if (map_set(&s->by_name, score->name, row) < 0) {
        free(row);
        return -ENOMEM;
    }
    s->rows[s->n++] = row;
    return 0;
}

int score_summary_add(struct score_summary *s, const struct world_score *score, bool is_expired)
{
    struct summary_row *row = map_get(&s->by_name, score->name);
    int r = row ? 0 : summary_add_row(s, score);

    if (r < 0)
        return r;
    row = map_get(&s->by_name, score->name);
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

static json_t *summary_rows(const struct score_summary *s, const struct world *w,
                            const struct summary_texts *texts)
{
    json_auto_t *list = json_array();

    for (size_t i = 0; i < s->n; i++)
        if (json_array_append_new(list, summary_row_value(w, s->rows[i], texts)) < 0)
            return NULL;
    return TAKE_PTR(list);
}

json_t *score_summary_value(const struct score_summary *s, const struct world *w, size_t max_bytes,
                            size_t *ret_left_out)
{
    static const struct summary_texts steps[] = {{SIZE_MAX, SIZE_MAX}, {120, 120}, {40, 40}, {0, 24}, {0, 0}};
    json_t *list = NULL;

    if (s->n)
        qsort(s->rows, s->n, sizeof(struct summary_row *), summary_compare_rows);
    for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
        json_decref(list);
        list = summary_rows(s, w, &steps[i]);
        if (!list || max_bytes == SIZE_MAX || json_dumpb(list, NULL, 0, JSON_COMPACT) <= max_bytes)
            break;
    }
    *ret_left_out = 0;
    while (list && json_array_size(list) && max_bytes != SIZE_MAX &&
           json_dumpb(list, NULL, 0, JSON_COMPACT) > max_bytes) {
        (void)json_array_remove(list, json_array_size(list) - 1);
        ++*ret_left_out;
    }
    return list;
}
