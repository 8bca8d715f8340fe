#include "remotewrite/labels.h"

#include "exporter/base/hash.h"
#include "remote_v1.pb-c.h"

#include <errno.h>

enum { BYTES_MAX = 1 << 30 };

int label_list_init(struct label_list *l)
{
    l->n = l->used = 0;
    l->room = malloc(LABEL_ROOM);
    return l->room ? 0 : -ENOMEM;
}

void label_list_done(struct label_list *l)
{
    free(l->room);
    l->room = NULL;
}

static int add(struct label_list *l, struct str name, struct str value)
{
    if (l->n == LABELS_MAX)
        return -EFBIG;
    l->list[l->n++] = (struct label){name, value};
    return 0;
}

/* Reads `name="value"` at *at and moves past it. Values without escapes stay where they are. */
static int take_label(struct label_list *l, const char **at, const char *end)
{
    const char *equals = memchr(*at, '=', (size_t)(end - *at)), *p;
    struct str name, value;

    if (!equals || equals + 1 >= end || equals[1] != '"')
        return -EINVAL;
    name = (struct str){*at, (size_t)(equals - *at)};
    for (p = equals + 2; p < end && *p != '"'; p++)
        p += *p == '\\';
    if (p >= end)
        return -EINVAL;
    value = (struct str){equals + 2, (size_t)(p - equals - 2)};
    if (value.n && memchr(value.p, '\\', value.n)) {
        if (LABEL_ROOM - l->used < value.n)
            return -EFBIG;
        value = (struct str){l->room + l->used, series_unescape(value, l->room + l->used)};
        l->used += value.n;
    }
    *at = p + 1;
    return add(l, name, value);
}

/* `metric{a="b",c="d"}`, or the bare metric. */
static int parse(struct label_list *l, struct str name)
{
    const char *brace = name.n ? memchr(name.p, '{', name.n) : NULL, *end = name.p + name.n, *p;
    int r = add(l, STR("__name__"), (struct str){name.p, brace ? (size_t)(brace - name.p) : name.n});

    if (!brace)
        return r;
    for (p = brace + 1; r == 0 && p < end && *p != '}'; p += p < end && *p == ',')
        r = take_label(l, &p, end);
    return r == 0 && !(p + 1 == end && *p == '}') ? -EINVAL : r;
}

static bool has(const struct label_list *l, struct str name)
{
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->list[i].name, name))
            return true;
    return false;
}

/* A series' own labels win. */
static int add_external(struct label_list *l, const struct rw_pairs *external)
{
    int r = 0;

    for (size_t i = 0; i < external->n && r == 0; i++)
        if (!has(l, str_of(external->list[i].name)))
            r = add(l, str_of(external->list[i].name), str_of(external->list[i].value));
    return r;
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const struct label *)a)->name, ((const struct label *)b)->name);
}

/* Without empty values, in order of names. -EINVAL when a name repeats or is empty, or the metric has none. */
static int put_in_order(struct label_list *l)
{
    size_t n = 0;
    bool named = false;

    for (size_t i = 0; i < l->n; i++)
        if (l->list[i].value.n)
            l->list[n++] = l->list[i];
    l->n = n;
    qsort(l->list, n, sizeof(l->list[0]), by_name);
    for (size_t i = 0; i < n; i++) {
        named = named || str_eq(l->list[i].name, STR("__name__"));
        if (l->list[i].name.n == 0 || (i && str_eq(l->list[i].name, l->list[i - 1].name)))
            return -EINVAL;
    }
    return named ? 0 : -EINVAL;
}

/* protobuf-c takes terminated strings. */
static char *terminated(struct label_list *l, struct str s)
{
    char *copy = l->room + l->used;

    if (LABEL_ROOM - l->used <= s.n)
        return NULL;
    if (s.n)
        memcpy(copy, s.p, s.n);
    copy[s.n] = '\0';
    l->used += s.n + 1;
    return copy;
}

static int pack(struct label_list *l, struct buf *into)
{
    Rw__V1__Label labels[LABELS_MAX], *places[LABELS_MAX];
    Rw__V1__TimeSeries series = RW__V1__TIME_SERIES__INIT;
    char *room;
    size_t n;
    int r;

    for (size_t i = 0; i < l->n; i++) {
        rw__v1__label__init(&labels[i]);
        labels[i].name = terminated(l, l->list[i].name);
        labels[i].value = terminated(l, l->list[i].value);
        if (!labels[i].name || !labels[i].value)
            return -EFBIG;
        places[i] = &labels[i];
    }
    series.labels = places;
    series.n_labels = l->n;
    n = rw__v1__time_series__get_packed_size(&series);
    r = buf_room(into, n, &room);
    if (r < 0)
        return r;
    into->n += rw__v1__time_series__pack(&series, (uint8_t *)room);
    return 1;
}

