/* Sets of series, and how the results of a round become a batch.
 *
 * Most rounds return the series of the previous round. Each result is looked up in the last set, by its
 * spelling and then by its name; batch_seal() reuses that set if no series came or went. */
#include "exporter/metric/series.h"

#include "exporter/base/buf.h"
#include "exporter/base/map.h"
#include "exporter/base/text.h"
#include "exporter/num/num.h"

#include <errno.h>

/* ---- Sets of series ---- */

/* The tag is the lower half of the name's hash. It says where the slot belongs and ends most mismatches
 * before names are compared, so a table is made from another one without reading a name. */
struct series_slot {
    uint32_t series; /* index + 1; 0: free */
    uint32_t tag;
};

/* Where a series' record is in the text. A record is the name followed by its labels, each a varint `length
 * in the name << 1 | escaped`; for an escaped value a varint length and the unescaped value follow. */
struct series_place {
    uint32_t name, labels;
};

struct series_set {
    unsigned refs; /* atomic */
    size_t n, cap, names_bytes;
    struct buf text;            /* the records, back to back */
    struct series_place *place; /* n + 1 of them: the last one's name is the end of the text */
    struct series_slot *slots;
    size_t mask;
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

/* The slot of the name, or the free one where it belongs. */
static struct series_slot *series_set_slot(const struct series_set *s, struct str name, uint32_t tag)
{
    size_t i = tag & s->mask;

