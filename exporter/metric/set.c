#include "exporter/metric/set.h"

#include "exporter/base/map.h"
#include "exporter/num/num.h"

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
        buf_done(&s->text);
        free(s->place);
        free(s->slots);
        free(s);
    }
    return NULL;
}

struct series_slot *series_set_slot(const struct series_set *s, struct str name, uint32_t tag)
{
    size_t i = tag & s->mask;

    for (; s->slots[i].series; i = (i + 1) & s->mask)
        if (s->slots[i].tag == tag && str_eq(series_name(s, s->slots[i].series - 1), name))
            break;
    return &s->slots[i];
}

/* In the order of that table: neighbours go to neighbours. */
void series_set_take_slots(struct series_set *s, const struct series_set *other, const uint32_t *moved)
{
    for (size_t k = 0; k <= other->mask; k++) {
        size_t i = other->slots[k].tag & s->mask;
        uint32_t series = other->slots[k].series;

        if (series && moved)
            series = moved[series - 1] + 1; /* 0 if it has gone */
        if (!series)
            continue;
        while (s->slots[i].series)
            i = (i + 1) & s->mask;
        s->slots[i] = (struct series_slot){.series = series, .tag = other->slots[k].tag};
    }
}

void series_set_reserve(struct series_set *s, size_t n)
{
    const struct series_set was = *s;
    size_t most = 8;

    while (most < n + n / 2)
        most *= 2;
    s->cap = n;
    s->place = xreallocarray(s->place, n + 1, sizeof(*s->place));
    if (was.slots && was.mask == most - 1)
        return;
    s->mask = most - 1;
    s->slots = xcalloc(most, sizeof(*s->slots));
    if (was.slots)
        series_set_take_slots(s, &was, NULL);
    free(was.slots);
}

struct series_set *series_set_new(size_t n)
{
    struct series_set *s = xcalloc(1, sizeof(*s));

    s->refs = 1;
    buf_init(&s->text, UINT32_MAX);
    series_set_reserve(s, n);
    s->place[0].name = 0;
    return s;
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

int series_set_append(struct series_set *s, struct series_slot *slot, uint32_t tag, size_t name_n,
                      const struct str values[DS_LABELS], unsigned escapes)
{
    struct series_place *place = &s->place[s->n];
    size_t room = name_n;
    char *to;
    int r;

    for (size_t i = 0; i < DS_LABELS; i++)
        room += 2 * VARINT_MAX + values[i].n;
    r = buf_room(&s->text, room, &to);
    if (r < 0)
        return r;
    s->text.n = (size_t)(put_labels(to + name_n, values, escapes) - s->text.p);
    s->names_bytes += name_n;
    s->n++;
    place->labels = place->name + (uint32_t)name_n;
    place[1].name = (uint32_t)s->text.n;
    *slot = (struct series_slot){.series = (uint32_t)s->n, .tag = tag};
    return 0;
}

void series_set_take(struct series_set *s, const struct series_set *other, size_t from, size_t end)
{
    const struct series_place *was = other->place + from;
    size_t bytes = other->place[end].name - was->name;
    uint32_t by = (uint32_t)s->text.n - was->name;
    struct series_place *place = s->place + s->n;

    if (bytes)
        memcpy(s->text.p + s->text.n, other->text.p + was->name, bytes);
    s->text.n += bytes;
    s->n += end - from;
    for (size_t i = 0; i < end - from; i++) {
        s->names_bytes += was[i].labels - was[i].name;
        place[i] = (struct series_place){was[i].name + by, was[i].labels + by};
    }
    place[end - from].name = (uint32_t)s->text.n;
}

ssize_t series_set_lookup(const struct series_set *s, struct str name, uint64_t hash)
{
    return (ssize_t)series_set_slot(s, name, (uint32_t)hash)->series - 1;
}

size_t series_count(const struct series_set *s)
{
    return s->n;
}

struct str series_name(const struct series_set *s, size_t i)
{
    return (struct str){s->text.p + s->place[i].name, s->place[i].labels - s->place[i].name};
}

size_t series_names_bytes(const struct series_set *s)
{
    return s->names_bytes;
}

void series_labels(const struct series_set *s, size_t i, struct str ret[DS_LABELS])
{
    const char *name = s->text.p + s->place[i].name + sizeof(SCORE_METRIC "{") - 1;
    const char *p = s->text.p + s->place[i].labels, *end = s->text.p + s->place[i + 1].name;

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

/* ---- Sorting: by eight bytes of the names at a time ---- */

struct sort_item {
    uint64_t key; /* eight bytes of its name, the first one uppermost */
    uint32_t series;
};

/* Reads the keys behind what all of these names have in common, and returns the depth there. They are equal
 * up to `depth`. */
static size_t sort_read_keys(const struct series_set *s, struct sort_item *items, size_t n, size_t depth)
{
    struct str first = series_name(s, items[0].series);
    size_t common = first.n;

    for (size_t i = 1; i < n; i++) {
        struct str name = series_name(s, items[i].series);
        size_t k = depth;

        common = size_min(common, name.n);
        while (k + 8 <= common && memcmp(first.p + k, name.p + k, 8) == 0)
            k += 8;
        while (k < common && first.p[k] == name.p[k])
            k++;
        common = k;
    }
    for (size_t i = 0; i < n; i++) {
        struct str name = series_name(s, items[i].series);

        items[i].key = 0;
        memcpy(&items[i].key, name.p + common, size_min(name.n - common, sizeof(items[i].key)));
        items[i].key = be64toh(items[i].key);
    }
    return common;
}

static void sort_swap(struct sort_item *x, struct sort_item *y)
{
    struct sort_item was = *x;

    *x = *y;
    *y = was;
}

/* Quicksort; no answer can be made to be slow to sort, as the pivots depend on this process' key. */
static void sort_names(const struct series_set *s, struct sort_item *items, size_t n, size_t depth)
{
    while (n > 1) {
        uint64_t pivot = items[hash_chain_u64(depth, n) % n].key;
        size_t less = 0, i = 0, end = n;

        while (i < end)
            if (items[i].key < pivot)
                sort_swap(&items[i++], &items[less++]);
            else if (items[i].key > pivot)
                sort_swap(&items[i], &items[--end]);
            else
                i++;
        sort_names(s, items, less, depth);
        sort_names(s, items + end, n - end, depth);
        items += less;
        n = end - less;
        if (n > 1)
            depth = sort_read_keys(s, items, n, depth + sizeof(pivot));
    }
}

uint32_t *series_set_sort(const struct series_set *s)
{
    CLEANUP(cleanup_free) struct sort_item *items = xcalloc(size_max(s->n, 1), sizeof(*items));
    uint32_t *order = xcalloc(size_max(s->n, 1), sizeof(*order));

    for (size_t i = 0; i < s->n; i++)
        items[i].series = (uint32_t)i;
    if (s->n)
        sort_names(s, items, s->n, sort_read_keys(s, items, s->n, 0));
    for (size_t i = 0; i < s->n; i++)
        order[i] = items[i].series;
    return order;
}

/* By steps that double: mostly it is near. */
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

size_t series_set_missing(const struct series_set *s, const struct series_set *other, uint32_t **ret)
{
    uint32_t *missing = *ret = xmalloc((s->n + 1) * sizeof(*missing));
    size_t n = 0, at = 0;

    for (size_t i = 0; i < s->n; i++) {
        struct str name = series_name(s, i);

        at = other ? series_set_find(other, at, name) : 0;
        if (!other || at == other->n || !str_eq(series_name(other, at), name))
            missing[n++] = (uint32_t)i;
    }
    return n;
}