int labels_pack(struct label_list *l, struct str name, const struct rw_endpoint_config *c, struct buf *into)
{
    int r;

    l->n = l->used = 0;
    r = parse(l, name) ?: add_external(l, &c->external_labels);
    if (r == 0 && c->relabel.n) {
        r = relabel_apply(&c->relabel, l);
        if (r <= 0)
            return r;
        r = 0;
    }
    r = r ?: put_in_order(l);
    return r < 0 ? r : pack(l, into);
}

struct label_bytes *label_bytes_free(struct label_bytes *l)
{
    if (!l)
        return NULL;
    free(l->bytes);
    free(l->at);
    free(l->series);
    free(l);
    return NULL;
}

/* Places of series + 1 by the hash of their labels. */
struct index {
    uint32_t *slots;
    size_t mask;
};

static int index_init(struct index *x, size_t n)
{
    size_t size = 16;

    while (size < n * 2)
        size *= 2;
    x->slots = calloc(size, sizeof(x->slots[0]));
    x->mask = size - 1;
    return x->slots ? 0 : -ENOMEM;
}

/* Where the labels are, or the free slot where they would go. */
static uint32_t *index_find(const struct index *x, const struct label_bytes *l, struct str labels)
{
    size_t i = hash_bytes(labels, 0) & x->mask;

    while (x->slots[i] && !str_eq(label_bytes_at(l, x->slots[i] - 1), labels))
        i = (i + 1) & x->mask;
    return &x->slots[i];
}

/* Rules may have made one series of several: the first stays, since two samples at one time would be a contradiction. */
static int leave_out_repeated(struct label_bytes *l)
{
    struct index x = {0};
    size_t n = 0;

    if (index_init(&x, l->n) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < l->n; i++) {
        struct str labels = label_bytes_at(l, i);
        uint32_t *slot = index_find(&x, l, labels);
        size_t to = l->at[n];

        if (*slot)
            continue;
        memmove(l->bytes + to, labels.p, labels.n);
        l->series[n] = l->series[i];
        l->at[++n] = to + labels.n;
        *slot = (uint32_t)n;
    }
    free(x.slots);
    l->invalid += l->n - n;
    l->n = n;
    l->bytes_n = l->at[n];
    return 0;
}

int label_bytes_new(struct label_bytes **ret, const struct series_set *set,
                    const struct rw_endpoint_config *c)
{
    CLEANUP(cleanup_label_bytes_free) struct label_bytes *l = calloc(1, sizeof(*l));
    CLEANUP(label_list_done) struct label_list list = {.room = NULL};
    BUF_AUTO(bytes, BYTES_MAX);
    size_t n = series_count(set);

    if (!l || label_list_init(&list) < 0)
        return -ENOMEM;
    l->at = calloc(n + 1, sizeof(l->at[0]));
    l->series = calloc(n + 1, sizeof(l->series[0]));
    if (!l->at || !l->series)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        int r = labels_pack(&list, series_name(set, i), c, &bytes);

        if (r == -ENOMEM)
            return r;
        l->left_out += r == 0;
        l->invalid += r < 0;
        if (r <= 0)
            continue;
        l->series[l->n++] = (uint32_t)i;
        l->at[l->n] = bytes.n;
    }
    buf_shrink(&bytes);
    l->bytes_n = bytes.n;
    l->bytes = buf_take(&bytes).p;
    if (c->relabel.n && leave_out_repeated(l) < 0)
        return -ENOMEM;
    *ret = TAKE_PTR(l);
    return 0;
}

int label_bytes_missing(const struct label_bytes *in, const struct label_bytes *not_in, uint32_t **ret,
                        size_t *ret_n)
{
    CLEANUP(cleanup_free) uint32_t *missing = malloc((in->n + 1) * sizeof(*missing));
    struct index x = {0};
    size_t n = 0;

    if (!missing || index_init(&x, not_in ? not_in->n : 0) < 0)
        return -ENOMEM;
    for (size_t i = 0; not_in && i < not_in->n; i++)
        *index_find(&x, not_in, label_bytes_at(not_in, i)) = (uint32_t)i + 1;
    for (size_t i = 0; i < in->n; i++)
        if (!not_in || !*index_find(&x, not_in, label_bytes_at(in, i)))
            missing[n++] = (uint32_t)i;
    free(x.slots);
    *ret = TAKE_PTR(missing);
    *ret_n = n;
    return 0;
}