    for (; s->slots[i].series; i = (i + 1) & s->mask)
        if (s->slots[i].tag == tag && str_eq(series_name(s, s->slots[i].series - 1), name))
            break;
    return &s->slots[i];
}

/* Takes over the slots of another set, whose series become moved[series], or UINT32_MAX if they have gone.
 * NULL: all stay. In the order of that table: neighbours go to neighbours. */
static void series_set_take_slots(struct series_set *s, const struct series_set *other, const uint32_t *moved)
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

/* Makes room for n series in all. */
static void series_set_reserve(struct series_set *s, size_t n)
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

/* An empty set with room for n series. */
static struct series_set *series_set_new(size_t n)
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

/* Appends a series whose name of name_n bytes was just written behind the text; `escapes` as in struct
 * batch_labels. -EFBIG, -ENOMEM. */
static int series_set_append(struct series_set *s, struct series_slot *slot, uint32_t tag, size_t name_n,
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

/* Appends the series `from` up to `end` of another set, but for their slots, within the room reserved. */
static void series_set_take(struct series_set *s, const struct series_set *other, size_t from, size_t end)
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

/* Sorting: by eight bytes of the names at a time. */

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

/* The indices of the series by name; from malloc. */
static uint32_t *series_set_sort(const struct series_set *s)
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

/* In a sorted set, the first of the series from `from` on whose name is not less. By steps that double:
 * mostly it is near. */
static size_t series_set_find(const struct series_set *s, size_t from, struct str name)
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

/* ---- Batches ---- */

/* How the last answer spelled the labels of its results.
 *
 * Most answers name the same series in the same order and in the same bytes as the previous one. For each
 * result, the place of its series is kept with the length and a keyed hash of the bytes that spelled its
 * labels. If the next answer has these bytes where they are expected, they need not be parsed, checked and
 * rendered again. A false match needs 64 bits to agree by chance at just that position. */
struct spelling {
    uint64_t hash;
    uint32_t bytes, place;
};

struct spellings {
    struct spelling *was, *now; /* in the order of the last answer, and of the current one */
    size_t n_was, n_now, cap_now;
    size_t next;     /* index in `was` of the one expected next */
    uint32_t *index; /* index in `was` + 1 by place; built for the first unexpected result */
};

/* The text of a name before each label value and, last, behind all of them. */
static const struct str name_parts[DS_LABELS + 1] = {
    [DS_APP] = STR(SCORE_METRIC "{ds_app=\""),
    [DS_CLUSTER] = STR("\",ds_cluster=\""),
    [DS_CONTAINER] = STR("\",ds_container=\""),
    [DS_DEVICE] = STR("\",ds_device=\""),
    [DS_META] = STR("\",ds_meta=\""),
    [DS_NAMESPACE] = STR("\",ds_namespace=\""),
    [DS_NODE] = STR("\",ds_node=\""),
    [DS_POD] = STR("\",ds_pod=\""),
    [DS_SCORE_NAME] = STR("\",ds_score_name=\""),
    [DS_LABELS] = STR("\"}"),
};

static const unsigned OWN_LABELS = 1u << DS_CLUSTER | 1u << DS_SCORE_NAME; /* which results do not have */

struct batch_builder {
    char *cluster_name, *score_name;
    struct buf cluster_shown, score_shown; /* both as a name has them, with escapes */
    size_t max_series;

    struct series_set *last;    /* of the previous batch, empty before the first */
    bool began;                 /* a batch was sealed */
    struct spellings spellings; /* of last's series */
    size_t label_max;

    /* While a batch is being built. A series has a place: its index in `last`, or one that follows them. */
    struct series_set *fresh; /* those that `last` does not have */
    double *values;           /* by place, as the next two */
    uint32_t *results;        /* index of the result that gave each value */
    uint32_t *cut_at;         /* index in cuts + 1; 0: no label was truncated; NULL before the first */
    size_t places_cap;
    uint8_t *seen; /* by series of last */
    size_t n_seen, n_results, duplicates, answer_bytes;
    struct cut_labels *cuts; /* their series is a place */
    size_t n_cuts, cuts_cap, merged_by_cut;
};

/* ---- Spellings ---- */

static void spellings_append(struct spellings *s, const struct spelling *one)
{
    if (UNLIKELY(s->n_now == s->cap_now)) {
        s->cap_now = size_max(size_max(64, s->n_was), s->cap_now * 2);
        s->now = xreallocarray(s->now, s->cap_now, sizeof(*s->now));
    }
    s->now[s->n_now++] = *one;
}

/* After an unexpected result for a known place of n_places: expects what followed it in the last answer. */
static void spellings_follow(struct spellings *s, size_t place, size_t n_places)
{
    if (s->n_was == 0)
        return;
    if (!s->index) {
        s->index = xcalloc(n_places, sizeof(*s->index));
        for (size_t i = 0; i < s->n_was; i++)
            s->index[s->was[i].place] = (uint32_t)i + 1;
    }
    if (s->index[place])
        s->next = s->index[place];
}

/* Discards the current answer and keeps the last one. */
static void spellings_drop(struct spellings *s)
{
    free(TAKE_PTR(s->now));
    free(TAKE_PTR(s->index));
    s->n_now = s->cap_now = s->next = 0;
}

/* The answer is complete: the next one is compared with it. `moved` maps old places to new ones; NULL:
 * unchanged. */
static void spellings_keep(struct spellings *s, const uint32_t *moved)
{
    for (size_t i = 0; moved && i < s->n_now; i++)
        s->now[i].place = moved[s->now[i].place];
    free(s->was);
    s->was = TAKE_PTR(s->now);
    s->n_was = s->n_now;
    spellings_drop(s);
}

static void spellings_done(struct spellings *s)
{
    spellings_drop(s);
    free(s->was);
    *s = (struct spellings){0};
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
        (void)piece_unref(b->piece);
        free(b);
    }
    return NULL;
}

/* Label values that were truncated: results that became one series by that, and what tells them apart. */

static const uint32_t not_cut[DS_LABELS];

/* Notes the truncated labels of the result just added at a place, which gives the series its value; uncut: as
 * in batch_labels. */
static void batch_note_cut(struct batch_builder *b, size_t place, bool repeated, const uint32_t *uncut)
{
    uint32_t *slot;

    if (!b->cut_at)
        b->cut_at = xcalloc(b->places_cap, sizeof(*b->cut_at));
    slot = &b->cut_at[place];
    if (!uncut)
        uncut = not_cut;
    if (repeated && memcmp(*slot ? b->cuts[*slot - 1].uncut : not_cut, uncut, sizeof(not_cut)) != 0)
        b->merged_by_cut++;
    if (!*slot && uncut != not_cut) {
        if (b->n_cuts == b->cuts_cap) {
            b->cuts_cap = size_max(16, b->cuts_cap * 2);
            b->cuts = xreallocarray(b->cuts, b->cuts_cap, sizeof(*b->cuts));
        }
        b->cuts[b->n_cuts] = (struct cut_labels){.series = (uint32_t)place};
        *slot = (uint32_t)++b->n_cuts;
    }
    if (*slot)
        memcpy(b->cuts[*slot - 1].uncut, uncut, sizeof(not_cut));
}

static int compare_series(const void *x, const void *y)
{
    const struct cut_labels *a = x, *b = y;

    return a->series < b->series ? -1 : a->series > b->series;
}

/* Moves them into the batch. moved: as in batch_seal(). */
static void batch_seal_cuts(struct batch_builder *b, const uint32_t *moved, struct batch *batch)
{
    for (size_t i = 0; moved && i < b->n_cuts; i++)
        b->cuts[i].series = moved[b->cuts[i].series];
    if (b->n_cuts)
        qsort(b->cuts, b->n_cuts, sizeof(*b->cuts), compare_series);
    batch->cuts = TAKE_PTR(b->cuts);
    batch->n_cuts = b->n_cuts;
    batch->merged_by_cut = b->merged_by_cut;
}

/* Sealing a batch: with the last set if the series are the same, else with a new one. */

/* Appends the series at these places, `from` up to `end` of a set, to the batch's. */
static void merge_take(const struct batch_builder *b, struct batch *batch, uint32_t *moved,
                       const struct series_set *set, size_t from, size_t end)
{
    size_t base = set == b->fresh ? series_count(b->last) : 0, n = batch->set->n;

    for (size_t i = base + from; i < base + end; i++, n++) {
        moved[i] = (uint32_t)n;
        batch->values[n] = b->values[i];
        batch->order[n] = b->results[i];
    }
    series_set_take(batch->set, set, from, end);
}

/* Of the last set, only those that were seen again. */
static void merge_take_seen(const struct batch_builder *b, struct batch *batch, uint32_t *moved, size_t from,
                            size_t end)
{
    for (size_t next; from < end; from = next) {
        for (next = from + 1; next < end && b->seen[next] == b->seen[from];)
            next++;
        if (b->seen[from])
            merge_take(b, batch, moved, b->last, from, next);
    }
}

/* Merges the series of the last set that were seen again with the fresh ones into a new last set, with its
 * values and order. moved[] becomes the place in it of each until now, or UINT32_MAX. -ENOMEM. */
static int merge_series(struct batch_builder *b, struct batch *batch, uint32_t *moved)
{
    size_t n = b->n_seen + b->fresh->n, old_n = series_count(b->last), at = 0;
    CLEANUP(cleanup_free) uint32_t *by_name = series_set_sort(b->fresh);
    char *room;

    batch->set = series_set_new(n);
    if (buf_room(&batch->set->text, b->last->text.n + b->fresh->text.n, &room) < 0)
        return -ENOMEM;
    batch->values = xcalloc(size_max(n, 1), sizeof(*batch->values));
    batch->order = xcalloc(size_max(n, 1), sizeof(*batch->order));
    memset(moved, 0xff, old_n * sizeof(*moved));
    for (size_t k = 0; k < b->fresh->n; k++) {
        uint32_t series = by_name[k];
        size_t next = b->n_seen ? series_set_find(b->last, at, series_name(b->fresh, series)) : 0;

        merge_take_seen(b, batch, moved, at, next);
        merge_take(b, batch, moved, b->fresh, series, series + 1);
        at = next;
    }
    merge_take_seen(b, batch, moved, at, old_n);
    if (b->n_seen)
        series_set_take_slots(batch->set, b->last, moved);
    series_set_take_slots(batch->set, b->fresh, moved + old_n);
    buf_shrink(&batch->set->text);
    (void)series_set_unref(b->last);
    b->last = series_set_ref(batch->set);
    return 0;
}

int batch_seal(struct batch_builder *b, unix_ms at, struct batch **ret, size_t *ret_duplicates)
{
    CLEANUP(cleanup_batch_unref) struct batch *batch = xcalloc(1, sizeof(*batch));
    CLEANUP(cleanup_free) uint32_t *moved = NULL; /* NULL: the series are those of the last set */

    *batch = (struct batch){.refs = 1, .at = at, .score_name = xstrdup(b->score_name)};
    batch->new_set = !b->began || b->fresh->n || b->n_seen < series_count(b->last);
    if (!batch->new_set) {
        batch->set = series_set_ref(b->last);
        batch->values = TAKE_PTR(b->values);
        batch->order = TAKE_PTR(b->results);
    } else {
        moved = xcalloc(series_count(b->last) + b->fresh->n + 1, sizeof(*moved));
        if (merge_series(b, batch, moved) < 0)
            return -ENOMEM;
    }
    spellings_keep(&b->spellings, moved);
    batch_seal_cuts(b, moved, batch);
    b->began = true;
    if (ret_duplicates)
        *ret_duplicates = b->duplicates;
    batch_abandon(b);
    *ret = TAKE_PTR(batch);
    return 0;
}

struct batch_builder *batch_builder_new(const char *cluster_name, const char *score_name, size_t max_series)
{
    struct batch_builder *b = xcalloc(1, sizeof(*b));

