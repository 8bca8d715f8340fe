/* A range query. Each expression hands its series on, one after the other, as rows with a value for each
 * point: to the aggregation or operator around it, or into the result. Only what has to be complete before
 * it can go on is held: groups of aggregations, one side of an operator between vectors, and the result. */
#include "exporter/otlp/query.h"

#include "exporter/base/arena.h"
#include "exporter/base/buf.h"
#include "exporter/base/json.h"
#include "exporter/num/num.h"
#include "exporter/otlp/query_tree.h"
#include "exporter/otlp/series.h"
#include "exporter/otlp/translate.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

enum { ARENA_BYTES = 64 << 10, FIRST_SLOTS = 64, MAX_PLANES = 3 };

/* ---- Sums and means as Prometheus computes them: with Kahan's summation, improved by Neumaier ---- */

/* With the rounding error that the sum lacks. Once a mean's sum would exceed a double, `sum` is the mean
 * itself, updated by each value, and the count is negative. */
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
}

static double total_value(const struct total *t)
{
    return isinf(t->sum) ? t->sum : t->sum + t->error;
}

static void mean_add(struct total *m, double v)
{
    double count = fabs(m->count) + 1, q = (count - 1) / count;
    struct total next = *m;

    if (m->count >= 0) {
        total_add(&next, v);
        next.count = count;
        if (count == 1)
            next = (struct total){v, 0, 1};
        if (count == 1 || !isinf(next.sum)) {
            *m = next;
            return;
        }
        m->sum /= count - 1;
        m->error /= count - 1;
    }
    *m = (struct total){q * m->sum, q * m->error, -count};
    total_add(m, v / count);
}

