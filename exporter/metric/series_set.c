/* Immutable sets of series and the batches that hold them. */
#include "exporter/metric/series_set.h"

#include "exporter/base/huge.h"
#include "exporter/base/varint.h"

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
        free(s->place);
        free(s->slots);
        free(s);
    }
    return NULL;
}

int series_set_new(struct series_set **ret, size_t n, size_t text_bytes)
{
    CLEANUP(cleanup_series_set_unref) struct series_set *s = calloc(1, sizeof(*s));
    size_t slots = 8;

    if (!s || text_bytes > UINT32_MAX)
        return -ENOMEM;
    s->refs = 1;
    while (slots < n + n / 2)
        slots *= 2;
    s->mask = slots - 1;
    s->text = malloc(size_max(text_bytes, 1));
    s->place = calloc(n + 1, sizeof(*s->place));
    s->slots = calloc(slots, sizeof(*s->slots));
    if (!s->text || !s->place || !s->slots)
        return -ENOMEM;
    huge_pages(s->text, text_bytes);
    *ret = TAKE_PTR(s);
    return 0;
}

void series_set_append(struct series_set *s, struct str record, size_t name_n, uint64_t hash)
{
    struct series_place *place = &s->place[s->n++];

    memcpy(s->text + place->name, record.p, record.n);
    place->labels = place->name + (uint32_t)name_n;
    place[1].name = place->name + (uint32_t)record.n;
    s->names_bytes += name_n;
    for (size_t i = hash & s->mask;; i = (i + 1) & s->mask)
        if (s->slots[i].series == 0) {
            s->slots[i].series = (uint32_t)s->n;
            s->slots[i].tag = (uint32_t)(hash >> 32);
            return;
        }
}

ssize_t series_set_lookup(const struct series_set *s, struct str name, uint64_t hash)
{
    for (size_t i = hash & s->mask; s->slots[i].series; i = (i + 1) & s->mask)
        if (s->slots[i].tag == (uint32_t)(hash >> 32) && str_eq(series_name(s, s->slots[i].series - 1), name))
            return (ssize_t)s->slots[i].series - 1;
    return -1;
}

size_t series_count(const struct series_set *s)
{
    return s->n;
}

struct str series_record(const struct series_set *s, size_t i)
{
    return (struct str){s->text + s->place[i].name, s->place[i + 1].name - s->place[i].name};
}

struct str series_name(const struct series_set *s, size_t i)
{
    return (struct str){s->text + s->place[i].name, s->place[i].labels - s->place[i].name};
}

size_t series_names_bytes(const struct series_set *s)
{
    return s->names_bytes;
}

size_t series_labels_room(const struct str values[DS_LABELS])
{
    size_t room = 0;

    for (size_t i = 0; i < DS_LABELS; i++)
        room += 2 * VARINT_MAX + values[i].n;
    return room;
}

char *series_put_labels(char *to, const struct str values[DS_LABELS], unsigned escapes)
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

void series_labels(const struct series_set *s, size_t i, struct str ret[DS_LABELS])
{
    const char *name = s->text + s->place[i].name + sizeof(SCORE_METRIC "{") - 1;
    const char *p = s->text + s->place[i].labels, *end = s->text + s->place[i + 1].name;

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
        free(b->cuts);
        rendering_free(b->rendering);
        free(b);
    }
    return NULL;
}
