/* Owns the records of a set: for each series its name and labels, in texts that sets share. Records never
 * change and never move; any thread that has a set may read it. */
#include "exporter/metric/series_set.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/invariant.h"
#include "exporter/num/num.h"

enum {
    CACHE_LINE = 64,
    PACK_AHEAD = 8, /* records whose bytes are asked for before they are copied */
};

const struct str ds_label_names[DS_LABELS] = {
    [DS_APP] = {"ds_app", 6},
    [DS_CLUSTER] = {"ds_cluster", 10},
    [DS_CONTAINER] = {"ds_container", 12},
    [DS_DEVICE] = {"ds_device", 9},
    [DS_META] = {"ds_meta", 7},
    [DS_NAMESPACE] = {"ds_namespace", 12},
    [DS_NODE] = {"ds_node", 7},
    [DS_POD] = {"ds_pod", 6},
    [DS_SCORE_NAME] = {"ds_score_name", 13},
};

const struct str ds_label_sources[DS_LABELS] = {
    [DS_APP] = {"app", 3},   [DS_CONTAINER] = {"container", 9}, [DS_DEVICE] = {"device", 6},
    [DS_META] = {"meta", 4}, [DS_NODE] = {"node", 4},           [DS_NAMESPACE] = {"namespace", 9},
    [DS_POD] = {"pod", 3},
};

struct series_set *series_set_ref(struct series_set *s)
{
    unsigned before = __atomic_fetch_add(&s->refs, 1, __ATOMIC_RELAXED);

    invariant(before > 0);
    return s;
}

static void series_set_drop_texts(struct series_set *s)
{
    for (size_t i = 0; i < s->n_texts; i++)
        if (__atomic_sub_fetch(&s->texts[i]->refs, 1, __ATOMIC_ACQ_REL) == 0) {
            buf_keep(&s->texts[i]->records);
            free(s->texts[i]);
        }
    free(TAKE_PTR(s->texts));
    s->n_texts = s->texts_bytes = 0;
}

struct series_set *series_set_unref(struct series_set *s)
{
    if (s && __atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        series_set_drop_texts(s);
        free(s->place);
        free(s);
    }
    return NULL;
}

struct series_set *series_set_new(size_t n)
{
    struct series_set *s = xcalloc(1, sizeof(*s));

    *s = (struct series_set){.refs = 1, .cap = n, .place = xcalloc(size_max(n, 1), sizeof(*s->place))};
    return s;
}

/* Takes over a reference of the text. */
static void series_set_hold(struct series_set *s, struct series_text *text)
{
    s->texts = xreallocarray(s->texts, s->n_texts + 1, sizeof(*s->texts));
    s->texts[s->n_texts++] = text;
    s->texts_bytes += text->records.cap;
}

void series_set_share_texts(struct series_set *s, const struct series_set *other)
{
    for (size_t i = 0; i < other->n_texts; i++) {
        (void)__atomic_add_fetch(&other->texts[i]->refs, 1, __ATOMIC_RELAXED);
        series_set_hold(s, other->texts[i]);
    }
}

static struct buf *series_set_add_text(struct series_set *s, size_t cap)
{
    struct series_text *text = xmalloc(sizeof(*text));

    /* A spare block may be a little larger, so that texts of about one size follow one another in it. */
    *text = (struct series_text){.refs = 1, .records = {.max = cap + cap / 8}};
    if (buf_reserve(&text->records, cap, &(char *){NULL}) < 0)
        memory_exhausted(cap);
    series_set_hold(s, text);
    return &text->records;
}

char *series_set_room(struct series_set *s, size_t n, size_t next)
{
    struct buf *last = s->n_texts ? &s->texts[s->n_texts - 1]->records : NULL;

    if (!last || last->cap - last->n < n)
        last = series_set_add_text(s, size_max(n, next));
    return last->p + last->n;
}

/* Writes the labels part of a record and returns its end. */
static char *put_labels(char *to, const struct str values[DS_LABELS], unsigned escapes)
{
    for (size_t i = 0; i < DS_LABELS; i++) {
        struct str v = values[i];
        size_t added = 0;

        for (size_t k = 0; escapes & 1u << i && k < v.n; k++)
            added += v.p[k] == '\\' || v.p[k] == '"' || v.p[k] == '\n';
        to = put_varint(to, (v.n + added) << 1 | (added > 0));
        if (added)
            to = mempcpy(put_varint(to, v.n), v.p, v.n);
    }
    return to;
}

