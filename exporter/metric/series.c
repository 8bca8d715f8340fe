/* Sets of series, and how the results of a round become a batch.
 *
 * Most rounds return the series of the previous round. Each result is looked up in the last set, by its
 * spelling and then by its name; batch_seal() reuses that set if no series came or went. */
#include "exporter/metric/series.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/escape.h"
#include "exporter/base/hash.h"
#include "exporter/base/invariant.h"
#include "exporter/base/order.h"
#include "exporter/num/num.h"

#include <errno.h>

/* ---- Sets of series ---- */

/* A series' record is its name followed by its labels, each a varint `length in the name << 1 | escaped`;
 * for an escaped value a varint length and the unescaped value follow. */
struct series_place {
    const char *record;
    uint32_t name_n, n; /* bytes of the name, and of all */
};

/* Records, back to back. Sets share texts: when few series come and go, only the new ones are written. */
struct series_text {
    unsigned refs;      /* atomic */
    struct buf records; /* never grows: places point into it */
};

struct series_set {
    unsigned refs; /* atomic */
    size_t n, cap, names_bytes;
    struct series_place *place;
    struct series_text **texts;  /* where the records are */
    size_t n_texts, texts_bytes; /* texts_bytes: allocated for all of them */
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

static void series_set_drop_texts(struct series_set *s)
{
    for (size_t i = 0; i < s->n_texts; i++)
        if (__atomic_sub_fetch(&s->texts[i]->refs, 1, __ATOMIC_ACQ_REL) == 0) {
            buf_done(&s->texts[i]->records);
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

/* An empty set with room for n series. */
static struct series_set *series_set_new(size_t n)
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

static void series_set_share_texts(struct series_set *s, const struct series_set *other)
{
    for (size_t i = 0; i < other->n_texts; i++) {
        (void)__atomic_add_fetch(&other->texts[i]->refs, 1, __ATOMIC_RELAXED);
        series_set_hold(s, other->texts[i]);
    }
}

static struct buf *series_set_add_text(struct series_set *s, size_t cap)
{
    struct series_text *text = xmalloc(sizeof(*text));

    *text = (struct series_text){.refs = 1, .records = {.max = cap}};
    if (buf_reserve(&text->records, cap, &(char *){NULL}) < 0)
        memory_exhausted(cap);
    series_set_hold(s, text);
    return &text->records;
}

/* Room for a record of at most n bytes in the last text, or in a new one; `first`: the size of the first. */
static char *series_set_room(struct series_set *s, size_t n, size_t first)
{
    struct buf *last = s->n_texts ? &s->texts[s->n_texts - 1]->records : NULL;

    if (!last || last->cap - last->n < n)
        last = series_set_add_text(s, size_max(n, s->texts_bytes ?: first));
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

/* Appends a series whose name was just written to the room for its record; `escapes` as in struct
 * batch_labels. */
static void series_set_append(struct series_set *s, struct str name, const struct str values[DS_LABELS],
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

/* Rewrites all records in order if much of the texts is unused, or if so many records are not next to their
 * neighbours that reading them in order would wait for memory. */
static void series_set_pack(struct series_set *s)
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

/* Finds a place by name, for results that are not spelled as expected. The table is built for the first of
 * them and freed after a batch without any. The tag is the lower half of the name's hash: it says where the
 * slot belongs and ends most mismatches before names are compared. */
struct name_slot {
    uint32_t place; /* + 1; 0: free */
    uint32_t tag;
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
    struct name_slot *slots; /* NULL: none; it outlives the batch */
    size_t slots_mask;
    bool slots_used; /* by this batch */
    uint8_t *seen;   /* by series of last */
    size_t n_seen, n_results, duplicates, answer_bytes;
    struct cut_labels *cuts; /* their series is a place */
    size_t n_cuts, cuts_cap, merged_by_cut;
};

/* ---- Places by name ---- */

/* Makes a table for n names from the last one, if there is one. moved: as in batch_seal(). */
static void slots_resize(struct batch_builder *b, size_t n, const uint32_t *moved)
{
    CLEANUP(cleanup_free) struct name_slot *was = b->slots;
    size_t was_n = was ? b->slots_mask + 1 : 0, cap = 16;

    while (cap < n + n / 2)
        cap *= 2;
    b->slots = xcalloc(cap, sizeof(*b->slots));
    b->slots_mask = cap - 1;
    for (size_t k = 0; k < was_n; k++) {
        size_t i = was[k].tag & b->slots_mask;
        uint32_t place = was[k].place && moved ? moved[was[k].place - 1] + 1 : was[k].place;

        if (!place) /* free, or its series has gone */
            continue;
        while (b->slots[i].place) /* mostly near: slots come in the order of the old table */
            i = (i + 1) & b->slots_mask;
        b->slots[i] = (struct name_slot){place, was[k].tag};
    }
}

static const struct series_place *series_at(const struct batch_builder *b, size_t place)
{
    return place < b->last->n ? &b->last->place[place] : &b->fresh->place[place - b->last->n];
}

/* The slot of the name, or the free one where it belongs. */
static struct name_slot *slots_find(const struct batch_builder *b, struct str name, uint32_t tag)
{
    size_t i = tag & b->slots_mask;

    for (; b->slots[i].place; i = (i + 1) & b->slots_mask) {
        const struct series_place *at = series_at(b, b->slots[i].place - 1);
        if (b->slots[i].tag == tag && str_eq((struct str){at->record, at->name_n}, name))
            break;
    }
    return &b->slots[i];
}

/* Makes room for one more name. */
static void slots_prepare(struct batch_builder *b)
{
    size_t last = series_count(b->last), n = last + b->fresh->n + 1, known;

    b->slots_used = true;
    if (b->slots && n + n / 2 <= b->slots_mask)
        return;
    known = b->slots ? last : 0;
    slots_resize(b, n + 1, NULL);
    for (size_t i = known; i < last; i++) {
        struct str name = series_name(b->last, i);
        uint32_t tag = (uint32_t)hash_bytes(name);
        *slots_find(b, name, tag) = (struct name_slot){(uint32_t)i + 1, tag};
    }
}

/* After a batch: `gone` series of the last set ended. moved: as in batch_seal(). */
static void slots_keep(struct batch_builder *b, size_t gone, const uint32_t *moved)
{
    if (!b->slots_used)
        free(TAKE_PTR(b->slots));
    else if (gone)
        slots_resize(b, series_count(b->last), moved);
    for (size_t i = 0; b->slots && !gone && moved && i <= b->slots_mask; i++)
        if (b->slots[i].place)
            b->slots[i].place = moved[b->slots[i].place - 1] + 1;
}

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
    unsigned before = __atomic_fetch_add(&b->refs, 1, __ATOMIC_RELAXED);

    invariant(before > 0);
    return b;
}

static void batch_free(struct batch *b)
{
    (void)series_set_unref(b->set);
    free(b->score_name);
    free(b->values);
    free(b->order);
    free(b->cuts);
    free(b);
}

struct batch *batch_unref(struct batch *b)
{
    unsigned before;

    if (!b)
        return NULL;
    before = __atomic_fetch_sub(&b->refs, 1, __ATOMIC_ACQ_REL);
    invariant(before > 0);
    if (before == 1)
        batch_free(b);
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

DEFINE_ORDER(compare_series, struct cut_labels, COMPARE(a->series, b->series))

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

/* Appends the series of the place to the batch's, whose room is reserved. */
static void merge_take(const struct batch_builder *b, struct batch *batch, uint32_t *moved, size_t place)
{
    struct series_set *set = batch->set;

    moved[place] = (uint32_t)set->n;
    batch->values[set->n] = b->values[place];
    batch->order[set->n] = b->results[place];
    set->place[set->n] = *series_at(b, place);
    set->names_bytes += set->place[set->n++].name_n;
}

/* Merges the series of the last set that were seen again with the fresh ones into a new last set, with its
 * values and order. moved[] becomes the place in it of each until now, or UINT32_MAX. */
static void merge_series(struct batch_builder *b, struct batch *batch, uint32_t *moved)
{
    size_t n = b->n_seen + b->fresh->n, old_n = series_count(b->last), at = 0;
    CLEANUP(cleanup_free) struct str *names = xcalloc(size_max(b->fresh->n, 1), sizeof(*names));
    CLEANUP(cleanup_free) uint32_t *by_name = NULL;

    for (size_t i = 0; i < b->fresh->n; i++)
        names[i] = series_name(b->fresh, i);
    by_name = str_order(names, b->fresh->n);
    batch->set = series_set_new(n);
    batch->values = xcalloc(size_max(n, 1), sizeof(*batch->values));
    batch->order = xcalloc(size_max(n, 1), sizeof(*batch->order));
    memset(moved, 0xff, old_n * sizeof(*moved));
    for (size_t k = 0; k <= b->fresh->n; k++) {
        size_t next = k < b->fresh->n && b->n_seen ? series_set_find(b->last, at, names[by_name[k]]) : old_n;

        for (; at < next; at++)
            if (b->seen[at])
                merge_take(b, batch, moved, at);
        if (k < b->fresh->n)
            merge_take(b, batch, moved, old_n + by_name[k]);
    }
    series_set_share_texts(batch->set, b->last);
    series_set_share_texts(batch->set, b->fresh);
    series_set_pack(batch->set);
    (void)series_set_unref(b->last);
    b->last = series_set_ref(batch->set);
}

void batch_seal(struct batch_builder *b, unix_ms at, struct batch **ret, size_t *ret_duplicates)
{
    CLEANUP(cleanup_batch_unref) struct batch *batch = xcalloc(1, sizeof(*batch));
    CLEANUP(cleanup_free) uint32_t *moved = NULL; /* NULL: the series are those of the last set */
    size_t gone = series_count(b->last) - b->n_seen;

    *batch = (struct batch){.refs = 1, .at = at, .score_name = xstrdup(b->score_name)};
    batch->new_set = !b->began || b->fresh->n || gone;
    if (!batch->new_set) {
        batch->set = series_set_ref(b->last);
        batch->values = TAKE_PTR(b->values);
        batch->order = TAKE_PTR(b->results);
    } else {
        moved = xcalloc(series_count(b->last) + b->fresh->n + 1, sizeof(*moved));
        merge_series(b, batch, moved);
    }
    spellings_keep(&b->spellings, moved);
    slots_keep(b, gone, moved);
    batch_seal_cuts(b, moved, batch);
    b->began = true;
    b->fresh = series_set_unref(b->fresh);
    if (ret_duplicates)
        *ret_duplicates = b->duplicates;
    batch_abandon(b);
    *ret = TAKE_PTR(batch);
}

struct batch_builder *batch_builder_new(const char *cluster_name, const char *score_name, size_t max_series)
{
    struct batch_builder *b = xcalloc(1, sizeof(*b));

    b->cluster_shown.max = b->score_shown.max = 64u << 20; /* a configuration is smaller */
    b->max_series = max_series;
    b->last = series_set_new(0);
    b->cluster_name = xstrdup(cluster_name);
    b->score_name = xstrdup(score_name);
    buf_put_label_value(&b->cluster_shown, str_of(cluster_name));
    buf_put_label_value(&b->score_shown, str_of(score_name));
    if (buf_failed(&b->cluster_shown) < 0 || buf_failed(&b->score_shown) < 0)
        memory_exhausted(b->cluster_shown.max);
    return b;
}

void batch_abandon(struct batch_builder *b)
{
    if (b->fresh && b->fresh->n)
        free(TAKE_PTR(b->slots)); /* it has places that there will not be */
    b->fresh = series_set_unref(b->fresh);
    free(TAKE_PTR(b->values));
    free(TAKE_PTR(b->results));
    free(TAKE_PTR(b->cut_at));
    free(TAKE_PTR(b->seen));
    free(TAKE_PTR(b->cuts));
    b->n_cuts = b->cuts_cap = b->merged_by_cut = 0;
    b->n_seen = b->n_results = b->duplicates = 0;
    b->slots_used = false;
    spellings_drop(&b->spellings);
}

struct batch_builder *batch_builder_free(struct batch_builder *b)
{
    if (!b)
        return NULL;
    batch_abandon(b);
    free(b->slots);
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

/* Writes the name behind the text of the fresh series, with room for the labels. */
static int render_name(struct batch_builder *b, const struct batch_labels *l, struct str *ret)
{
    size_t room = name_parts[DS_LABELS].n;
    struct str values[DS_LABELS];
    char *o;

    memcpy(values, l->value, sizeof(values));
    values[DS_CLUSTER] = buf_str(&b->cluster_shown);
    values[DS_SCORE_NAME] = buf_str(&b->score_shown);
    for (size_t i = 0; i < DS_LABELS; i++)
        room += name_parts[i].n + values[i].n * 3 + VARINT_MAX * 2;
    if (room + b->fresh->texts_bytes > UINT32_MAX)
        return -ENOMEM;
    ret->p = o = series_set_room(b->fresh, room, series_count(b->last) ? 4096 : b->answer_bytes);
    for (size_t i = 0; i < DS_LABELS; i++) {
        o = mempcpy(o, name_parts[i].p, name_parts[i].n);
        if (values[i].n)
            o = l->escapes & ~OWN_LABELS & 1u << i ? escape_label_value(o, values[i])
                                                   : mempcpy(o, values[i].p, values[i].n);
    }
    o = mempcpy(o, name_parts[DS_LABELS].p, name_parts[DS_LABELS].n);
    ret->n = (size_t)(o - ret->p);
    return 0;
}

/* Makes room for one more place. */
static void grow_places(struct batch_builder *b)
{
    size_t was = b->places_cap;

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

/* Adds the name just written. */
static int add_fresh(struct batch_builder *b, const struct batch_labels *labels, struct str name)
{
    struct str values[DS_LABELS];

    if (b->n_seen + b->fresh->n >= b->max_series)
        return -ENOSPC;
    grow_places(b);
    memcpy(values, labels->value, sizeof(values));
    values[DS_CLUSTER] = str_of(b->cluster_name);
    values[DS_SCORE_NAME] = str_of(b->score_name);
    series_set_append(b->fresh, name, values, labels->escapes | OWN_LABELS);
    return 0;
}

/* 1: an earlier result had it. */
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

/* Adds the series; *ret is its place. 1: an earlier result had it. */
static int add_series(struct batch_builder *b, const struct batch_labels *labels, size_t *ret)
{
    size_t n = series_count(b->last);
    struct name_slot *slot;
    struct str name;
    uint32_t tag;
    int r = render_name(b, labels, &name);

    if (r < 0)
        return r;
    tag = (uint32_t)hash_bytes(name);
    slots_prepare(b);
    slot = slots_find(b, name, tag);
    *ret = slot->place ? slot->place - 1 : n + b->fresh->n;
    if (!slot->place) {
        r = add_fresh(b, labels, name);
        if (r == 0)
            *slot = (struct name_slot){(uint32_t)*ret + 1, tag};
        return r;
    }
    r = *ret < n ? add_known(b, *ret) : 1;
    if (r >= 0 && *ret < n)
        spellings_follow(&b->spellings, *ret, n);
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
        return r;
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
