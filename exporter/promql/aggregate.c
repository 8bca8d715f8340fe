#include "exporter/promql/aggregate.h"

#include "exporter/base/arena.h"
#include "exporter/base/hash.h"
#include "exporter/promql/fold.h"
#include "exporter/promql/function.h"
#include "exporter/tsdb/tsdb.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { FIRST_SLOTS = 64, ARENA_BYTES = 64 << 10 };

struct group {
    uint64_t hash;
    struct tsdb_label *labels;
    size_t n_labels;
    double *planes; /* what is known so far, one value per point in each plane; see planes_of() */
};

struct aggregate {
    const struct aggregation *rule;
    size_t n_points, n_planes;
    uint64_t max_bytes, bytes;
    struct arena arena; /* of labels and planes */
    struct group *groups;
    size_t n, cap;
    uint32_t *slots; /* group + 1 by hash; 0: free */
    size_t n_slots;  /* a power of two, more than twice n */
};

/* A value; for sums and means also the error, for means also the count. */
static size_t planes_of(enum aggregation_op op)
{
    return op == AGGREGATION_AVG ? 3 : op == AGGREGATION_SUM ? 2 : 1;
}

int aggregate_new(struct aggregate **ret, const struct aggregation *rule, size_t n_points, uint64_t max_bytes)
{
    CLEANUP(cleanup_aggregate_free) struct aggregate *a = calloc(1, sizeof(*a));

    if (!a)
        return -ENOMEM;
    *a = (struct aggregate){
        .rule = rule,
        .n_points = n_points,
        .n_planes = planes_of(rule->op),
        .max_bytes = max_bytes,
        .arena = {.chunk_bytes = ARENA_BYTES},
        .n_slots = FIRST_SLOTS,
        .slots = calloc(FIRST_SLOTS, sizeof(*a->slots)),
    };
    if (!a->slots)
        return -ENOMEM;
    *ret = TAKE_PTR(a);
    return 0;
}

struct aggregate *aggregate_free(struct aggregate *a)
{
    if (!a)
        return NULL;
    arena_done(&a->arena);
    free(a->groups);
    free(a->slots);
    free(a);
    return NULL;
}

/* Whether the label is one of the group's. Both lists are sorted, so *at only moves forward. */
static bool keeps_label(const struct aggregation *rule, struct str name, size_t *at)
{
    bool listed;

    while (*at < rule->n_labels && str_cmp(rule->labels[*at], name) < 0)
        ++*at;
    listed = *at < rule->n_labels && str_eq(rule->labels[*at], name);
    return rule->without ? !listed && !str_eq(name, STR("__name__")) : listed;
}

static size_t group_labels(const struct aggregation *rule, const struct row *row,
                           struct tsdb_label to[TSDB_MAX_LABELS])
{
    size_t n = 0, at = 0;

    for (size_t i = 0; i < row->n_labels; i++)
        if (keeps_label(rule, row->labels[i].name, &at))
            to[n++] = row->labels[i];
    return n;
}

static uint64_t group_hash(const struct tsdb_label *labels, size_t n)
{
    uint64_t h = n;

    for (size_t i = 0; i < n; i++)
        h = hash_chain(hash_chain(h, labels[i].name), labels[i].value);
    return h;
}

static uint32_t *find_slot(const struct aggregate *a, uint64_t hash, const struct tsdb_label *labels,
                           size_t n)
{
    size_t at = hash & (a->n_slots - 1);

    while (a->slots[at]) {
        const struct group *g = &a->groups[a->slots[at] - 1];

        if (labels && g->hash == hash && labels_compare(g->labels, g->n_labels, labels, n) == 0)
            break;
        at = (at + 1) & (a->n_slots - 1);
    }
    return &a->slots[at];
}

/* Makes room for one more group. */
static int make_room(struct aggregate *a)
{
    size_t cap = a->cap ? a->cap * 2 : FIRST_SLOTS / 2;
    uint32_t *slots;
    struct group *groups;

    if (a->n < a->cap)
        return 0;
    groups = reallocarray(a->groups, cap, sizeof(*groups));
    if (!groups)
        return -ENOMEM;
    a->groups = groups;
    slots = calloc(cap * 2, sizeof(*slots));
    if (!slots)
        return -ENOMEM;
    free(a->slots);
    a->slots = slots;
    a->n_slots = cap * 2;
    a->cap = cap;
    for (size_t i = 0; i < a->n; i++)
        *find_slot(a, a->groups[i].hash, NULL, 0) = (uint32_t)i + 1;
    return 0;
}

