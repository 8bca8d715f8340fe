/* A range query: each series of the selector becomes a row of values, which goes through the aggregations, or
 * straight into the result. */
#include "exporter/base/arena.h"
#include "exporter/promql/aggregate.h"
#include "exporter/promql/function.h"
#include "exporter/promql/plan.h"
#include "exporter/promql/promql.h"
#include "exporter/promql/row.h"
#include "exporter/promql/window.h"
#include "exporter/tsdb/tsdb.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    ARENA_BYTES = 64 << 10,
    SAMPLE_BYTES = 40, /* of a window, at most */
};

/* A series of the selector, with the labels that its row has. */
struct input {
    uint32_t index; /* in the view */
    uint32_t n_labels;
    const struct tsdb_label *labels;
};

struct evaluation {
    const struct promql_plan *plan;
    struct row_points points;
    struct tsdb_view *view;
    struct window window;
    struct arena arena; /* of labels without the name */
    struct input *inputs;
    double *values; /* of the row at hand */
    struct buf *out;
    size_t series; /* written */
    char *why;
};

static int eval_fail(struct evaluation *e, int r, const char *what)
{
    (void)snprintf(e->why, PROMQL_WHY_BYTES, "%s", what);
    return r;
}

static int result_too_large(struct evaluation *e, int r)
{
    if (r == -EFBIG)
        (void)snprintf(e->why, PROMQL_WHY_BYTES, "the result exceeds the limit of %zu bytes", e->out->max);
    else if (r == -ENOMEM)
        (void)snprintf(e->why, PROMQL_WHY_BYTES, "out of memory");
    return r;
}

static int select_series(struct evaluation *e, struct tsdb *tsdb)
{
    const struct promql_plan *plan = e->plan;
    char why[TSDB_WHY_BYTES] = "out of memory";
    int64_t from = e->points.start_ms - promql_reach(plan) + 1, to = row_point(&e->points, e->points.n - 1);
    int r = tsdb_select(tsdb, plan->matchers, plan->n_matchers, from, to, e->out->max, &e->view, why);

    if (r == -EFBIG)
        (void)snprintf(why, sizeof(why), "the samples that the query selects exceed the limit of %zu bytes",
                       e->out->max);
    return r < 0 ? eval_fail(e, r, why) : 0;
}

/* Functions drop the labels that say which metric it is. */
static bool is_dropped(struct str label)
{
    return str_eq(label, STR("__name__")) || str_eq(label, STR("__type__")) || str_eq(label, STR("__unit__"));
}

static bool drops_name(const struct promql_plan *plan)
{
    return plan->function && !plan->function->keeps_name;
}

/* A list without what is dropped is a part of the series' own, unless something is dropped from within. */
static int set_labels(struct evaluation *e, struct input *in)
{
    size_t n, kept = 0;
    const struct tsdb_label *all = tsdb_view_labels(e->view, in->index, &n);
    struct tsdb_label *copy;

    if (drops_name(e->plan))
        for (; n && is_dropped(all->name); n--)
            all++;
    for (size_t i = 0; i < n; i++)
        kept += !drops_name(e->plan) || !is_dropped(all[i].name);
    in->labels = all;
    in->n_labels = (uint32_t)kept;
    if (kept == n)
        return 0;
    in->labels = copy = arena_alloc(&e->arena, kept * sizeof(*copy));
    if (!copy)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++)
        if (!is_dropped(all[i].name))
            *copy++ = all[i];
    return 0;
}

static int input_order(const void *a, const void *b)
{
    const struct input *x = a, *y = b;

    return labels_compare(x->labels, x->n_labels, y->labels, y->n_labels);
}

/* Whether two series may have the same labels once the name is dropped. */
static bool may_collide(const struct promql_plan *plan)
{
    bool one_name = false;

    for (size_t i = 0; i < plan->n_matchers; i++)
        one_name |= plan->matchers[i].op == TSDB_EQ && str_eq(plan->matchers[i].name, STR("__name__"));
    return drops_name(plan) && !one_name;
}

static int list_inputs(struct evaluation *e)
{
    size_t n = tsdb_view_count(e->view);

    e->inputs = calloc(n + 1, sizeof(*e->inputs));
    if (!e->inputs)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        e->inputs[i].index = (uint32_t)i;
        if (set_labels(e, &e->inputs[i]) < 0)
            return -ENOMEM;
    }
    if (e->plan->n_aggregations == 0 || may_collide(e->plan))
        qsort(e->inputs, n, sizeof(*e->inputs), input_order);
    return 0;
}

/* The latest sample of the last five minutes, unless that is a stale marker. Returns whether there is a
 * value. */
static bool evaluate_latest(struct evaluation *e, struct tsdb_iter *it)
{
    bool some = false, more;
    int64_t t = INT64_MIN, next_t;
    double v = value_absent(), next_v;

    more = tsdb_iter_next(it, &next_t, &next_v);
    for (size_t i = 0; i < e->points.n; i++) {
        int64_t at = row_point(&e->points, i);

        for (; more && next_t <= at; more = tsdb_iter_next(it, &next_t, &next_v)) {
            t = next_t;
            v = next_v;
        }
        e->values[i] = t > at - PLAN_LOOKBACK_MS ? v : value_absent();
        some |= !value_is_absent(e->values[i]);
    }
    return some;
}

