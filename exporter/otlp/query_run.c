/* A range query. Each expression becomes a table: a row for each label set, with a value for each point. Only
 * the series of an aggregation are not held: their values are added to the groups one after the other. */
#include "exporter/base/arena.h"
#include "exporter/base/buf.h"
#include "exporter/base/json.h"
#include "exporter/num/num.h"
#include "exporter/otlp/query.h"
#include "exporter/otlp/query_tree.h"
#include "exporter/otlp/series.h"
#include "exporter/otlp/translate.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

enum { ARENA_BYTES = 64 << 10, FIRST_SLOTS = 64 };

/* ---- Sums and means as Prometheus computes them: with Kahan's summation, improved by Neumaier ---- */

/* With the rounding error that the sum lacks. */
struct total {
    double sum, error, count;
};

static void total_add(struct total *t, double v)
{
    double sum = t->sum + v;

    if (isinf(sum))
        t->error = 0;
    else if (fabs(t->sum) >= fabs(v))
        t->error += (t->sum - sum) + v;
    else
        t->error += (v - sum) + t->sum;
    t->sum = sum;
    t->count++;
}

static double total_value(const struct total *t)
{
    return isinf(t->sum) ? t->sum : t->sum + t->error;
}

static double total_mean(const struct total *t)
{
    return t->sum / t->count + t->error / t->count;
}

/* ---- Functions: each in Prometheus' order of operations, so that results have the same bits ---- */

/* Go's Duration.Seconds(). */
static double duration_seconds(int64_t ms)
{
    int64_t whole = ms / 1000;

    return (double)whole + (double)(ms % 1000 * 1000000) / 1e9;
}

/* The seconds by which the change is extended beyond a sample that lies `gap` seconds from the border of the
 * window: up to the border, or by half the usual interval if more than one sample seems to be missing. */
static double extension(double gap, double interval)
{
    return gap >= interval * 1.1 ? interval / 2 : gap;
}

static double extrapolated(const struct window *w, bool is_counter, bool is_rate)
{
    double change, start, end, sampled, interval, factor;
    size_t last = w->n - 1;

    if (w->n < 2)
        return value_absent();
    change = w->s[last].v - w->s[0].v;
    for (size_t i = 1; is_counter && i < w->n; i++)
        if (w->s[i].v < w->s[i - 1].v) /* it began again at 0 */
            change += w->s[i - 1].v;
    sampled = (double)(w->s[last].t - w->s[0].t) / 1000;
    interval = sampled / (double)last;
    start = extension((double)(w->s[0].t - (w->at - w->range_ms)) / 1000, interval);
    end = extension((double)(w->at - w->s[last].t) / 1000, interval);
    if (is_counter && change > 0 && w->s[0].v >= 0) {
        /* A counter is not extended to before it was 0. */
        double to_zero = sampled * (w->s[0].v / change);

        if (to_zero < start)
            start = to_zero;
    }
    factor = (sampled + start + end) / sampled;
    if (is_rate)
        factor /= duration_seconds(w->range_ms);
    return change * factor;
}

static double fn_irate(const struct window *w)
{
    double last = w->s[w->n - 1].v, before;

    if (w->n < 2)
        return value_absent();
    before = w->s[w->n - 2].v;
    return (last < before ? last : last - before) / ((double)(w->s[w->n - 1].t - w->s[w->n - 2].t) / 1000);
}

static double fn_last(const struct window *w)
{
    return w->s[w->n - 1].v;
}

static double fn_count(const struct window *w)
{
    return (double)w->n;
}

static struct total window_total(const struct window *w)
{
    struct total t = {w->s[0].v, 0, 1};

    for (size_t i = 1; i < w->n; i++)
        total_add(&t, w->s[i].v);
    return t;
}

static double fn_sum(const struct window *w)
{
    struct total t = window_total(w);

    return total_value(&t);
}

static double fn_avg(const struct window *w)
{
    struct total t = window_total(w);

    return total_mean(&t);
}