static double mean_value(const struct total *m)
{
    return m->count < 0 ? m->sum + m->error : m->sum / m->count + m->error / m->count;
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
    change = w->v[last] - w->v[0];
    for (size_t i = 1; is_counter && i < w->n; i++)
        if (w->v[i] < w->v[i - 1]) /* it began again at 0 */
            change += w->v[i - 1];
    sampled = (double)(w->t[last] - w->t[0]) / 1000;
    interval = sampled / (double)last;
    start = extension((double)(w->t[0] - (w->at - w->range_ms)) / 1000, interval);
    end = extension((double)(w->at - w->t[last]) / 1000, interval);
    if (is_counter && change > 0 && w->v[0] >= 0) {
        /* A counter is not extended to before it was 0. */
        double to_zero = sampled * (w->v[0] / change);

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
    double last = w->v[w->n - 1], before;

    if (w->n < 2)
        return value_absent();
    before = w->v[w->n - 2];
    return (last < before ? last : last - before) / ((double)(w->t[w->n - 1] - w->t[w->n - 2]) / 1000);
}

static double fn_last(const struct window *w)
{
    return w->v[w->n - 1];
}

static double fn_count(const struct window *w)
{
    return (double)w->n;
}

static double fn_sum(const struct window *w)
{
    struct total sum = {0};

    for (size_t i = 0; i < w->n; i++)
        total_add(&sum, w->v[i]);
    return total_value(&sum);
}

static double fn_avg(const struct window *w)
{
    struct total mean = {0};

    for (size_t i = 0; i < w->n; i++)
        mean_add(&mean, w->v[i]);
    return mean_value(&mean);
}

static double fn_extreme(const struct window *w, bool is_max)
{
    double found = w->v[0];

    for (size_t i = 1; i < w->n; i++)
        if (isnan(found) || (is_max ? w->v[i] > found : w->v[i] < found))
            found = w->v[i];
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
    {"avg_over_time", false, fn_avg},
    {"count_over_time", false, fn_count},
    {"delta", false, fn_delta},
    {"increase", false, fn_increase},
    {"irate", false, fn_irate},
    {"last_over_time", true, fn_last},
    {"max_over_time", false, fn_max},
    {"min_over_time", false, fn_min},
    {"rate", false, fn_rate},
    {"sum_over_time", false, fn_sum},
    {NULL, false, NULL},
};

/* ---- Rows ---- */

struct row {
    const struct series_label *labels; /* sorted by name */
    size_t n_labels;
    double *values; /* at each point; value_absent() where there is none. May be changed by whoever gets it */
};

/* Who gets the rows of an expression. */
struct sink {
    int (*put)(struct sink *to, struct row *row);
};

struct eval {
    struct store *store;
    const atomic_bool *cancelled;
    struct query_range range;
    size_t n; /* points */
    uint64_t max_bytes, bytes;
    char *why;
};

/* Rows by their labels, held in memory. */
struct table {
    struct eval *eval;
    size_t planes; /* each has a value for each point */
    struct arena arena;
    struct row *rows;
    size_t n;
    uint32_t *slots; /* row + 1 by hash; 0: free */
    size_t n_slots;  /* a power of two, more than twice n; rows has room for half of it */
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

static struct table table_of(struct eval *e, size_t planes)
{
    return (struct table){.eval = e, .planes = planes, .arena = {.chunk_bytes = ARENA_BYTES}};
}

static void query_table_done(struct table *t)
{
    arena_done(&t->arena);
    free(t->rows);
    free(t->slots);
}

static uint32_t *table_slot(const struct table *t, const struct row *key)
{
    size_t at = labels_hash(key->labels, key->n_labels) & (t->n_slots - 1);

    while (t->slots[at]) {
        const struct row *r = &t->rows[t->slots[at] - 1];

        if (labels_compare(r->labels, r->n_labels, key->labels, key->n_labels) == 0)
            break;
        at = (at + 1) & (t->n_slots - 1);
    }
    return &t->slots[at];
}

static struct row *table_find(const struct table *t, const struct row *key)
{
    uint32_t at = t->n_slots ? *table_slot(t, key) : 0;

    return at ? &t->rows[at - 1] : NULL;
}

static void table_grow(struct table *t)
{
    size_t slots = t->n_slots ? t->n_slots * 2 : FIRST_SLOTS;
    struct row *rows;

    if (t->n * 2 < t->n_slots)
        return;
    rows = xreallocarray(t->rows, slots / 2, sizeof(*rows));
    t->rows = rows;
    free(t->slots);
    t->slots = xcalloc(slots, sizeof(*t->slots));
    t->n_slots = t->slots ? slots : 0;
    for (size_t i = 0; i < t->n && t->slots; i++)
        *table_slot(t, &t->rows[i]) = (uint32_t)i + 1;
}

/* Adds a row with copies of the labels, and without values. */
static int query_rows_add(struct table *t, const struct row *key, struct row **ret)
{
    size_t values = t->eval->n * t->planes, bytes = key->n_labels * sizeof(*key->labels);
    struct series_label *labels;
    struct row row;
    char *text;
    int r;

    for (size_t i = 0; i < key->n_labels; i++)
        bytes += key->labels[i].name.n + key->labels[i].value.n;
    r = eval_charge(t->eval, bytes + values * sizeof(double) + sizeof(row));
    if (r < 0)
        return r;
    table_grow(t);
    labels = arena_alloc(&t->arena, bytes + 1);
    row = (struct row){labels, key->n_labels, arena_alloc(&t->arena, values * sizeof(double))};
    text = (char *)(labels + key->n_labels);
    for (size_t i = 0; i < key->n_labels; i++) {
        struct str name = key->labels[i].name, value = key->labels[i].value;

        labels[i] = (struct series_label){{text, name.n}, {text + name.n, value.n}};
        text = mempcpy(mempcpy(text, name.p, name.n), value.p, value.n);
    }
    memset(row.values, 0, values * sizeof(double));
    for (size_t i = 0; i < t->eval->n; i++)
        row.values[i] = value_absent();
    t->rows[t->n] = row;
    *ret = &t->rows[t->n++];
    *table_slot(t, &row) = (uint32_t)t->n;
    return 0;
}

static int table_get(struct table *t, const struct row *key, struct row **ret)
{
    *ret = table_find(t, key);
    return *ret ? 0 : query_rows_add(t, key, ret);
}

/* Adds the values to those of the row with the same labels, at points where it has none. */
static int table_merge(struct table *t, const struct row *from, const char *why)
{
    struct row *row;
    int r = table_get(t, from, &row);

    for (size_t i = 0; i < t->eval->n && r == 0; i++)
        if (!value_is_absent(from->values[i])) {
            if (!value_is_absent(row->values[i]))
                return eval_fail(t->eval, -EINVAL, why);
            row->values[i] = from->values[i];
        }
    return r;
}

static int table_emit(struct table *t, struct sink *to)
{
    int r = 0;

    for (size_t i = 0; i < t->n && r == 0; i++)
        r = to->put(to, &t->rows[i]);
    return r;
}

/* ---- Labels of results ---- */

static const char same_labels[] = "several series have the same labels without their metric's name";

/* What operators and functions drop: labels that say which metric it is. */
static size_t without_name(const struct row *row, struct series_label to[SERIES_MAX_LABELS])
{
    size_t n = 0;

    for (size_t i = 0; i < row->n_labels; i++) {
        struct str name = row->labels[i].name;

        if (!str_eq(name, STR("__name__")) && !str_eq(name, STR("__type__")) &&
            !str_eq(name, STR("__unit__")))
            to[n++] = row->labels[i];
    }
    return n;
}

/* Whether rows of the expression may be told apart by their name only. */
static bool needs_name(const struct expr *x)
{
    bool named = x->kind == EXPR_SELECTOR || x->kind == EXPR_FUNCTION;

    for (size_t i = 0; i < x->n_matchers && named; i++)
        named =
            x->matchers[i].regex || x->matchers[i].negated || !str_eq(x->matchers[i].name, STR("__name__"));
    for (size_t i = 0; i < x->n_labels && !named; i++)
        named = !x->without && str_eq(x->labels[i], STR("__name__"));
    return named;
}

/* What happens to the rows of an expression on their way: arithmetic with a number, their names are dropped,
 * arithmetic with the row of the same labels on the right side. Then they go on, or are held and refused if
 * several have the same labels: at all, or at the same point. */
struct stage {
    struct sink sink;
    struct eval *eval;
    char operator;                /* 0: none; '!': a negation */
    const double *left, *right;   /* the number on this side; both NULL: none */
    const struct table *matching; /* the right side; NULL: none */
    struct sink *to;              /* without `held` */
    struct table *held;
    bool is_whole; /* rows may not have the same labels at all */
    const char *why;
};

static double stage_compute(const struct stage *s, double v)
{
    if (s->operator== '!')
        return -v;
    return query_compute(s->operator, s->left ? *s->left : v, s->right ? *s->right : v);
}

static int stage_put(struct sink *sink, struct row *given)
{
    struct stage *s = CONTAINER_OF(sink, struct stage, sink);
    struct series_label labels[SERIES_MAX_LABELS];
    const struct row *other = NULL;
    struct row row = *given;

    row.n_labels = without_name(given, labels);
    row.labels = labels;
    if (s->matching && !(other = table_find(s->matching, &row)))
        return 0;
    for (size_t i = 0; i < s->eval->n && s->operator; i++) {
        double *v = &row.values[i];

        if (value_is_absent(*v))
            continue;
        if (!other)
            *v = stage_compute(s, *v);
        else
            *v = value_is_absent(other->values[i]) ? value_absent()
                                                   : query_compute(s->operator, * v, other->values[i]);
    }
    if (!s->held)
        return s->to->put(s->to, &row);
    if (s->is_whole && table_find(s->held, &row))
        return eval_fail(s->eval, -EINVAL, s->why);
    return table_merge(s->held, &row, s->why);
}

/* ---- Selectors and functions ---- */

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

        while (next < in->n && in->t[next] <= at)
            next++;
        values[i] = next && in->t[next - 1] > at - QUERY_LOOKBACK_MS ? in->v[next - 1] : value_absent();
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
        if (!value_is_absent(in->v[i])) {
            in->t[n] = in->t[i];
            in->v[n++] = in->v[i];
        }
    for (size_t i = 0; i < e->n && !atomic_load(e->cancelled); i++) {
        struct window w = {.at = eval_point(e, i), .range_ms = x->range_ms};

        while (first < n && in->t[first] <= w.at - x->range_ms)
            first++;
        while (end < n && in->t[end] <= w.at)
            end++;
        w.t = in->t + first;
        w.v = in->v + first;
        w.n = end > first ? end - first : 0;
        values[i] = w.n ? x->function->value(&w) : value_absent();
        some |= !value_is_absent(values[i]);
    }
    return some;
}

static int eval_series(struct eval *e, const struct expr *x, struct sink *to)
{
    int64_t reach = x->kind == EXPR_FUNCTION ? x->range_ms : QUERY_LOOKBACK_MS;
    CLEANUP(series_reader_done)
    struct series_reader in = {.store = e->store,
                               .matchers = x->matchers,
                               .n_matchers = x->n_matchers,
                               .from_ms = e->range.start_ms - reach + 1,
                               .to_ms = e->range.end_ms};
    CLEANUP(cleanup_free) double *values = xcalloc(e->n, sizeof(*values));
    int r = 1;

    while (r > 0 && (r = series_next(&in)) > 0) {
        struct row row = {in.labels, in.n_labels, values};
        bool some =
            x->kind == EXPR_FUNCTION ? compute_function(e, x, &in, values) : compute_latest(e, &in, values);

        if (atomic_load(e->cancelled))
            return -ECANCELED;
        if (some && (r = to->put(to, &row)) == 0)
            r = 1;
    }
    return r < 0 && in.why[0] ? eval_fail(e, r, in.why) : r;
}

/* ---- Aggregations ---- */

struct grouping {
    struct sink sink;
    const struct expr *rule;
    struct table groups;
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

/* Adds a value to what a group has at a point; `n` values are between its planes. */
static void group_add(enum aggregation op, double *group, size_t n, double v)
{
    bool first = value_is_absent(*group);
    struct total t = {*group, 0, 0};

    switch (op) {
    case AGGREGATION_COUNT:
        *group = first ? 1 : *group + 1;
        return;
    case AGGREGATION_MAX:
    case AGGREGATION_MIN:
        if (first || isnan(*group) || (op == AGGREGATION_MAX ? *group < v : *group > v))
            *group = v;
        return;
    default:
        t = (struct total){*group, group[n], group[2 * n]};
    }
    if (first)
        t = (struct total){v, 0, 1};
    else if (op == AGGREGATION_AVG)
        mean_add(&t, v);
    else
        total_add(&t, v);
    *group = t.sum;
    group[n] = t.error;
    group[2 * n] = t.count;
}

static int grouping_put(struct sink *sink, struct row *row)
{
    struct grouping *g = CONTAINER_OF(sink, struct grouping, sink);
    struct series_label labels[SERIES_MAX_LABELS];
    struct row key = {labels, group_labels(g->rule, row, labels), NULL}, *group;
    int r = table_get(&g->groups, &key, &group);

    for (size_t i = 0, n = g->groups.eval->n; i < n && r == 0; i++)
        if (!value_is_absent(row->values[i]))
            group_add(g->rule->aggregation, &group->values[i], n, row->values[i]);
    return r;
}

static int eval_expr(struct eval *e, const struct expr *x, struct sink *to);

static int eval_aggregation(struct eval *e, const struct expr *x, struct sink *to)
{
    bool totals = x->aggregation == AGGREGATION_AVG || x->aggregation == AGGREGATION_SUM;
    struct grouping g = {.sink = {grouping_put}, .rule = x, .groups = table_of(e, totals ? MAX_PLANES : 1)};
    int r = eval_expr(e, x->left, &g.sink);

    for (size_t i = 0; i < g.groups.n && totals && r == 0; i++) {
        double *values = g.groups.rows[i].values;

        for (size_t k = 0; k < e->n; k++) {
            struct total t = {values[k], values[e->n + k], values[2 * e->n + k]};

            if (!value_is_absent(t.sum))
                values[k] = x->aggregation == AGGREGATION_AVG ? mean_value(&t) : total_value(&t);
        }
    }
    r = r ?: table_emit(&g.groups, to);
    query_table_done(&g.groups);
    return r;
}

/* ---- Operators ---- */

/* Between the rows of two expressions with the same labels: those of the right one are held. */
static int eval_matching(struct eval *e, const struct expr *x, struct sink *to)
{
    struct table right = table_of(e, 1), result = table_of(e, 1);
    struct stage hold = {.sink = {stage_put}, .eval = e, .held = &right}, match = hold;
    int r;

    hold.why = "several series on the right side of an operator have the same labels";
    match.why = "several series on the left side of an operator have the same labels";
    match.operator= x->operator;
    match.matching = &right;
    match.held = &result;
    r = eval_expr(e, x->right, &hold.sink) ?: eval_expr(e, x->left, &match.sink) ?: table_emit(&result, to);
    query_table_done(&right);
    query_table_done(&result);
    return r;
}

/* The rows of a function, a negation or an operator with a number, without names. */
static int eval_unnamed(struct eval *e, const struct expr *x, struct sink *to)
{
    const struct expr *of = x->kind == EXPR_FUNCTION ? x : x->left->type == TYPE_VECTOR ? x->left : x->right;
    struct table held = table_of(e, 1);
    struct stage s = {.sink = {stage_put},
                      .eval = e,
                      .to = to,
                      .held = needs_name(of) ? &held : NULL,
                      .is_whole = x->kind != EXPR_BINARY,
                      .why = same_labels};
    int r;

    if (x->kind != EXPR_FUNCTION)
        s.operator= x->kind == EXPR_NEGATION ? '!' : x->operator;
    if (x->kind == EXPR_BINARY && x->left == of)
        s.right = &x->right->number;
    else if (x->kind == EXPR_BINARY)
        s.left = &x->left->number;
    r = x->kind == EXPR_FUNCTION ? eval_series(e, x, &s.sink) : eval_expr(e, of, &s.sink);
    r = r ?: table_emit(&held, to);
    query_table_done(&held);
    return r;
}

static int eval_number(struct eval *e, const struct expr *x, struct sink *to)
{
    struct table one = table_of(e, 1);
    struct row *row, key = {NULL, 0, NULL};
    int r = query_rows_add(&one, &key, &row);

    for (size_t i = 0; i < e->n && r == 0; i++)
        row->values[i] = x->number;
    r = r ?: table_emit(&one, to);
    query_table_done(&one);
    return r;
}

static int eval_expr(struct eval *e, const struct expr *x, struct sink *to)
{
    switch (x->kind) {
    case EXPR_NUMBER:
        return eval_number(e, x, to);
    case EXPR_SELECTOR:
        return eval_series(e, x, to);
    case EXPR_FUNCTION:
        return x->function->keeps_name ? eval_series(e, x, to) : eval_unnamed(e, x, to);
    case EXPR_AGGREGATION:
        return eval_aggregation(e, x, to);
    case EXPR_BINARY:
        return x->left->type == TYPE_VECTOR && x->right->type == TYPE_VECTOR ? eval_matching(e, x, to)
                                                                             : eval_unnamed(e, x, to);
    case EXPR_NEGATION:
        break;
    }
    return eval_unnamed(e, x, to);
}

/* ---- The result ---- */

struct collecting {
    struct sink sink;
    struct table result;
};

static int collecting_put(struct sink *sink, struct row *row)
{
    struct table *t = &CONTAINER_OF(sink, struct collecting, sink)->result;
    struct row *kept;
    int r = query_rows_add(t, row, &kept);

    if (r == 0)
        memcpy(kept->values, row->values, t->eval->n * sizeof(*row->values));
    return r;
}

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

static bool row_is_empty(const struct eval *e, const struct row *row)
{
    size_t i = 0;

    while (i < e->n && value_is_absent(row->values[i]))
        i++;
    return i == e->n;
}

static int result_write(struct table *t, struct buf *out, size_t *ret_series)
{
    int r = 0;

    if (t->n)
        qsort(t->rows, t->n, sizeof(*t->rows), row_order);
    for (size_t i = 0; i < t->n && r == 0; i++)
        if (!row_is_empty(t->eval, &t->rows[i])) {
            r = row_write(t->eval, &t->rows[i], out);
            ++*ret_series;
        }
    return r == -EFBIG ? eval_charge(t->eval, t->eval->max_bytes + 1) : r;
}

int query_run(const struct query *q, struct store *store, const struct query_range *range,
              const atomic_bool *cancelled, struct buf *out, size_t *ret_series, char why[QUERY_WHY_BYTES])
{
    int64_t steps = range->end_ms < range->start_ms ? -1 : (range->end_ms - range->start_ms) / range->step_ms;
    struct eval e = {store, cancelled, *range, (size_t)steps + 1, out->max, 0, why};
    struct collecting c = {{collecting_put}, table_of(&e, 1)};
    int r;

    *ret_series = 0;
    if (steps < 0)
        return 0;
    if (steps > QUERY_MAX_STEPS) {
        (void)snprintf(why, QUERY_WHY_BYTES, "%lld points for each series, at most %d are possible",
                       (long long)steps + 1, QUERY_MAX_STEPS + 1);
        return -EINVAL;
    }
    e.range.end_ms = eval_point(&e, (size_t)steps);
    (void)eval_fail(&e, 0, "out of memory");
    r = eval_expr(&e, q->root, &c.sink);
    r = r ?: result_write(&c.result, out, ret_series);
    query_table_done(&c.result);
    return r;
}
