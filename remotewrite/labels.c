#include "remotewrite/labels.h"

#include "exporter/base/buf.h"
#include "exporter/base/hash.h"
#include "exporter/base/regex.h"
#include "exporter/base/varint.h"
#include "remotewrite/relabel.h"

#include <errno.h>
#include <stdio.h>

enum { BYTES_MAX = 1 << 30 };
/* Fields of prometheus.TimeSeries and prometheus.Label. */
enum { TIMESERIES_LABELS = 1, LABEL_NAME = 1, LABEL_VALUE = 2 };

int label_list_init(struct label_list *l)
{
    l->n = l->used = 0;
    l->matcher = NULL;
    l->room = malloc(LABEL_ROOM);
    return l->room ? regex_matcher_new(&l->matcher) : -ENOMEM;
}

void label_list_done(struct label_list *l)
{
    free(l->room);
    l->room = NULL;
    l->matcher = regex_matcher_free(l->matcher);
}

void label_list_reset(struct label_list *l)
{
    l->n = l->used = 0;
}

int label_list_add(struct label_list *l, struct str name, struct str value)
{
    if (l->n == LABELS_MAX)
        return -EFBIG;
    l->list[l->n++] = (struct label){name, value};
    return 0;
}

struct str label_list_join(struct label_list *l, struct str a, struct str b)
{
    char *to = l->room + l->used;

    if (LABEL_ROOM - l->used < a.n + b.n)
        return STR("");
    (void)mempcpy(mempcpy(to, a.p, a.n), b.p, b.n);
    l->used += a.n + b.n;
    return (struct str){to, a.n + b.n};
}

/* A label of the series overrides an external one of the same name. */
static int labels_add_external(struct label_list *l, const struct rw_pairs *external)
{
    int r = 0;

    for (size_t i = 0; i < external->n && r == 0; i++)
        if (!label_list_find(l, str_of(external->list[i].name)))
            r = label_list_add(l, str_of(external->list[i].name), str_of(external->list[i].value));
    return r;
}

static int compare_label_names(const void *a, const void *b)
{
    return str_cmp(((const struct label *)a)->name, ((const struct label *)b)->name);
}

/* Sorts by name and removes empty values. -EINVAL for a repeated or empty name, or without a metric name. */
static int labels_normalize(struct label_list *l)
{
    size_t n = 0;
    bool named = false;

    for (size_t i = 0; i < l->n; i++)
        if (l->list[i].value.n)
            l->list[n++] = l->list[i];
    l->n = n;
    qsort(l->list, n, sizeof(l->list[0]), compare_label_names);
    for (size_t i = 0; i < n; i++) {
        named = named || str_eq(l->list[i].name, STR("__name__"));
        if (l->list[i].name.n == 0 || (i && str_eq(l->list[i].name, l->list[i - 1].name)))
            return -EINVAL;
    }
    return named ? 0 : -EINVAL;
}

static bool is_name(struct str s, bool metric)
{
    return s.n && str_has_only(s, metric ? "_:" : "_") && !(s.p[0] >= '0' && s.p[0] <= '9');
}

/* The names that 1.0 requires. 2.0 only recommends them, but a record may be sent in either. -EINVAL. */
static int labels_check_names(struct label_list *l)
{
    for (size_t i = 0; i < l->n; i++) {
        bool metric = str_eq(l->list[i].name, STR("__name__"));

        l->bad_name = metric ? l->list[i].value : l->list[i].name;
        if (!is_name(l->bad_name, metric))
            return -EINVAL;
    }
    l->bad_name = STR("");
    return 0;
}

static size_t string_size(struct str s)
{
    return 1 + varint_size(s.n) + s.n;
}

static char *put_string(char *p, unsigned field, struct str s)
{
    *p++ = (char)(field << 3 | 2);
    p = put_varint(p, s.n);
    return s.n ? mempcpy(p, s.p, s.n) : p;
}

static int labels_encode(const struct label_list *l, struct buf *into)
{
    size_t room = 0;
    char *to, *p;
    int r;

    for (size_t i = 0; i < l->n; i++)
        room += 1 + VARINT_MAX + string_size(l->list[i].name) + string_size(l->list[i].value);
    r = buf_room(into, room, &to);
    if (r < 0)
        return r;
    p = to;
    for (size_t i = 0; i < l->n; i++) {
        const struct label *label = &l->list[i];

        *p++ = TIMESERIES_LABELS << 3 | 2;
        p = put_varint(p, string_size(label->name) + string_size(label->value));
        p = put_string(p, LABEL_NAME, label->name);
        p = put_string(p, LABEL_VALUE, label->value);
    }
    into->n += (size_t)(p - to);
    return 1;
}