/* The function over the samples of each range; stale markers are none. 1 if there is any value. */
static int evaluate_function(struct evaluation *e, struct tsdb_iter *it)
{
    const struct range_function *f = e->plan->function;
    int64_t range = e->plan->range_ms, t;
    double v;
    bool more = tsdb_iter_next(it, &t, &v);
    int some = 0;

    window_clear(&e->window);
    for (size_t i = 0; i < e->points.n; i++) {
        int64_t at = row_point(&e->points, i);

        window_drop(&e->window, at - range);
        for (; more && t <= at; more = tsdb_iter_next(it, &t, &v)) {
            int r = t > at - range && !value_is_absent(v) ? window_push(&e->window, t, v) : 0;

            if (r < 0)
                return r;
        }
        e->values[i] = window_count(&e->window) ? f->value(&e->window, at, range) : value_absent();
        some |= !value_is_absent(e->values[i]);
    }
    return some;
}

static int evaluate_input(struct evaluation *e, const struct input *in)
{
    struct tsdb_iter it;

    tsdb_iter_init(&it, e->view, in->index);
    return e->plan->function ? evaluate_function(e, &it) : evaluate_latest(e, &it);
}

static int write_row(struct evaluation *e, const struct row *row)
{
    int r = row_write(row, &e->points, e->out);

    e->series += r > 0;
    return r < 0 ? r : 0;
}

/* Passes the row of each series on: to the aggregation, or else into the result. */
static int evaluate_inputs(struct evaluation *e, struct aggregate *into)
{
    const struct input *before = NULL; /* the last with a value */
    size_t n = tsdb_view_count(e->view);
    int r = 0;

    for (size_t i = 0; i < n && r >= 0; i++) {
        const struct input *in = &e->inputs[i];
        struct row row = {in->labels, in->n_labels, e->values};

        r = evaluate_input(e, in);
        if (r <= 0)
            continue;
        if (before && may_collide(e->plan) && input_order(before, in) == 0)
            return eval_fail(e, -EINVAL, "several series have the same labels without their metric's name");
        before = in;
        r = into ? aggregate_add(into, &row) : write_row(e, &row);
    }
    return r < 0 ? result_too_large(e, r) : 0;
}

/* Groups become the rows of the aggregation around theirs. */
static int aggregate_groups_of(struct evaluation *e, const struct aggregate *from, struct aggregate *into)
{
    int r = 0;

    for (size_t i = 0; i < aggregate_groups(from) && r == 0; i++) {
        struct row row = aggregate_row(from, i, e->values);

        r = aggregate_add(into, &row);
    }
    return result_too_large(e, r);
}

static int write_groups(struct evaluation *e, struct aggregate *a)
{
    int r = 0;

    aggregate_sort(a);
    for (size_t i = 0; i < aggregate_groups(a) && r == 0; i++) {
        struct row row = aggregate_row(a, i, e->values);

        r = write_row(e, &row);
    }
    return result_too_large(e, r);
}

static int evaluate_aggregations(struct evaluation *e)
{
    CLEANUP(cleanup_aggregate_free) struct aggregate *a = NULL;
    int r = 0;

    for (size_t i = 0; i < e->plan->n_aggregations && r == 0; i++) {
        CLEANUP(cleanup_aggregate_free) struct aggregate *inner = TAKE_PTR(a);

        r = aggregate_new(&a, e->plan->aggregations[i], e->points.n, e->out->max);
        if (r == 0)
            r = inner ? aggregate_groups_of(e, inner, a) : evaluate_inputs(e, a);
    }
    return r ?: write_groups(e, a);
}

static int evaluate(struct evaluation *e, struct tsdb *tsdb)
{
    int r = select_series(e, tsdb);

    if (r < 0)
        return r;
    e->values = calloc(e->points.n, sizeof(*e->values));
    if (!e->values || list_inputs(e) < 0)
        return eval_fail(e, -ENOMEM, "out of memory");
    return e->plan->n_aggregations ? evaluate_aggregations(e) : evaluate_inputs(e, NULL);
}

static void evaluation_done(struct evaluation *e)
{
    row_points_done(&e->points);
    (void)tsdb_view_free(e->view);
    window_done(&e->window);
    arena_done(&e->arena);
    free(e->inputs);
    free(e->values);
}

int promql_range(const struct promql_plan *plan, struct tsdb *tsdb, const struct promql_range *range,
                 struct buf *out, size_t *ret_series, char why[PROMQL_WHY_BYTES])
{
    CLEANUP(evaluation_done)
    struct evaluation e = {.plan = plan, .arena = {.chunk_bytes = ARENA_BYTES}, .out = out, .why = why};
    int64_t steps = range->end_ms < range->start_ms ? -1 : (range->end_ms - range->start_ms) / range->step_ms;
    int r;

    *ret_series = 0;
    if (steps < 0)
        return 0;
    if (steps > PROMQL_MAX_STEPS) {
        (void)snprintf(why, PROMQL_WHY_BYTES, "%lld points for each series, at most %d are possible",
                       (long long)steps + 1, PROMQL_MAX_STEPS + 1);
        return -EINVAL;
    }
    window_init(&e.window, plan->function ? plan->function->track : TRACK_NOTHING, out->max / SAMPLE_BYTES);
    if (row_points_init(&e.points, (size_t)steps + 1, range->start_ms, range->step_ms) < 0)
        return eval_fail(&e, -ENOMEM, "out of memory");
    r = evaluate(&e, tsdb);
    *ret_series = e.series;
    return r;
}
