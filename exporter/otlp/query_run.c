/* A range query. Each expression becomes a vector: a row for each label set, with a value for each point. The
 * series of an aggregation need not be held: their values are added to the groups one after the other. */
#include "exporter/base/alloc.h"
#include "exporter/base/arena.h"
#include "exporter/base/buf.h"
#include "exporter/base/escape.h"
#include "exporter/base/strset.h"
#include "exporter/base/text.h"
#include "exporter/num/num.h"
#include "exporter/otlp/query.h"
#include "exporter/otlp/translate.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

enum { ARENA_BYTES = 64 << 10, QUERY_MAX_STEPS = 11000 /* from first point to last, as in Prometheus */ };

/* ---- Sums and means as Prometheus computes them: with Kahan's summation, improved by Neumaier ---- */

/* With the rounding error that the sum lacks. Of COMPUTE_MAX and COMPUTE_MIN it has the value. */
struct total {
    double sum, error, count;
};

static inline void total_add(struct total *t, enum computation how, double v)
{
    double sum = t->sum + v;

    if (how == COMPUTE_MAX || how == COMPUTE_MIN) {
        t->sum = isnan(t->sum) || (how == COMPUTE_MAX ? t->sum < v : t->sum > v) ? v : t->sum;
        return;
    }
    if (isinf(sum))
        t->error = 0;
    else if (fabs(t->sum) >= fabs(v))
        t->error += (t->sum - sum) + v;
    else
        t->error += (v - sum) + t->sum;
    t->sum = sum;
    t->count++;
}

static double total_result(const struct total *t, enum computation how)
{
    switch (how) {
    case COMPUTE_COUNT:
        return t->count;
    case COMPUTE_MEAN:
        return t->sum / t->count + t->error / t->count;
    case COMPUTE_SUM:
        return isinf(t->sum) ? t->sum : t->sum + t->error;
    default:
        return t->sum;
    }
}

/* ---- Functions: each in Prometheus' order of operations, so that results have the same bits ---- */

/* They end at `at` and begin range_ms before. */
struct window {
    const struct sample *s;
    size_t n;
    int64_t at, range_ms;
};

/* The seconds by which the change is extended beyond a sample that lies `gap` seconds from the border of the
 * window: up to the border, or by half the usual interval if more than one sample seems to be missing. */
static double extension(double gap, double interval)
{
    return gap >= interval * 1.1 ? interval / 2 : gap;
}

static inline double window_change(const struct window *w, enum computation how)
{
    bool of_counters = how != COMPUTE_DELTA;
    double change, start, end, sampled, interval, factor;
    size_t last = w->n - 1;

    change = w->s[last].v - w->s[0].v;
    if (of_counters)
        for (size_t i = 1; i < w->n; i++)
            if (w->s[i].v < w->s[i - 1].v) /* it began again at 0 */
                change += w->s[i - 1].v;
    sampled = (double)(w->s[last].t - w->s[0].t) / 1000;
    interval = sampled / (double)last;
    start = extension((double)(w->s[0].t - (w->at - w->range_ms)) / 1000, interval);
    end = extension((double)(w->at - w->s[last].t) / 1000, interval);
    if (of_counters && change > 0 && w->s[0].v >= 0) {
        /* A counter is not extended to before it was 0. */
        double to_zero = sampled * (w->s[0].v / change);

        if (to_zero < start)
            start = to_zero;
    }
    factor = (sampled + start + end) / sampled;
    if (how == COMPUTE_RATE) { /* by the seconds as Go's Duration.Seconds() computes them */
        int64_t whole = w->range_ms / 1000;

        factor /= (double)whole + (double)(w->range_ms % 1000 * 1000000) / 1e9;
    }
    return change * factor;
}

/* value_absent() if there are too few samples. */
static inline double window_value(const struct window *w, enum computation how)
{
    const struct sample *last = &w->s[w->n - 1];
    struct total t = {w->s[0].v, 0, 1};

    if (how >= COMPUTE_LAST)
        return last->v;
    if (how >= COMPUTE_DELTA && w->n < 2)
        return value_absent();
    if (how == COMPUTE_IRATE)
        return (last->v < last[-1].v ? last->v : last->v - last[-1].v) /
               ((double)(last->t - last[-1].t) / 1000);
    if (how >= COMPUTE_DELTA)
        return window_change(w, how);
    for (size_t i = 1; i < w->n; i++)
        total_add(&t, how, w->s[i].v);
    return total_result(&t, how);
}

/* ---- Vectors ---- */

struct query_row {
    struct str labels;
    double *values; /* at each point; value_absent() where there is none */
};

struct eval {
    struct store *store;
    const atomic_bool *cancelled;
    struct query_range range;
    size_t n; /* points */
    uint64_t max_bytes, bytes;
    char *why;
};