    b->cluster_shown.max = b->score_shown.max = 64u << 20; /* a configuration is smaller */
    b->max_series = max_series;
    b->last = series_set_new(0);
    b->cluster_name = xstrdup(cluster_name);
    b->score_name = xstrdup(score_name);
    if (buf_put_label_value(&b->cluster_shown, str_of(cluster_name)) < 0 ||
        buf_put_label_value(&b->score_shown, str_of(score_name)) < 0)
        memory_exhausted(b->cluster_shown.max);
    return b;
}

void batch_abandon(struct batch_builder *b)
{
    b->fresh = series_set_unref(b->fresh);
    free(TAKE_PTR(b->values));
    free(TAKE_PTR(b->results));
    free(TAKE_PTR(b->cut_at));
    free(TAKE_PTR(b->seen));
    free(TAKE_PTR(b->cuts));
    b->n_cuts = b->cuts_cap = b->merged_by_cut = 0;
    b->n_seen = b->n_results = b->duplicates = 0;
    spellings_drop(&b->spellings);
}

struct batch_builder *batch_builder_free(struct batch_builder *b)
{
    if (!b)
        return NULL;
    batch_abandon(b);
    (void)series_set_unref(b->last);
    buf_done(&b->cluster_shown);
    buf_done(&b->score_shown);
    spellings_done(&b->spellings);
    free(b->cluster_name);
    free(b->score_name);
    free(b);
    return NULL;
}

void batch_builder_set_max(struct batch_builder *b, size_t max_series)
{
    b->max_series = max_series;
}

void batch_begin(struct batch_builder *b, size_t label_max, size_t answer_bytes)
{
    size_t n = series_count(b->last);

    batch_abandon(b);
    if (b->label_max != label_max)
        spellings_done(&b->spellings);
    b->label_max = label_max;
    b->answer_bytes = answer_bytes;
    b->fresh = series_set_new(0);
    b->places_cap = size_max(n, 1);
    b->values = xcalloc(b->places_cap, sizeof(*b->values));
    b->results = xcalloc(b->places_cap, sizeof(*b->results));
    b->seen = xcalloc(size_max(n, 1), 1);
}

/* Writes the name behind the text of the fresh series. */
static int render_name(struct batch_builder *b, const struct batch_labels *l, struct str *ret)
{
    size_t room = name_parts[DS_LABELS].n;
    struct str values[DS_LABELS];
    char *to, *o;
    int r;

    memcpy(values, l->value, sizeof(values));
    values[DS_CLUSTER] = buf_str(&b->cluster_shown);
    values[DS_SCORE_NAME] = buf_str(&b->score_shown);
    for (size_t i = 0; i < DS_LABELS; i++)
        room += name_parts[i].n + values[i].n * 2;
    r = buf_room(&b->fresh->text, room, &to);
    if (r < 0)
        return r;
    o = to;
    for (size_t i = 0; i < DS_LABELS; i++) {
        o = mempcpy(o, name_parts[i].p, name_parts[i].n);
        if (values[i].n)
            o = l->escapes & ~OWN_LABELS & 1u << i ? escape_label_value(o, values[i])
                                                   : mempcpy(o, values[i].p, values[i].n);
    }
    o = mempcpy(o, name_parts[DS_LABELS].p, name_parts[DS_LABELS].n);
    *ret = (struct str){to, (size_t)(o - to)};
    return 0;
}

/* Makes room for one more place, and for its series. */
static void grow_places(struct batch_builder *b)
{
    size_t was = b->places_cap;

    if (b->fresh->n == b->fresh->cap)
        series_set_reserve(b->fresh, size_max(64, b->fresh->cap * 2));
    if (series_count(b->last) + b->fresh->n < was)
        return;
    b->places_cap = size_max(64, was * 2);
    b->values = xreallocarray(b->values, b->places_cap, sizeof(*b->values));
    b->results = xreallocarray(b->results, b->places_cap, sizeof(*b->results));
    if (b->cut_at) {
        b->cut_at = xreallocarray(b->cut_at, b->places_cap, sizeof(*b->cut_at));
        memset(b->cut_at + was, 0, (b->places_cap - was) * sizeof(*b->cut_at));
    }
}

/* Takes the room for as many records like the first as the answer may have: memory that grows bit by bit
 * costs as much again. */
static void expect_more(struct batch_builder *b, size_t spelling_n)
{
    size_t results = b->answer_bytes / (spelling_n + sizeof("{\"metric\":,\"score\":1}"));
    char *room;

    if (spelling_n)
        (void)!buf_room(&b->fresh->text, size_min(results, b->max_series) * b->fresh->text.n, &room);
}

/* Adds the name just written; *ret is its place. 1: it is there already, as below. */
static int add_fresh(struct batch_builder *b, const struct batch_labels *labels, struct str name,
                     uint32_t tag, size_t *ret)
{
    struct str values[DS_LABELS];
    struct series_slot *slot;
    int r;

    grow_places(b);
    slot = series_set_slot(b->fresh, name, tag);
    if (slot->series) {
        *ret = series_count(b->last) + slot->series - 1;
        return 1;
    }
    if (b->n_seen + b->fresh->n >= b->max_series)
        return -ENOSPC;
    memcpy(values, labels->value, sizeof(values));
    values[DS_CLUSTER] = str_of(b->cluster_name);
    values[DS_SCORE_NAME] = str_of(b->score_name);
    r = series_set_append(b->fresh, slot, tag, name.n, values, labels->escapes | OWN_LABELS);
    if (r < 0)
        return r;
    if (b->fresh->n == 1)
        expect_more(b, labels->spelling.n);
    *ret = series_count(b->last) + b->fresh->n - 1;
    return 0;
}

static int add_known(struct batch_builder *b, size_t place)
{
    if (b->seen[place])
        return 1;
    if (b->n_seen + b->fresh->n >= b->max_series)
        return -ENOSPC;
    b->seen[place] = 1;
    b->n_seen++;
    return 0;
}

/* Adds the series; *ret is its place. */
static int add_series(struct batch_builder *b, const struct batch_labels *labels, size_t *ret)
{
    struct str name;
    ssize_t place;
    uint64_t hash;
    int r = render_name(b, labels, &name);

    if (r < 0)
        return r;
    hash = hash_bytes(name);
    place = series_set_lookup(b->last, name, hash);
    if (place < 0)
        return add_fresh(b, labels, name, (uint32_t)hash, ret);
    *ret = (size_t)place;
    r = add_known(b, *ret);
    if (r >= 0)
        spellings_follow(&b->spellings, *ret, series_count(b->last));
    return r;
}

/* The series at the place, which an earlier result may have given a value, has that of the next result. */
static void set_value(struct batch_builder *b, size_t place, bool repeated, const uint32_t *uncut,
                      double value)
{
    b->duplicates += repeated;
    if (uncut || b->n_cuts)
        batch_note_cut(b, place, repeated, uncut);
    b->values[place] = value;
    b->results[place] = (uint32_t)b->n_results++;
}

int batch_add(struct batch_builder *b, const struct batch_labels *labels, double value)
{
    struct str spelling = labels->spelling;
    size_t place;
    int r = add_series(b, labels, &place);

    if (r < 0)
        return r == -EFBIG ? -ENOMEM : r;
    if (spelling.n > 0 && spelling.n <= UINT32_MAX)
        spellings_append(&b->spellings,
                         &(struct spelling){hash_bytes(spelling), (uint32_t)spelling.n, (uint32_t)place});
    set_value(b, place, r, labels->uncut, value);
    return 0;
}

size_t batch_spelled(const struct batch_builder *b, struct str text)
{
    const struct spellings *s = &b->spellings;
    size_t n = s->next < s->n_was ? s->was[s->next].bytes : 0;

    return n && n <= text.n && hash_bytes((struct str){text.p, n}) == s->was[s->next].hash ? n : 0;
}

int batch_add_spelled(struct batch_builder *b, double value)
{
    const struct spelling *one = &b->spellings.was[b->spellings.next++];
    int r = add_known(b, one->place);

    if (r < 0)
        return r;
    spellings_append(&b->spellings, one);
    set_value(b, one->place, r, NULL, value);
    return 0;
}