static int group_add(struct aggregate *a, uint64_t hash, const struct tsdb_label *labels, size_t n_labels)
{
    size_t label_bytes = n_labels * sizeof(*labels), n = a->n_points * a->n_planes;
    uint64_t bytes = label_bytes + n * sizeof(double) + sizeof(struct group);
    struct group g = {.hash = hash, .n_labels = n_labels};
    int r;

    if (bytes > a->max_bytes - a->bytes)
        return -EFBIG;
    r = make_room(a);
    if (r < 0)
        return r;
    g.labels = arena_alloc(&a->arena, label_bytes);
    g.planes = arena_alloc(&a->arena, n * sizeof(double));
    if (!g.labels || !g.planes)
        return -ENOMEM;
    memcpy(g.labels, labels, label_bytes);
    memset(g.planes, 0, n * sizeof(double));
    for (size_t i = 0; i < a->n_points; i++)
        g.planes[i] = value_absent();
    a->bytes += bytes;
    *find_slot(a, hash, labels, n_labels) = (uint32_t)a->n + 1;
    a->groups[a->n++] = g;
    return 0;
}

static void add_sums(double *planes, const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct fold sum = {planes[i], planes[n + i]};

        if (value_is_absent(values[i]))
            continue;
        if (value_is_absent(sum.value))
            sum.value = values[i];
        else
            fold_add(&sum, values[i]);
        planes[i] = sum.value;
        planes[n + i] = sum.error;
    }
}

static void add_means(double *planes, const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct mean m = {{planes[i], planes[n + i]}, planes[2 * n + i]};

        if (value_is_absent(values[i]))
            continue;
        mean_add(&m, values[i]);
        planes[i] = m.sum.value;
        planes[n + i] = m.sum.error;
        planes[2 * n + i] = m.count;
    }
}

static void add_counts(double *planes, const double *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!value_is_absent(values[i]))
            planes[i] = value_is_absent(planes[i]) ? 1 : planes[i] + 1;
}

static void add_extremes(double *planes, const double *values, size_t n, bool max)
{
    for (size_t i = 0; i < n; i++)
        if (!value_is_absent(values[i]) &&
            (isnan(planes[i]) || (max ? planes[i] < values[i] : planes[i] > values[i])))
            planes[i] = values[i];
}

int aggregate_add(struct aggregate *a, const struct row *row)
{
    struct tsdb_label labels[TSDB_MAX_LABELS];
    size_t n = group_labels(a->rule, row, labels), n_points = a->n_points;
    uint64_t hash = group_hash(labels, n);
    uint32_t *slot = find_slot(a, hash, labels, n);
    double *planes;
    int r;

    if (!*slot) {
        r = group_add(a, hash, labels, n);
        if (r < 0)
            return r;
        slot = find_slot(a, hash, labels, n);
    }
    planes = a->groups[*slot - 1].planes;
    if (a->rule->op == AGGREGATION_SUM)
        add_sums(planes, row->values, n_points);
    else if (a->rule->op == AGGREGATION_AVG)
        add_means(planes, row->values, n_points);
    else if (a->rule->op == AGGREGATION_COUNT)
        add_counts(planes, row->values, n_points);
    else
        add_extremes(planes, row->values, n_points, a->rule->op == AGGREGATION_MAX);
    return 0;
}

size_t aggregate_groups(const struct aggregate *a)
{
    return a->n;
}

static int group_order(const void *a, const void *b)
{
    const struct group *x = a, *y = b;

    return labels_compare(x->labels, x->n_labels, y->labels, y->n_labels);
}

void aggregate_sort(struct aggregate *a)
{
    if (a->n)
        qsort(a->groups, a->n, sizeof(*a->groups), group_order);
}

struct row aggregate_row(const struct aggregate *a, size_t group, double *values)
{
    const struct group *g = &a->groups[group];

    for (size_t i = 0, n = a->n_points; i < n; i++) {
        struct fold sum = {g->planes[i], a->n_planes > 1 ? g->planes[n + i] : 0};
        struct mean mean = {sum, a->n_planes > 2 ? g->planes[2 * n + i] : 0};

        if (a->n_planes == 1 || value_is_absent(sum.value))
            values[i] = sum.value;
        else
            values[i] = a->n_planes > 2 ? mean_value(&mean) : fold_total(&sum);
    }
    return (struct row){g->labels, g->n_labels, values};
}