/* Sorted by labels when it is complete. */
struct vector {
    struct arena arena;
    struct query_row *rows;
    size_t n, room;
};

static int PRINTF_LIKE(3, 4) eval_fail(struct eval *e, int r, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(e->why, QUERY_WHY_BYTES, fmt, ap);
    va_end(ap);
    return r;
}

static int eval_charge(struct eval *e, uint64_t bytes)
{
    e->bytes += bytes;
    return e->bytes <= e->max_bytes ? 0
                                    : eval_fail(e, -EFBIG, "the result exceeds the limit of %llu bytes",
                                                (unsigned long long)e->max_bytes);
}

static void vector_done(struct vector *v)
{
    arena_done(&v->arena);
    free(v->rows);
}

#define VECTOR_AUTO(name) CLEANUP(vector_done) struct vector name = {.arena = {.chunk_bytes = ARENA_BYTES}}

DEFINE_ORDER(row_order, struct query_row, labels_compare(a->labels, b->labels))

/* Adds a row with a copy of the labels and room for `n` values, none of them present. */
static int vector_add(struct eval *e, struct vector *v, struct str labels, size_t n, struct query_row **ret)
{
    int r = eval_charge(e, labels.n + n * sizeof(double) + sizeof(struct query_row));

    if (r < 0)
        return r;
    if (v->n == v->room)
        v->rows = xreallocarray(v->rows, v->room = v->room * 2 + 16, sizeof(*v->rows));
    *ret = &v->rows[v->n++];
    (*ret)->values = arena_alloc(&v->arena, n * sizeof(double));
    (*ret)->labels = (struct str){arena_text(&v->arena, labels), labels.n};
    for (size_t i = 0; i < n; i++)
        (*ret)->values[i] = value_absent();
    return 0;
}

static void vector_sort(struct vector *v)
{
    if (v->n)
        qsort(v->rows, v->n, sizeof(*v->rows), row_order);
}

/* As operators and functions do. */
static void row_drop_name(struct query_row *row)
{
    struct str name = labels_value(row->labels, STR("__name__"));
    char *from, *to;

    if (!name.n)
        return;
    from = (char *)name.p - sizeof("__name__");
    to = (char *)name.p + name.n + 1;
    memmove(from, to, (size_t)(row->labels.p + row->labels.n - to));
    row->labels.n -= (size_t)(to - from);
}

static void vector_drop_names(struct vector *v)
{
    for (size_t i = 0; i < v->n; i++)
        row_drop_name(&v->rows[i]);
    vector_sort(v);
}

static bool vector_repeats(const struct vector *v, size_t i)
{
    return i > 0 && row_order(&v->rows[i - 1], &v->rows[i]) == 0;
}

static int vector_check(struct eval *e, const struct vector *v, const char *why)
{
    for (size_t i = 1; i < v->n; i++)
        if (vector_repeats(v, i))
            return eval_fail(e, -EINVAL, "%s", why);
    return 0;
}

/* ---- Groups of an aggregation ---- */

/* A group's row has three values for each point: the result so far, its rounding error, and the count. */
struct grouping {
    const struct expr *by;
    struct vector *groups;
    struct strset labels; /* of the groups, in the same order */
    struct buf text;      /* the labels of the group of a row */
};

static void grouping_done(struct grouping *g)
{
    strset_done(&g->labels);
    buf_done(&g->text);
}

static struct str group_labels(struct grouping *g, struct str labels)
{
    struct series_label l;

    buf_clear(&g->text);
    while (labels_next(&labels, &l)) {
        const struct series_matcher *listed = g->by->labels;

        while (listed && !str_eq(listed->name, l.name))
            listed = listed->next;
        if (g->by->without ? !listed && !str_eq(l.name, STR("__name__")) : listed != NULL)
            put_str(&g->text, (struct str){l.name.p, l.name.n + l.value.n + 2});
    }
    return buf_str(&g->text);
}

/* Adds a row's values to its group. */
static int group_add(struct eval *e, struct grouping *g, const struct query_row *row)
{
    struct str labels = group_labels(g, row->labels);
    size_t place = strset_find(&g->labels, labels);
    struct query_row *group;

    if (place != SIZE_MAX)
        group = &g->groups->rows[place];
    else if (vector_add(e, g->groups, labels, 3 * e->n, &group) == 0)
        (void)strset_add(&g->labels, group->labels);
    else
        return -EFBIG;
    for (size_t i = 0; i < e->n; i++) {
        struct total *t = (struct total *)group->values + i;

        if (value_is_absent(row->values[i]))
            continue;
        if (value_is_absent(t->count))
            *t = (struct total){row->values[i], 0, 1};
        else
            total_add(t, g->by->how, row->values[i]);
    }
    return 0;
}

/* ---- Selectors and functions ---- */

static const char same_labels[] = "several series have the same labels without their metric's name";