static double fn_extreme(const struct window *w, bool is_max)
{
    double found = w->s[0].v;

    for (size_t i = 1; i < w->n; i++)
        if (isnan(found) || (is_max ? w->s[i].v > found : w->s[i].v < found))
            found = w->s[i].v;
    return found;
}

static double fn_rate(const struct window *w)
{
    return extrapolated(w, true, true);
}

static double fn_increase(const struct window *w)
{
    return extrapolated(w, true, false);
}

static double fn_delta(const struct window *w)
{
    return extrapolated(w, false, false);
}

static double fn_min(const struct window *w)
{
    return fn_extreme(w, false);
}

static double fn_max(const struct window *w)
{
    return fn_extreme(w, true);
}

const struct range_function range_functions[] = {
    {"avg_over_time", fn_avg, false},
    {"count_over_time", fn_count, false},
    {"delta", fn_delta, false},
    {"increase", fn_increase, false},
    {"irate", fn_irate, false},
    {"last_over_time", fn_last, true},
    {"max_over_time", fn_max, false},
    {"min_over_time", fn_min, false},
    {"rate", fn_rate, false},
    {"sum_over_time", fn_sum, false},
    {NULL, NULL, false},
};

/* ---- Tables ---- */

struct row {
    struct series_label *labels; /* sorted by name */
    size_t n_labels;
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

struct table {
    struct arena arena;
    struct row *rows; /* room for half of the slots */
    size_t n;
    uint32_t *slots; /* row + 1 by hash; 0: free */
    size_t n_slots;  /* a power of two, at least twice n */
};

static int eval_fail(struct eval *e, int r, const char *why)
{
    (void)snprintf(e->why, QUERY_WHY_BYTES, "%s", why);
    return r;
}

static int eval_charge(struct eval *e, uint64_t bytes)
{
    e->bytes += bytes;
    if (e->bytes <= e->max_bytes)
        return 0;
    (void)snprintf(e->why, QUERY_WHY_BYTES, "the result exceeds the limit of %llu bytes",
                   (unsigned long long)e->max_bytes);
    return -EFBIG;
}

static void query_table_done(struct table *t)
{
    arena_done(&t->arena);
    free(t->rows);
    free(t->slots);
}

#define TABLE_AUTO(name) CLEANUP(query_table_done) struct table name = {.arena = {.chunk_bytes = ARENA_BYTES}}

/* Where the row is, or would be. There are slots. */
static uint32_t *table_slot(const struct table *t, const struct row *key)
{
    size_t at = labels_hash(key->labels, key->n_labels) & (t->n_slots - 1);

    for (; t->slots[at]; at = (at + 1) & (t->n_slots - 1)) {
        const struct row *r = &t->rows[t->slots[at] - 1];

        if (labels_compare(r->labels, r->n_labels, key->labels, key->n_labels) == 0)
            break;
    }
    return &t->slots[at];
}

static struct row *table_find(const struct table *t, const struct row *key)
{
    uint32_t at = t->n_slots ? *table_slot(t, key) : 0;

