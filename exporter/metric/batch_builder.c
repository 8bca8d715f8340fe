/* Owns a batch while it is built, and what is kept from one to the next. The loop's thread, or the
 * worker's while it reads a large answer: whoever has the builder.
 *
 * Most rounds return the series of the previous round. Each result is looked up in the last set, by its
 * spelling (spelling.h) and then by its name; batch_seal() reuses that set if no series came or went. */
#include "exporter/metric/batch_builder.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/escape.h"
#include "exporter/base/hash.h"
#include "exporter/base/order.h"
#include "exporter/metric/series_set.h"
#include "exporter/metric/spelling.h"
#include "exporter/num/num.h"

#include <errno.h>

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

enum {
    SLOTS_MIN = 16,
    SLOTS_SPARSE = 8, /* a table of more slots for each name is replaced by a smaller one */
    FIRST_FRESH_BYTES = 4096,
    FRESH_PART = 16, /* many series are new if they take more than this part of what all take */
};

static const uint32_t SLOT_IS_GONE = UINT32_MAX; /* as a place, while slots are moved */

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

/* Makes a table for n names from the last one, if there is one. */
static void slots_resize(struct batch_builder *b, size_t n)
{
    CLEANUP(cleanup_free) struct name_slot *was = b->slots;
    size_t was_n = was ? b->slots_mask + 1 : 0, cap = SLOTS_MIN;

    while (cap < n + n / 2)
        cap *= 2;
    b->slots = xcalloc(cap, sizeof(*b->slots));
    b->slots_mask = cap - 1;
    for (size_t k = 0; k < was_n; k++) {
        size_t i = was[k].tag & b->slots_mask;

        if (!was[k].place)
            continue;
        while (b->slots[i].place) /* mostly near: slots come in the order of the old table */
            i = (i + 1) & b->slots_mask;
        b->slots[i] = was[k];
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
    slots_resize(b, n + 1);
    for (size_t i = known; i < last; i++) {
        struct str name = series_name(b->last, i);
        uint32_t tag = (uint32_t)hash_bytes(name);
        *slots_find(b, name, tag) = (struct name_slot){(uint32_t)i + 1, tag};
    }
}

/* Frees a slot, and moves later ones of its run up, so that no search ends early at the hole. */
static void slots_close_hole(struct batch_builder *b, size_t hole)
{
    for (size_t i = (hole + 1) & b->slots_mask; b->slots[i].place; i = (i + 1) & b->slots_mask) {
        size_t home = b->slots[i].tag & b->slots_mask;

        if (((i - home) & b->slots_mask) < ((i - hole) & b->slots_mask))
            continue;
        b->slots[hole] = b->slots[i];
        hole = i;
    }
    b->slots[hole] = (struct name_slot){0};
}

/* The series have moved, and some have gone; moved: as in batch_seal(). In place: a table of another size
 * would have to be filled again, in memory that the kernel has to clear. */
static void slots_move(struct batch_builder *b, const uint32_t *moved)
{
    for (size_t i = 0; i <= b->slots_mask; i++) {
        struct name_slot *slot = &b->slots[i];

        if (!slot->place)
            continue;
        if (moved[slot->place - 1] == SERIES_GONE)
            slot->place = SLOT_IS_GONE;
        else
            slot->place = moved[slot->place - 1] + 1;
    }
    for (size_t i = 0; i <= b->slots_mask; i++)
        while (b->slots[i].place == SLOT_IS_GONE)
            slots_close_hole(b, i);
}

/* After a batch, in which so many series were fresh: next time as many may be. moved: as in batch_seal(). */
static void slots_keep(struct batch_builder *b, size_t fresh, const uint32_t *moved)
{
    size_t n = series_count(b->last) + fresh;

    if (!b->slots_used)
        free(TAKE_PTR(b->slots));
    if (b->slots && moved)
        slots_move(b, moved);
    if (b->slots && b->slots_mask >= SLOTS_MIN && b->slots_mask / SLOTS_SPARSE > n)
        slots_resize(b, n);
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
    slots_keep(b, b->fresh->n, moved);
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

/* The size of the next text for fresh series: small for few, and then as much again. Where many are new,
 * which ends in one packed text anyway, all others go into one that is as large as the last set's, and so as
 * a spare block (spare.h). */
static size_t fresh_text_bytes(const struct batch_builder *b)
{
    size_t all = size_max(b->answer_bytes, b->last->texts_bytes), until_now = b->fresh->texts_bytes;
    size_t next = size_max(until_now, FIRST_FRESH_BYTES);

    if (series_count(b->last) == 0 || until_now > all / FRESH_PART)
        return size_max(next, all);
    return next;
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
    ret->p = o = series_set_room(b->fresh, room, fresh_text_bytes(b));
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
    return spellings_match(&b->spellings, text);
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