void series_set_append(struct series_set *s, struct str name, const struct str values[DS_LABELS],
                       unsigned escapes)
{
    struct buf *last = &s->texts[s->n_texts - 1]->records;
    uint32_t n = (uint32_t)(put_labels(last->p + last->n + name.n, values, escapes) - name.p);

    last->n += n;
    s->names_bytes += name.n;
    if (s->n == s->cap) {
        s->cap = size_max(64, s->cap * 2);
        s->place = xreallocarray(s->place, s->cap, sizeof(*s->place));
    }
    s->place[s->n++] = (struct series_place){name.p, (uint32_t)name.n, n};
}

void series_set_pack(struct series_set *s)
{
    struct series_set was = *s;
    size_t bytes = 0, strays = 0;
    struct buf *to;

    for (size_t i = 0; i < s->n; bytes += s->place[i++].n)
        strays += i && s->place[i].record != s->place[i - 1].record + s->place[i - 1].n;
    if (s->texts_bytes <= bytes + bytes / 4 && strays <= s->n / 8)
        return;
    s->texts = NULL;
    s->n_texts = s->texts_bytes = 0;
    to = series_set_add_text(s, size_max(bytes, 1));
    for (size_t i = 0; i < s->n; i++) {
        if (i + PACK_AHEAD < s->n)
            series_prefetch(s, i + PACK_AHEAD);
        memcpy(to->p + to->n, s->place[i].record, s->place[i].n);
        s->place[i].record = to->p + to->n;
        to->n += s->place[i].n;
    }
    series_set_drop_texts(&was);
}

size_t series_count(const struct series_set *s)
{
    return s->n;
}

struct str series_name(const struct series_set *s, size_t i)
{
    return (struct str){s->place[i].record, s->place[i].name_n};
}

size_t series_names_bytes(const struct series_set *s)
{
    return s->names_bytes;
}

void series_prefetch(const struct series_set *s, size_t i)
{
    for (size_t k = 0; k < s->place[i].n; k += CACHE_LINE)
        __builtin_prefetch(s->place[i].record + k);
}

void series_labels(const struct series_set *s, size_t i, struct str ret[DS_LABELS])
{
    const char *name = s->place[i].record + sizeof(SCORE_METRIC "{") - 1;
    const char *p = s->place[i].record + s->place[i].name_n, *end = s->place[i].record + s->place[i].n;

    for (size_t k = 0; k < DS_LABELS; k++) {
        uint64_t length = 0;

        p = get_varint(p, end, &length);
        name += ds_label_names[k].n + 2; /* name="  */
        ret[k] = (struct str){name, length >> 1};
        name += (length >> 1) + 2; /* ", or "} */
        if (length & 1) {
            p = get_varint(p, end, &length);
            ret[k] = (struct str){p, length};
            p += length;
        }
    }
}

/* A galloping search: mostly the series is near. */
size_t series_set_find(const struct series_set *s, size_t from, struct str name)
{
    size_t low = from, high = from;

    for (size_t step = 1; high < s->n && str_cmp(series_name(s, high), name) < 0; step *= 2) {
        low = high + 1;
        high += step;
    }
    high = size_min(high, s->n);
    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (str_cmp(series_name(s, middle), name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The order of two series, which mostly are one: then both sets have its record at the same address. */
static int series_order(const struct series_set *x, size_t i, const struct series_set *y, size_t k)
{
    if (x->place[i].record == y->place[k].record)
        return 0;
    return str_cmp(series_name(x, i), series_name(y, k));
}

void series_diff_init(struct series_diff *d, const struct series_set *was, const struct series_set *now)
{
    size_t i = 0, k = 0;

    *d = (struct series_diff){.moved = xmalloc(was->n * sizeof(*d->moved)),
                              .gone = xmalloc(was->n * sizeof(*d->gone)),
                              .fresh = xmalloc(now->n * sizeof(*d->fresh))};
    while (i < was->n || k < now->n) {
        int order;

        if (i == was->n)
            order = 1;
        else if (k == now->n)
            order = -1;
        else
            order = series_order(was, i, now, k);
        if (order < 0) {
            d->moved[i] = SERIES_GONE;
            d->gone[d->n_gone++] = (uint32_t)i++;
        } else if (order > 0) {
            d->fresh[d->n_fresh++] = (uint32_t)k++;
        } else {
            d->moved[i++] = (uint32_t)k++;
        }
    }
}

void series_diff_done(struct series_diff *d)
{
    free(d->moved);
    free(d->gone);
    free(d->fresh);
    *d = (struct series_diff){0};
}