int labels_pack(struct label_list *l, const struct rw_endpoint_config *c, struct buf *into)
{
    int r = labels_add_external(l, &c->external_labels);

    l->bad_name = STR("");
    if (r == 0 && c->relabel.n) {
        r = relabel_apply(&c->relabel, l);
        if (r <= 0)
            return r;
        r = 0;
    }
    r = r ?: labels_normalize(l);
    if (r == 0 && c->relabel.n)
        r = labels_check_names(l);
    return r < 0 ? r : labels_encode(l, into);
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

void label_bytes_reject(struct label_bytes *l, const struct label_list *list)
{
    char name[LABEL_BAD_NAME_BYTES];

    l->invalid++;
    if (list->bad_name.n == 0 || l->n_bad_names == LABEL_BAD_NAMES)
        return;
    (void)snprintf(name, sizeof(name), "%.*s", STR_ARG(list->bad_name));
    for (size_t i = 0; i < l->n_bad_names; i++)
        if (strcmp(l->bad_names[i], name) == 0)
            return;
    memcpy(l->bad_names[l->n_bad_names++], name, sizeof(name));
}

/* A string field; NULL past the end. */
static const char *get_string(const char *p, const char *end, struct str *ret)
{
    uint64_t n;

    p = p < end ? get_varint(p + 1, end, &n) : NULL;
    if (!p || n > (uint64_t)(end - p))
        return NULL;
    *ret = (struct str){p, n};
    return p + n;
}

struct str label_bytes_name(const struct label_bytes *l, size_t i)
{
    struct str packed = label_bytes_at(l, i), label, name, value;
    const char *p = packed.p, *end = packed.p + packed.n;

    while ((p = get_string(p, end, &label))) {
        const char *in = get_string(label.p, label.p + label.n, &name);

        if (in && str_eq(name, STR("__name__")) && get_string(in, label.p + label.n, &value))
            return value;
    }
    return STR("");
}

/* Open hash table of packed labels: index of the series + 1. */
struct label_index {
    uint32_t *slots;
    size_t mask;
};

static int label_index_init(struct label_index *x, size_t n)
{
    size_t size = 16;

    while (size < n * 2)
        size *= 2;
    x->slots = calloc(size, sizeof(x->slots[0]));
    x->mask = size - 1;
    return x->slots ? 0 : -ENOMEM;
}

/* The slot of these labels, or the free slot for them. */
static uint32_t *label_index_find(const struct label_index *x, const struct label_bytes *l, struct str labels)
{
    size_t i = hash_bytes(labels) & x->mask;

    while (x->slots[i] && !str_eq(label_bytes_at(l, x->slots[i] - 1), labels))
        i = (i + 1) & x->mask;
    return &x->slots[i];
}

/* Relabelling may merge series. The first is kept: two samples with one timestamp would contradict each
 * other. */
static int label_bytes_deduplicate(struct label_bytes *l)
{
    struct label_index x = {0};
    size_t n = 0;

    if (label_index_init(&x, l->n) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < l->n; i++) {
        struct str labels = label_bytes_at(l, i);
        uint32_t *slot = label_index_find(&x, l, labels);
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

/* Fills the list with the labels of series i. */
static int labels_of_series(struct label_list *l, const struct series_set *set, size_t i)
{
    struct str values[DS_LABELS];
    int r;

    series_labels(set, i, values);
    label_list_reset(l);
    r = label_list_add(l, STR("__name__"), STR(SCORE_METRIC));
    for (size_t k = 0; k < DS_LABELS && r == 0; k++)
        r = label_list_add(l, ds_label_names[k], values[k]);
    return r;
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
        int r = labels_of_series(&list, set, i) ?: labels_pack(&list, c, &bytes);

        if (r == -ENOMEM)
            return r;
        l->left_out += r == 0;
        if (r < 0 && r != -ELOOP)
            label_bytes_reject(l, &list);
        l->over_limit += r == -ELOOP;
        if (r <= 0)
            continue;
        l->series[l->n++] = (uint32_t)i;
        l->at[l->n] = bytes.n;
    }
    buf_shrink(&bytes);
    l->bytes_n = bytes.n;
    l->bytes = buf_take(&bytes).p;
    if (c->relabel.n && label_bytes_deduplicate(l) < 0)
        return -ENOMEM;
    *ret = TAKE_PTR(l);
    return 0;
}

int label_bytes_missing(const struct label_bytes *in, const struct label_bytes *not_in, uint32_t **ret,
                        size_t *ret_n)
{
    CLEANUP(cleanup_free) uint32_t *missing = malloc((in->n + 1) * sizeof(*missing));
    struct label_index x = {0};
    size_t n = 0;

    if (!missing || label_index_init(&x, not_in ? not_in->n : 0) < 0)
        return -ENOMEM;
    for (size_t i = 0; not_in && i < not_in->n; i++)
        *label_index_find(&x, not_in, label_bytes_at(not_in, i)) = (uint32_t)i + 1;
    for (size_t i = 0; i < in->n; i++)
        if (!not_in || !*label_index_find(&x, not_in, label_bytes_at(in, i)))
            missing[n++] = (uint32_t)i;
    free(x.slots);
    *ret = TAKE_PTR(missing);
    *ret_n = n;
    return 0;
}