    return at ? &t->rows[at - 1] : NULL;
}

/* Enters all rows into a new table of slots. False if two have the same labels. */
static bool table_index(struct table *t, size_t n_slots)
{
    free(t->slots);
    t->slots = xcalloc(n_slots, sizeof(*t->slots));
    t->n_slots = n_slots;
    for (size_t i = 0; i < t->n; i++) {
        uint32_t *slot = table_slot(t, &t->rows[i]);

        if (*slot)
            return false;
        *slot = (uint32_t)i + 1;
    }
    return true;
}

/* Adds a row with copies of the labels and room for `n` values, none of them present. */
static int query_table_add(struct eval *e, struct table *t, const struct row *key, size_t n, struct row **ret)
{
    size_t bytes = key->n_labels * sizeof(*key->labels);
    struct row row = {.n_labels = key->n_labels};
    char *text;
    int r;

    for (size_t i = 0; i < key->n_labels; i++)
        bytes += key->labels[i].name.n + key->labels[i].value.n;
    r = eval_charge(e, bytes + n * sizeof(double) + sizeof(row));
    if (r < 0)
        return r;
    if (t->n * 2 >= t->n_slots) {
        size_t slots = t->n_slots ? t->n_slots * 2 : FIRST_SLOTS;

        t->rows = xreallocarray(t->rows, slots / 2, sizeof(*t->rows));
        (void)table_index(t, slots);
    }
    row.labels = arena_alloc(&t->arena, bytes + 1);
    text = (char *)(row.labels + row.n_labels);
    for (size_t i = 0; i < row.n_labels; i++) {
        struct str name = key->labels[i].name, value = key->labels[i].value;

        row.labels[i] = (struct series_label){{text, name.n}, {text + name.n, value.n}};
        text = mempcpy(mempcpy(text, name.p, name.n), value.p, value.n);
    }
    row.values = arena_alloc(&t->arena, n * sizeof(double));
    for (size_t i = 0; i < n; i++)
        row.values[i] = value_absent();
    t->rows[t->n] = row;
    *table_slot(t, &row) = (uint32_t)++t->n;
    *ret = &t->rows[t->n - 1];
    return 0;
}

/* As operators and functions do. */
static void row_drop_name(struct row *row)
{
    size_t n = 0;

    for (size_t i = 0; i < row->n_labels; i++)
        if (!str_eq(row->labels[i].name, STR("__name__")))
            row->labels[n++] = row->labels[i];
    row->n_labels = n;
}

static int table_drop_names(struct eval *e, struct table *t, const char *why)
{
    for (size_t i = 0; i < t->n; i++)
        row_drop_name(&t->rows[i]);
    return t->n == 0 || table_index(t, t->n_slots) ? 0 : eval_fail(e, -EINVAL, why);
}

/* ---- Selectors and functions ---- */

static const char same_labels[] = "several series have the same labels without their metric's name";

/* Gets a row that is only valid during the call. */
typedef int eval_row_fn(struct eval *e, void *arg, struct row *row);

static int64_t eval_point(const struct eval *e, size_t i)
{
    return e->range.start_ms + (int64_t)i * e->range.step_ms;
}

/* The latest sample of the last five minutes, unless that is a stale marker. Returns whether there is any. */
static bool compute_latest(const struct eval *e, const struct series_reader *in, double *values)
{
    bool some = false;
    size_t next = 0;

    for (size_t i = 0; i < e->n; i++) {
        int64_t at = eval_point(e, i);

        while (next < in->n && in->samples[next].t <= at)
            next++;
        values[i] = next && in->samples[next - 1].t > at - QUERY_LOOKBACK_MS ? in->samples[next - 1].v
                                                                             : value_absent();
        some |= !value_is_absent(values[i]);
    }
    return some;
}

/* The function over the samples of each range; stale markers are none. */
static bool compute_function(const struct eval *e, const struct expr *x, struct series_reader *in,
                             double *values)
{
    size_t n = 0, first = 0, end = 0;
    bool some = false;

    for (size_t i = 0; i < in->n; i++)
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
        values[i] = w.n ? x->function->value(&w) : value_absent();
        some |= !value_is_absent(values[i]);
    }
    return some;
}