static int64_t eval_point(const struct eval *e, size_t i)
{
    return e->range.start_ms + (int64_t)i * e->range.step_ms;
}

/* The function over the samples of each range; stale markers are none, but end a series that is read without
 * a function. Returns whether there is any value. */
static bool compute_series(const struct eval *e, const struct expr *x, struct series_reader *in,
                           double *values)
{
    size_t n = x->how == COMPUTE_LATEST ? in->n : 0, first = 0, end = 0;
    bool some = false;

    for (size_t i = n; i < in->n; i++)
        if (!value_is_absent(in->samples[i].v))
            in->samples[n++] = in->samples[i];
    for (size_t i = 0; i < e->n && !atomic_load(e->cancelled); i++) {
        struct window w = {.at = eval_point(e, i), .range_ms = x->range_ms};

        while (first < n && in->samples[first].t <= w.at - x->range_ms)
            first++;
        while (end < n && in->samples[end].t <= w.at)
            end++;
        w.s = in->samples + first;
        w.n = end > first ? end - first : 0;
        values[i] = w.n ? window_value(&w, x->how) : value_absent();
        some |= !value_is_absent(values[i]);
    }
    return some;
}

/* Adds each series of a selector, or of the function around it, to its group or, without any, to `to`. */
static int eval_series(struct eval *e, const struct expr *x, struct vector *to, struct grouping *groups)
{
    CLEANUP(series_reader_done)
    struct series_reader in = {.store = e->store,
                               .matchers = x->matchers,
                               .from_ms = e->range.start_ms - x->range_ms + 1,
                               .to_ms = e->range.end_ms};
    CLEANUP(cleanup_free) double *values = xcalloc(e->n, sizeof(*values));
    struct store_stats stats;
    struct query_row *kept;
    int r;

    while ((r = series_next(&in)) > 0) {
        struct query_row row = {in.labels, values};
        bool some = compute_series(e, x, &in, values);

        if (atomic_load(e->cancelled))
            return -ECANCELED;
        if (x->how < COMPUTE_LAST)
            row_drop_name(&row);
        if (some && groups)
            r = group_add(e, groups, &row);
        else if (some && (r = vector_add(e, to, row.labels, e->n, &kept)) == 0)
            memcpy(kept->values, values, e->n * sizeof(*values));
        if (r < 0)
            return r;
    }
    if (r != -ENODATA)
        return r < 0 ? eval_fail(e, r, "a regular expression takes too many steps on a label value") : 0;
    store_stats(e->store, &stats);
    return eval_fail(e, r,
                     "samples of the time range were evicted: limits.otlpMemory (%llu bytes) is reached",
                     (unsigned long long)stats.max_bytes);
}

static int eval_expr(struct eval *e, const struct expr *x, struct vector *to);

/* ---- Aggregations ---- */

/* Whether the series need not be held to find two that have the same labels without their names. */
static bool is_unambiguous(const struct expr *x)
{
    bool named = x->kind == EXPR_SELECTOR && x->how == COMPUTE_LATEST;

    for (const struct series_matcher *m = x->matchers; m; m = m->next)
        named |= !m->regex && !m->negated && str_eq(m->name, STR("__name__"));
    return named;
}

static int eval_aggregation(struct eval *e, const struct expr *x, struct vector *to)
{
    CLEANUP(grouping_done) struct grouping g = {.by = x, .groups = to, .text.max = SIZE_MAX};
    VECTOR_AUTO(of);
    int r;

    if (is_unambiguous(x->left)) {
        r = eval_series(e, x->left, NULL, &g);
    } else {
        r = eval_expr(e, x->left, &of);
        for (size_t i = 0; i < of.n && r == 0; i++)
            r = group_add(e, &g, &of.rows[i]);
    }
    for (size_t i = 0; i < to->n && r == 0; i++)
        for (size_t p = 0; p < e->n; p++) { /* in the place of the first totals */
            struct total t = ((const struct total *)to->rows[i].values)[p];

            to->rows[i].values[p] = value_is_absent(t.count) ? value_absent() : total_result(&t, x->how);
        }
    vector_sort(to);
    return r;
}

/* ---- Operators ---- */

/* Between the rows of two expressions with the same labels, or with a number on one side. The rows of `to`
 * are the left ones at first, or the right ones if a number is on the left. */
