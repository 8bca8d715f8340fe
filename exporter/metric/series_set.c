/* Immutable sets of series and the batches that hold them. */
#include "exporter/metric/series_set.h"

#include "exporter/base/hash.h"
#include "exporter/base/huge.h"
#include "exporter/base/rand.h"

#include <errno.h>

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
    (void)__atomic_add_fetch(&s->refs, 1, __ATOMIC_RELAXED);
    return s;
}

struct series_set *series_set_unref(struct series_set *s)
{
    if (s && __atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        free(s->text);
        free(s->at);
        free(s->slots);
        free(s);
    }
    return NULL;
}

int series_set_new(struct series_set **ret, size_t n, size_t text_bytes)
{
    CLEANUP(cleanup_series_set_unref) struct series_set *s = calloc(1, sizeof(*s));
    size_t slots = 8;

    if (!s)
        return -ENOMEM;
    s->refs = 1;
    while (slots < n + n / 2)
        slots *= 2;
    s->mask = slots - 1;
    s->text = malloc(size_max(text_bytes, 1));
    s->at = calloc(n + 1, sizeof(*s->at));
    s->slots = calloc(slots, sizeof(*s->slots));
    if (!s->text || !s->at || !s->slots)
        return -ENOMEM;
    huge_pages(s->text, text_bytes);
    *ret = TAKE_PTR(s);
    return 0;
}

void series_set_append(struct series_set *s, struct str name, uint64_t hash)
{
    size_t at = s->at[s->n];

    memcpy(s->text + at, name.p, name.n);
    s->at[++s->n] = at + name.n;
    for (size_t i = hash & s->mask;; i = (i + 1) & s->mask)
        if (s->slots[i].series == 0) {
            s->slots[i].series = (uint32_t)s->n;
            s->slots[i].tag = (uint32_t)(hash >> 32);
            return;
        }
}

uint64_t series_hash(struct str name)
{
    static uint64_t seed;

    if (UNLIKELY(seed == 0))
        seed = rand_u64() | 1;
    return hash_bytes(name, seed);
}

ssize_t series_set_lookup(const struct series_set *s, struct str name, uint64_t hash)
{
    for (size_t i = hash & s->mask; s->slots[i].series; i = (i + 1) & s->mask)
        if (s->slots[i].tag == (uint32_t)(hash >> 32) && str_eq(series_name(s, s->slots[i].series - 1), name))
            return (ssize_t)s->slots[i].series - 1;
    return -1;
}

ssize_t series_find(const struct series_set *s, struct str name)
{
    return series_set_lookup(s, name, series_hash(name));
}

size_t series_count(const struct series_set *s)
{
    return s->n;
}

struct str series_name(const struct series_set *s, size_t i)
{
    return (struct str){s->text + s->at[i], s->at[i + 1] - s->at[i]};
}

struct str series_names(const struct series_set *s)
{
    return (struct str){s->text, s->at[s->n]};
}

/* Where the label value that starts at p ends: at the quote that no backslash precedes. */
static const char *value_end(const char *p)
{
    while (*p != '"')
        p += *p == '\\' ? 2 : 1;
    return p;
}

void series_name_labels(struct str name, struct str ret[DS_LABELS])
{
    const char *p = name.p + sizeof(SCORE_METRIC "{") - 1;

    for (size_t i = 0; i < DS_LABELS; i++) {
        p += ds_label_names[i].n + 2; /* name="  */
        ret[i].p = p;
        p = value_end(p);
        ret[i].n = (size_t)(p - ret[i].p);
        p += 2; /* ", or "} */
    }
}

size_t series_unescape(struct str escaped, char *out)
{
    char *o = out;

    for (size_t i = 0; i < escaped.n; i++) {
        char c = escaped.p[i];
        if (c == '\\' && i + 1 < escaped.n)
            c = escaped.p[++i] == 'n' ? '\n' : escaped.p[i];
        *o++ = c;
    }
    return (size_t)(o - out);
}

struct batch *batch_ref(struct batch *b)
{
    (void)__atomic_add_fetch(&b->refs, 1, __ATOMIC_RELAXED);
    return b;
}

struct batch *batch_unref(struct batch *b)
{
    if (b && __atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL) == 0) {
        (void)series_set_unref(b->set);
        free(b->score_name);
        free(b->values);
        free(b->order);
        free(b);
    }
    return NULL;
}