/* Hands on each series of a selector, or of the function around it. */
static int eval_series(struct eval *e, const struct expr *x, eval_row_fn *put, void *arg)
{
    int64_t reach = x->kind == EXPR_FUNCTION ? x->range_ms : QUERY_LOOKBACK_MS;
    CLEANUP(series_reader_done)
    struct series_reader in = {.store = e->store,
                               .matchers = x->matchers,
                               .n_matchers = x->n_matchers,
                               .from_ms = e->range.start_ms - reach + 1,
                               .to_ms = e->range.end_ms};
    CLEANUP(cleanup_free) double *values = xcalloc(e->n, sizeof(*values));
    int r;

    while ((r = series_next(&in)) > 0) {
        struct row row = {in.labels, in.n_labels, values};
        bool some =
            x->kind == EXPR_FUNCTION ? compute_function(e, x, &in, values) : compute_latest(e, &in, values);

        if (atomic_load(e->cancelled))
            return -ECANCELED;
        if (x->kind == EXPR_FUNCTION && !x->function->keeps_name)
            row_drop_name(&row);
        r = some ? put(e, arg, &row) : 0;
        if (r < 0)
            return r;
    }
    return r < 0 ? eval_fail(e, r, in.why) : 0;
}

static int eval_keep(struct eval *e, void *arg, struct row *row)
{
    struct row *kept = table_find(arg, row);
    int r = kept ? eval_fail(e, -EINVAL, same_labels) : query_table_add(e, arg, row, e->n, &kept);

    if (r == 0)
        memcpy(kept->values, row->values, e->n * sizeof(*row->values));
    return r;
}

/* ---- Aggregations ---- */

/* A group's row has three values for each point: the result so far, its rounding error, and the count. */
struct grouping {
    const struct expr *rule;
    struct table *groups;
};

/* Both lists are sorted. */
static size_t group_labels(const struct expr *rule, const struct row *row,
                           struct series_label to[SERIES_MAX_LABELS])
{
    size_t n = 0, at = 0;

    for (size_t i = 0; i < row->n_labels; i++) {
        struct str name = row->labels[i].name;
        bool listed;

        while (at < rule->n_labels && str_cmp(rule->labels[at], name) < 0)
            at++;
        listed = at < rule->n_labels && str_eq(rule->labels[at], name);
        if (rule->without ? !listed && !str_eq(name, STR("__name__")) : listed)
            to[n++] = row->labels[i];
    }
    return n;
}

static void group_add(enum aggregation op, struct total *t, double v)
{
    bool first = value_is_absent(t->sum);

    switch (op) {
    case AGGREGATION_COUNT:
        t->sum = first ? 1 : t->sum + 1;
        break;
    case AGGREGATION_MAX:
    case AGGREGATION_MIN:
        if (first || isnan(t->sum) || (op == AGGREGATION_MAX ? t->sum < v : t->sum > v))
            t->sum = v;
        break;
    default:
        if (first)
            *t = (struct total){v, 0, 1};
        else
            total_add(t, v);
    }
}

static int group_row(struct eval *e, void *arg, struct row *row)
{
    const struct grouping *g = arg;
    struct series_label labels[SERIES_MAX_LABELS];
    struct row key = {labels, group_labels(g->rule, row, labels), NULL};
    struct row *group = table_find(g->groups, &key);
    int r = group ? 0 : query_table_add(e, g->groups, &key, 3 * e->n, &group);

    for (size_t i = 0; i < e->n && r == 0; i++)
        if (!value_is_absent(row->values[i]))
            group_add(g->rule->aggregation, (struct total *)group->values + i, row->values[i]);
    return r;
}

/* The result of a group, in the place of its first values. */
static void group_finish(const struct eval *e, enum aggregation op, double *values)
{
    for (size_t i = 0; i < e->n; i++) {
        struct total t;

        memcpy(&t, values + 3 * i, sizeof(t));
        if (value_is_absent(t.sum) || (op != AGGREGATION_AVG && op != AGGREGATION_SUM))
            values[i] = t.sum;
        else
            values[i] = op == AGGREGATION_AVG ? total_mean(&t) : total_value(&t);
    }
}

static int eval_expr(struct eval *e, const struct expr *x, struct table *to);

/* Whether the series need not be held to find two that have the same labels without their names. */
static bool is_unambiguous(const struct expr *x)
{
    bool named = x->kind == EXPR_SELECTOR;

    for (size_t i = 0; i < x->n_matchers; i++) {
        const struct series_matcher *m = &x->matchers[i];

        named |= !m->regex && !m->negated && str_eq(m->name, STR("__name__"));
    }
    return named;
}