static int eval_operation(struct eval *e, const struct expr *x, struct vector *to)
{
    bool number_left = x->left->kind == EXPR_NUMBER, numbers = number_left || x->right->kind == EXPR_NUMBER;
    VECTOR_AUTO(other);
    int r = eval_expr(e, number_left ? x->left : x->right, &other)
                ?: eval_expr(e, number_left ? x->right : x->left, to);
    size_t n = 0;

    vector_drop_names(to);
    vector_drop_names(&other);
    r = r ?: vector_check(e, &other, "several series on the right side of an operator have the same labels");
    for (size_t i = 0, k = 0; i < to->n && r == 0; i++) {
        const struct query_row *row = &to->rows[i];

        while (!numbers && k < other.n && row_order(&other.rows[k], row) < 0)
            k++;
        if (k == other.n || (!numbers && row_order(&other.rows[k], row) != 0))
            continue;
        if (!numbers && vector_repeats(to, i))
            return eval_fail(e, -EINVAL,
                             "several series on the left side of an operator have the same labels");
        for (size_t p = 0; p < e->n; p++) {
            double v = row->values[p], w = other.rows[k].values[p];

            if (value_is_absent(v) || value_is_absent(w))
                row->values[p] = value_absent();
            else if (number_left)
                row->values[p] = query_compute(x->op, w, v);
            else
                row->values[p] = query_compute(x->op, v, w);
        }
        to->rows[n++] = *row;
    }
    to->n = n;
    return r ?: vector_check(e, to, same_labels);
}

static int eval_expr(struct eval *e, const struct expr *x, struct vector *to)
{
    struct query_row *row;
    int r;

    switch (x->kind) {
    case EXPR_NUMBER:
        r = vector_add(e, to, STR(""), e->n, &row);
        for (size_t i = 0; i < e->n && r == 0; i++)
            row->values[i] = x->number;
        return r;
    case EXPR_SELECTOR:
        r = eval_series(e, x, to, NULL);
        vector_sort(to);
        return r ?: vector_check(e, to, same_labels);
    case EXPR_AGGREGATION:
        return eval_aggregation(e, x, to);
    default:
        return eval_operation(e, x, to);
    }
}

/* ---- The result ---- */

/* `[1435781451.781,"1.5"]`, after a comma if it is not the first. */
static void row_put_sample(struct buf *out, int64_t ms, double v, bool first)
{
    enum { SAMPLE_BYTES = 400 };
    char *to, *p;
    size_t n;
    int r = buf_reserve(out, SAMPLE_BYTES, &to);

    if (r < 0) {
        buf_fail(out, r);
        return;
    }
    p = to;
    if (!first)
        *p++ = ',';
    *p++ = '[';
    p += num_put_u64(p, (uint64_t)ms / 1000);
    if (ms % 1000)
        p += sprintf(p, ".%03d", (int)(ms % 1000));
    *p++ = ',';
    *p++ = '"';
    n = translate_number(v, p);
    if (n >= 3 && p[n - 3] == 'e') { /* an exponent has two digits at least */
        p[n] = p[n - 1];
        p[n++ - 1] = '0';
    }
    p += n;
    *p++ = '"';
    *p++ = ']';
    out->n += (size_t)(p - to);
}

/* Nothing, without any value. */
static int row_write(const struct eval *e, const struct query_row *row, struct buf *out, size_t *series)
{
    struct buf_mark mark = buf_mark(out);
    size_t samples = 0;
    struct str rest = row->labels;
    struct series_label l;

    text_join(out, ",");
    buf_puts(out, "{\"metric\":{");
    while (labels_next(&rest, &l)) {
        buf_put_json(out, l.name);
        buf_putc(out, ':');
        buf_put_json(out, l.value);
        if (rest.n)
            buf_putc(out, ',');
    }
    buf_puts(out, "},\"values\":[");
    for (size_t i = 0; i < e->n; i++) {
        if (value_is_absent(row->values[i]))
            continue;
        row_put_sample(out, eval_point(e, i), row->values[i], samples == 0);
        samples++;
    }
    buf_puts(out, "]}");
    if (samples == 0)
        buf_rollback(out, mark);
    *series += samples > 0;
    return buf_failed(out);
}

int query_run(const struct query *q, struct store *store, const struct query_range *range,
              const atomic_bool *cancelled, struct buf *out, size_t *ret_series, char why[QUERY_WHY_BYTES])
{
    int64_t steps = range->end_ms < range->start_ms ? -1 : (range->end_ms - range->start_ms) / range->step_ms;
    struct eval e = {store, cancelled, *range, (size_t)steps + 1, out->max, 0, why};
    VECTOR_AUTO(result);
    int r;

    *ret_series = 0;
    if (steps < 0)
        return 0;
    if (steps > QUERY_MAX_STEPS)
        return eval_fail(&e, -EINVAL, "%lld points for each series, at most %d are possible",
                         (long long)steps + 1, QUERY_MAX_STEPS + 1);
    e.range.end_ms = eval_point(&e, (size_t)steps);
    r = eval_expr(&e, q->root, &result);
    for (size_t i = 0; i < result.n && r == 0; i++)
        r = row_write(&e, &result.rows[i], out, ret_series);
    return r == -EFBIG ? eval_charge(&e, e.max_bytes + 1) : r;
}