static int eval_aggregation(struct eval *e, const struct expr *x, struct table *to)
{
    struct grouping g = {x, to};
    TABLE_AUTO(of);
    int r;

    if (is_unambiguous(x->left)) {
        r = eval_series(e, x->left, group_row, &g);
    } else {
        r = eval_expr(e, x->left, &of);
        for (size_t i = 0; i < of.n && r == 0; i++)
            r = group_row(e, &g, &of.rows[i]);
    }
    for (size_t i = 0; i < to->n && r == 0; i++)
        group_finish(e, x->aggregation, to->rows[i].values);
    return r;
}

/* ---- Operators ---- */

/* a + b at each point; a value that is missing on either side is missing. */
static void row_compute(const struct eval *e, char operator, double * to, const double *a, const double *b)
{
    for (size_t i = 0; i < e->n; i++)
        to[i] = value_is_absent(a[i]) || value_is_absent(b[i]) ? value_absent()
                                                               : query_compute(operator, a[i], b[i]);
}

/* Between the rows of two expressions with the same labels. */
static int eval_matching(struct eval *e, const struct expr *x, struct table *to)
{
    TABLE_AUTO(left);
    TABLE_AUTO(right);
    int r = eval_expr(e, x->right, &right) ?: eval_expr(e, x->left, &left);

    r = r
            ?: table_drop_names(e, &right,
                                "several series on the right side of an operator have the same labels");
    for (size_t i = 0; i < left.n && r == 0; i++) {
        struct row *row = &left.rows[i], *other, *result;

        row_drop_name(row);
        other = table_find(&right, row);
        if (!other)
            continue;
        if (table_find(to, row))
            return eval_fail(e, -EINVAL,
                             "several series on the left side of an operator have the same labels");
        r = query_table_add(e, to, row, e->n, &result);
        if (r == 0)
            row_compute(e, x->operator, result->values, row->values, other->values);
    }
    return r;
}

/* A negation, or an operator with a number. */
static int eval_arithmetic(struct eval *e, const struct expr *x, struct table *to)
{
    bool number_left = x->right && x->left->type == TYPE_SCALAR;
    int r = eval_expr(e, number_left ? x->right : x->left, to) ?: table_drop_names(e, to, same_labels);

    for (size_t i = 0; i < to->n && r == 0; i++)
        for (size_t k = 0; k < e->n; k++) {
            double *v = &to->rows[i].values[k];

            if (value_is_absent(*v))
                continue;
            if (x->kind == EXPR_NEGATION)
                *v = -*v;
            else if (number_left)
                *v = query_compute(x->operator, x->left->number, *v);
            else
                *v = query_compute(x->operator, * v, x->right->number);
        }
    return r;
}

static int eval_number(struct eval *e, const struct expr *x, struct table *to)
{
    struct row *row, key = {0};
    int r = query_table_add(e, to, &key, e->n, &row);

    for (size_t i = 0; i < e->n && r == 0; i++)
        row->values[i] = x->number;
    return r;
}

static int eval_expr(struct eval *e, const struct expr *x, struct table *to)
{
    if (x->kind == EXPR_NUMBER)
        return eval_number(e, x, to);
    if (x->kind == EXPR_SELECTOR || x->kind == EXPR_FUNCTION)
        return eval_series(e, x, eval_keep, to);
    if (x->kind == EXPR_AGGREGATION)
        return eval_aggregation(e, x, to);
    if (x->kind == EXPR_BINARY && x->left->type == TYPE_VECTOR && x->right->type == TYPE_VECTOR)
        return eval_matching(e, x, to);
    return eval_arithmetic(e, x, to);
}

/* ---- The result ---- */

static int row_order(const void *a, const void *b)
{
    const struct row *x = a, *y = b;

    return labels_compare(x->labels, x->n_labels, y->labels, y->n_labels);
}

/* As Prometheus writes it in JSON: an exponent, of two digits at least, below 1e-6 and from 1e21. */
static size_t row_put_value(double v, char to[DECIMAL_MAX])
{
    double magnitude = fabs(v);
    size_t n;

    if (v == 0 || !isfinite(v) || (magnitude >= 1e-6 && magnitude < 1e21))
        return translate_decimal(v, to);
    n = num_put_double(to, v);
    if (to[n - 2] != '-' && to[n - 2] != '+')
        return n;
    to[n] = to[n - 1];
    to[n - 1] = '0';
    return n + 1;
}

/* `[1435781451.781,"1.5"]`, after a comma if it is not the first. */
static int row_put_sample(struct buf *out, int64_t ms, double v, bool first)
{
    enum { SAMPLE_BYTES = 400 };
    char *to, *p;
    int r = buf_room(out, SAMPLE_BYTES, &to);

    if (r < 0)
        return r;
    p = to;
    if (!first)
        *p++ = ',';
    *p++ = '[';
    if (ms < 0)
        *p++ = '-';
    ms = ms < 0 ? -ms : ms;
    p += num_put_u64(p, (uint64_t)ms / 1000);
    if (ms % 1000)
        p += sprintf(p, ".%03d", (int)(ms % 1000));
    *p++ = ',';
    *p++ = '"';
    p += row_put_value(v, p);
    *p++ = '"';
    *p++ = ']';
    out->n += (size_t)(p - to);
    return 0;
}

static int row_write(const struct eval *e, const struct row *row, struct buf *out)
{
    int r = buf_puts(out, out->n ? ",{\"metric\":{" : "{\"metric\":{");
    bool first = true;

    for (size_t i = 0; i < row->n_labels && r == 0; i++) {
        r = i ? buf_putc(out, ',') : 0;
        r = r ?: buf_put_json(out, row->labels[i].name) ?: buf_putc(out, ':');
        r = r ?: buf_put_json(out, row->labels[i].value);
    }
    r = r ?: buf_puts(out, "},\"values\":[");
    for (size_t i = 0; i < e->n && r == 0; i++)
        if (!value_is_absent(row->values[i])) {
            r = row_put_sample(out, eval_point(e, i), row->values[i], first);
            first = false;
        }
    return r ?: buf_puts(out, "]}");
}

static int result_write(struct eval *e, struct table *t, struct buf *out, size_t *ret_series)
{
    int r = 0;

    if (t->n)
        qsort(t->rows, t->n, sizeof(*t->rows), row_order);
    for (size_t i = 0; i < t->n && r == 0; i++) {
        size_t first = 0;

        while (first < e->n && value_is_absent(t->rows[i].values[first]))
            first++;
        if (first == e->n)
            continue;
        r = row_write(e, &t->rows[i], out);
        ++*ret_series;
    }
    return r == -EFBIG ? eval_charge(e, e->max_bytes + 1) : r;
}

int query_run(const struct query *q, struct store *store, const struct query_range *range,
              const atomic_bool *cancelled, struct buf *out, size_t *ret_series, char why[QUERY_WHY_BYTES])
{
    int64_t steps = range->end_ms < range->start_ms ? -1 : (range->end_ms - range->start_ms) / range->step_ms;
    struct eval e = {store, cancelled, *range, (size_t)steps + 1, out->max, 0, why};
    TABLE_AUTO(result);

    *ret_series = 0;
    if (steps < 0)
        return 0;
    if (steps > QUERY_MAX_STEPS) {
        (void)snprintf(why, QUERY_WHY_BYTES, "%lld points for each series, at most %d are possible",
                       (long long)steps + 1, QUERY_MAX_STEPS + 1);
        return -EINVAL;
    }
    e.range.end_ms = eval_point(&e, (size_t)steps);
    return eval_expr(&e, q->root, &result) ?: result_write(&e, &result, out, ret_series);
}
