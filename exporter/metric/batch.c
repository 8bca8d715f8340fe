/* Turns the results of a round into a batch.
 *
 * Most rounds return the series of the previous round. Each result is looked up in the last set, by its
 * spelling and then by its name; batch_seal() reuses that set if no series came or went. */
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/map.h"
#include "exporter/base/memory.h"
#include "exporter/base/text.h"
#include "exporter/metric/series.h"
#include "exporter/num/num.h"

#include <errno.h>

struct series_slot {
    uint32_t series; /* index + 1; 0: free */
    uint32_t tag;    /* upper half of the hash: most mismatches end here without comparing names */
};

/* Where a series' record is in the text. A record is the name followed by its labels, each a varint `length
 * in the name << 1 | escaped`; for an escaped value a varint length and the unescaped value follow. */
struct series_place {
    uint32_t name, labels;
};

struct series_set {
    unsigned refs; /* atomic */
    size_t n, names_bytes;
    char *text;                 /* the records, back to back */
    struct series_place *place; /* n + 1 of them: the last one's name is the end of the text */
    struct series_slot *slots;
    size_t mask;
};

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

enum { PIECES = DS_LABELS - 2 }; /* labels whose values come from results */

/* A series that the last set does not have. */
struct fresh {
    uint64_t hash;
    size_t at, n, name_n; /* its record in fresh_text */
    double value;
    uint32_t result;
    uint32_t id;  /* order of arrival: its place until the batch is sealed is last_count + id */
    uint32_t cut; /* 1-based index in cuts; 0: no label was truncated */
};

struct batch_builder {
    char *cluster_name, *score_name;
    size_t max_series;
    struct buf constants;
    /* The text before the i-th value of a result and, last, after all of them: slices of constants. */
    struct str piece[PIECES + 1];
    enum ds_label label[PIECES];

    struct series_set *last;    /* of the previous batch */
    struct spellings spellings; /* of last's series */
    size_t label_max;

    /* While a batch is being built. */
    struct buf name;
    double *values;    /* by series of last */
    uint32_t *results; /* index of the result that gave each value */
    uint8_t *seen;
    size_t n_seen, n_results, duplicates;
    struct buf fresh_text;
    struct fresh *fresh;
    size_t n_fresh, fresh_cap;
    uint32_t *fresh_slots;
    size_t fresh_mask;
    struct cut_labels *cuts; /* their series is a place */
    size_t n_cuts, cuts_cap, merged_by_cut;
    uint32_t *known_cut; /* like fresh.cut, by series of last; NULL before the first */
};

/* The series of the previous batch. */
static size_t batch_last_count(const struct batch_builder *b)
{
    return b->last ? series_count(b->last) : 0;
}

/* ---- Spellings ---- */

/* The length of the expected spelling if text starts with it, else 0. */
static size_t spellings_match(const struct spellings *s, struct str text)
{
    const struct spelling *next;

    if (s->next == s->n_was)
        return 0;
    next = &s->was[s->next];
    return next->bytes <= text.n && hash_bytes((struct str){text.p, next->bytes}) == next->hash ? next->bytes
                                                                                                : 0;
}

static void spellings_append(struct spellings *s, const struct spelling *one)
{
    if (UNLIKELY(s->n_now == s->cap_now)) {
        s->cap_now = size_max(size_max(64, s->n_was), s->cap_now * 2);
        s->now = xreallocarray(s->now, s->cap_now, sizeof(*s->now));
    }
    s->now[s->n_now++] = *one;
}

static void spellings_take(struct spellings *s, size_t *ret)
{
    const struct spelling *one = &s->was[s->next++];

    *ret = one->place;
    spellings_append(s, one);
}

static void spellings_note(struct spellings *s, struct str text, size_t place)
{
    struct spelling one = {.bytes = (uint32_t)text.n, .place = (uint32_t)place};

    if (text.n == 0 || text.n > UINT32_MAX)
        return;
    one.hash = hash_bytes(text);
    spellings_append(s, &one);
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
    free(s->now);
    free(s->index);
    s->now = NULL;
    s->index = NULL;
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

/* Immutable sets of series and the batches that hold them. */

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

/* An empty set with room for n records of text_bytes in total. -ENOMEM, also for a text of 4 GiB or more. */
static int series_set_new(struct series_set **ret, size_t n, size_t text_bytes)
{
    CLEANUP(cleanup_series_set_unref) struct series_set *s = xcalloc(1, sizeof(*s));
    size_t slots = 8;

    if (text_bytes > UINT32_MAX)
        return -ENOMEM;
    s->refs = 1;
    while (slots < n + n / 2)
        slots *= 2;
    s->mask = slots - 1;
    s->text = xmalloc(size_max(text_bytes, 1));
    s->place = xcalloc(n + 1, sizeof(*s->place));
    s->slots = xcalloc(slots, sizeof(*s->slots));
    huge_pages(s->text, text_bytes);
    *ret = TAKE_PTR(s);
    return 0;
}

/* Appends a record whose name is greater than all names before it, within the room reserved. */
static void series_set_append(struct series_set *s, struct str record, size_t name_n, uint64_t hash)
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

/* The record of series i. */
static struct str series_record(const struct series_set *s, size_t i)
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

/* An upper bound for the bytes of series_put_labels(). */
static size_t series_labels_room(const struct str values[DS_LABELS])
{
    size_t room = 0;

    for (size_t i = 0; i < DS_LABELS; i++)
        room += 2 * VARINT_MAX + values[i].n;
    return room;
}

/* Writes the labels part of a record; `escapes` as in struct batch_labels. Returns its end. */
static char *series_put_labels(char *to, const struct str values[DS_LABELS], unsigned escapes)
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

/* Label values that were truncated: results that became one series by that, and what tells them apart. */

static const uint32_t not_cut[DS_LABELS];

/* Keeps the hashes of the result that gave the series its value. */
static void cut_append(struct batch_builder *b, size_t place, uint32_t *slot)
{
    if (b->n_cuts == b->cuts_cap) {
        b->cuts_cap = size_max(16, b->cuts_cap * 2);
        b->cuts = xreallocarray(b->cuts, b->cuts_cap, sizeof(*b->cuts));
    }
    b->cuts[b->n_cuts] = (struct cut_labels){.series = (uint32_t)place};
    *slot = (uint32_t)++b->n_cuts;
}

/* Notes the truncated labels of the result just added at a place; uncut: as in batch_labels. */
static void batch_note_cut(struct batch_builder *b, size_t place, bool repeated, const uint32_t *uncut)
{
    size_t known = batch_last_count(b);
    uint32_t *slot;

    if (!b->known_cut)
        b->known_cut = xcalloc(size_max(known, 1), sizeof(*b->known_cut));
    slot = place < known ? &b->known_cut[place] : &b->fresh[place - known].cut;
    if (!uncut)
        uncut = not_cut;
    if (repeated && memcmp(*slot ? b->cuts[*slot - 1].uncut : not_cut, uncut, sizeof(not_cut)) != 0)
        b->merged_by_cut++;
    if (!*slot && uncut != not_cut)
        cut_append(b, place, slot);
    if (*slot)
        memcpy(b->cuts[*slot - 1].uncut, uncut, sizeof(not_cut));
}

static int compare_series(const void *x, const void *y)
{
    const struct cut_labels *a = x, *b = y;

    return a->series < b->series ? -1 : a->series > b->series;
}

/* Moves them into the batch. moved: as for merge_series(); NULL: each place is that of its series. */
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

static int compare_fresh_names(const void *x, const void *y, void *text)
{
    const struct fresh *a = x, *b = y;

    return str_cmp((struct str){(const char *)text + a->at, a->name_n},
                   (struct str){(const char *)text + b->at, b->name_n});
}

static size_t kept_bytes(const struct batch_builder *b)
{
    size_t bytes = 0;

    for (size_t i = 0; i < batch_last_count(b); i++)
        if (b->seen[i])
            bytes += series_record(b->last, i).n;
    return bytes;
}

/* Merges the series of the last set that were seen again, which are in order, with the fresh ones, which
 * it sorts, into a new set with its values and order. moved[] maps the place of each until now to its
 * place in the new set. */
static int merge_series(struct batch_builder *b, struct batch *batch, uint32_t *moved)
{
    size_t n = b->n_seen + b->n_fresh, old_n = batch_last_count(b);
    CLEANUP(cleanup_series_set_unref) struct series_set *set = NULL;
    CLEANUP(cleanup_free) double *values = xcalloc(size_max(n, 1), sizeof(*values));
    CLEANUP(cleanup_free) uint32_t *order = xcalloc(size_max(n, 1), sizeof(*order));
    size_t i = 0, k = 0;
    int r;

    r = series_set_new(&set, n, kept_bytes(b) + b->fresh_text.n);
    if (r < 0)
        return r;
    if (b->n_fresh)
        qsort_r(b->fresh, b->n_fresh, sizeof(*b->fresh), compare_fresh_names, b->fresh_text.p);
    while (set->n < n) {
        const struct fresh *f = k < b->n_fresh ? &b->fresh[k] : NULL;
        struct str record = f ? (struct str){b->fresh_text.p + f->at, f->n} : (struct str){NULL, 0};

        while (i < old_n && !b->seen[i])
            i++;
        if (!f || (i < old_n && str_cmp(series_name(b->last, i), (struct str){record.p, f->name_n}) < 0)) {
            struct str name = series_name(b->last, i);

            moved[i] = (uint32_t)set->n;
            values[set->n] = b->values[i];
            order[set->n] = b->results[i];
            series_set_append(set, series_record(b->last, i++), name.n, hash_bytes(name));
        } else {
            moved[old_n + f->id] = (uint32_t)set->n;
            values[set->n] = f->value;
            order[set->n] = f->result;
            series_set_append(set, record, f->name_n, f->hash);
            k++;
        }
    }
    batch->set = TAKE_PTR(set);
    batch->values = TAKE_PTR(values);
    batch->order = TAKE_PTR(order);
    return 0;
}

static struct batch *batch_new(const struct batch_builder *b, unix_ms at)
{
    struct batch *batch = xcalloc(1, sizeof(*batch));

    batch->refs = 1;
    batch->at = at;
    batch->score_name = str_dup(str_of(b->score_name));
    return batch;
}

static int seal_new_set(struct batch_builder *b, struct batch *batch)
{
    CLEANUP(cleanup_free) uint32_t *moved = xcalloc(batch_last_count(b) + b->n_fresh + 1, sizeof(*moved));
    int r = merge_series(b, batch, moved);

    if (r < 0)
        return r;
    (void)series_set_unref(b->last);
    b->last = series_set_ref(batch->set);
    spellings_keep(&b->spellings, moved);
    batch_seal_cuts(b, moved, batch);
    return 0;
}

int batch_seal(struct batch_builder *b, unix_ms at, struct batch **ret, size_t *ret_duplicates)
{
    CLEANUP(cleanup_batch_unref) struct batch *batch = batch_new(b, at);
    int r;

    if (b->last && b->n_fresh == 0 && b->n_seen == series_count(b->last)) {
        batch->set = series_set_ref(b->last);
        batch->values = TAKE_PTR(b->values);
        batch->order = TAKE_PTR(b->results);
        spellings_keep(&b->spellings, NULL);
        batch_seal_cuts(b, NULL, batch);
    } else {
        r = seal_new_set(b, batch);
        if (r < 0)
            return r;
    }
    if (ret_duplicates)
        *ret_duplicates = b->duplicates;
    batch_abandon(b);
    *ret = TAKE_PTR(batch);
    return 0;
}

/* Renders the constant parts of a name once: rendering a name is then only copying. */
static int make_pieces(struct batch_builder *b, const struct batch_options *o)
{
    size_t start[PIECES + 2], k = 0;
    int r = buf_puts(&b->constants, SCORE_METRIC "{");

    start[0] = 0;
    for (size_t i = 0; r == 0 && i < DS_LABELS; i++) {
        r = buf_printf(&b->constants, "%s%s=\"", i ? "\"," : "", ds_label_names[i].p);
        if (r == 0 && i == DS_CLUSTER) {
            r = buf_put_label_value(&b->constants, str_of(o->cluster_name));
        } else if (r == 0 && i == DS_SCORE_NAME) {
            r = buf_put_label_value(&b->constants, str_of(o->score_name));
        } else {
            b->label[k++] = (enum ds_label)i;
            start[k] = b->constants.n;
        }
    }
    if (r == 0)
        r = buf_puts(&b->constants, "\"}");
    if (r < 0)
        return r;
    start[k + 1] = b->constants.n;
    for (size_t i = 0; i <= k; i++)
        b->piece[i] = (struct str){b->constants.p + start[i], start[i + 1] - start[i]};
    return 0;
}

int batch_builder_new(struct batch_builder **ret, const struct batch_options *o)
{
    CLEANUP(cleanup_batch_builder_free) struct batch_builder *b = xcalloc(1, sizeof(*b));
    int r;

    buf_init(&b->constants, 64u << 20); /* a configuration is smaller */
    buf_init(&b->name, 64u << 20);
    buf_init(&b->fresh_text, UINT32_MAX);
    b->max_series = o->max_series;
    b->cluster_name = str_dup(str_of(o->cluster_name));
    b->score_name = str_dup(str_of(o->score_name));
    r = make_pieces(b, o);
    if (r < 0)
        return r;
    *ret = TAKE_PTR(b);
    return 0;
}

void batch_abandon(struct batch_builder *b)
{
    free(b->values);
    free(b->results);
    free(b->seen);
    free(b->fresh);
    free(b->fresh_slots);
    free(b->cuts);
    free(b->known_cut);
    buf_done(&b->fresh_text);
    b->values = NULL;
    b->results = NULL;
    b->seen = NULL;
    b->fresh = NULL;
    b->fresh_slots = NULL;
    b->cuts = NULL;
    b->known_cut = NULL;
    b->n_cuts = b->cuts_cap = b->merged_by_cut = 0;
    b->n_fresh = b->fresh_cap = b->fresh_mask = 0;
    b->n_seen = b->n_results = b->duplicates = 0;
    spellings_drop(&b->spellings);
}

struct batch_builder *batch_builder_free(struct batch_builder *b)
{
    if (!b)
        return NULL;
    batch_abandon(b);
    (void)series_set_unref(b->last);
    buf_done(&b->constants);
    buf_done(&b->name);
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

void batch_builder_set_label_max(struct batch_builder *b, size_t label_max)
{
    if (b->label_max != label_max)
        spellings_done(&b->spellings);
    b->label_max = label_max;
}

void batch_begin(struct batch_builder *b)
{
    size_t n = batch_last_count(b);

    batch_abandon(b);
    b->values = xcalloc(size_max(n, 1), sizeof(*b->values));
    b->results = xcalloc(size_max(n, 1), sizeof(*b->results));
    b->seen = xcalloc(size_max(n, 1), 1);
}

static int render_name(struct batch_builder *b, const struct batch_labels *l)
{
    size_t room = b->constants.n;
    char *to, *o;
    int r;

    for (size_t i = 0; i < PIECES; i++)
        room += l->value[b->label[i]].n * 2;
    b->name.n = 0;
    r = buf_room(&b->name, room, &to);
    if (r < 0)
        return r;
    o = to;
    for (size_t i = 0; i < PIECES; i++) {
        struct str v = l->value[b->label[i]];
        o = mempcpy(o, b->piece[i].p, b->piece[i].n);
        if (v.n)
            o = l->escapes & (1u << b->label[i]) ? escape_label_value(o, v) : mempcpy(o, v.p, v.n);
    }
    o = mempcpy(o, b->piece[PIECES].p, b->piece[PIECES].n);
    b->name.n = (size_t)(o - to);
    return 0;
}

static void fresh_grow(struct batch_builder *b)
{
    b->fresh_cap = size_max(64, b->fresh_cap * 2);
    b->fresh = xreallocarray(b->fresh, b->fresh_cap, sizeof(*b->fresh));
    free(b->fresh_slots);
    b->fresh_slots = xcalloc(b->fresh_cap * 2, sizeof(*b->fresh_slots));
    b->fresh_mask = b->fresh_cap * 2 - 1;
    for (size_t i = 0; i < b->n_fresh; i++) {
        size_t at = b->fresh[i].hash & b->fresh_mask;

        while (b->fresh_slots[at])
            at = (at + 1) & b->fresh_mask;
        b->fresh_slots[at] = (uint32_t)i + 1;
    }
}

/* Appends the record of the name just rendered to fresh_text. */
static int put_record(struct batch_builder *b, const struct batch_labels *labels)
{
    unsigned own = 1u << DS_CLUSTER | 1u << DS_SCORE_NAME;
    struct str name = buf_str(&b->name), values[DS_LABELS];
    char *to, *end;
    int r;

    memcpy(values, labels->value, sizeof(values));
    values[DS_CLUSTER] = str_of(b->cluster_name);
    values[DS_SCORE_NAME] = str_of(b->score_name);
    r = buf_room(&b->fresh_text, name.n + series_labels_room(values), &to);
    if (r < 0)
        return r;
    end = series_put_labels(mempcpy(to, name.p, name.n), values, labels->escapes | own);
    b->fresh_text.n += (size_t)(end - to);
    return 0;
}

/* The fresh series with the name just rendered, or the free slot for it. */
static uint32_t *find_fresh(struct batch_builder *b, uint64_t hash)
{
    size_t at = hash & b->fresh_mask;

    for (; b->fresh_slots[at]; at = (at + 1) & b->fresh_mask) {
        const struct fresh *f = &b->fresh[b->fresh_slots[at] - 1];

        if (f->hash == hash && str_eq((struct str){b->fresh_text.p + f->at, f->name_n}, buf_str(&b->name)))
            break;
    }
    return &b->fresh_slots[at];
}

/* *ret is the place of the series until the batch is sealed. */
static int add_fresh(struct batch_builder *b, const struct batch_labels *labels, uint64_t hash, double value,
                     size_t *ret)
{
    size_t at = b->fresh_text.n;
    uint32_t *slot;
    int r = 0;

    if (b->n_fresh == b->fresh_cap)
        fresh_grow(b);
    slot = find_fresh(b, hash);
    if (*slot) {
        struct fresh *f = &b->fresh[*slot - 1];

        f->value = value;
        f->result = (uint32_t)b->n_results;
        b->duplicates++;
        *ret = batch_last_count(b) + f->id;
        return 0;
    }
    if (b->n_seen + b->n_fresh >= b->max_series)
        return -ENOSPC;
    r = put_record(b, labels);
    if (r < 0)
        return r;
    *ret = batch_last_count(b) + b->n_fresh;
    b->fresh[b->n_fresh] = (struct fresh){
        .hash = hash,
        .at = at,
        .n = b->fresh_text.n - at,
        .name_n = b->name.n,
        .value = value,
        .result = (uint32_t)b->n_results,
        .id = (uint32_t)b->n_fresh,
    };
    *slot = (uint32_t)++b->n_fresh;
    return 0;
}

static int add_known(struct batch_builder *b, size_t place, double value)
{
    if (b->seen[place]) {
        b->duplicates++;
    } else {
        if (b->n_seen + b->n_fresh >= b->max_series)
            return -ENOSPC;
        b->seen[place] = 1;
        b->n_seen++;
    }
    b->values[place] = value;
    b->results[place] = (uint32_t)b->n_results;
    return 0;
}

/* Adds the name just rendered; *ret is its place. */
static int add_name(struct batch_builder *b, const struct batch_labels *labels, double value, size_t *ret)
{
    uint64_t hash = hash_bytes(buf_str(&b->name));
    ssize_t place = b->last ? series_set_lookup(b->last, buf_str(&b->name), hash) : -1;
    int r;

    if (place < 0)
        return add_fresh(b, labels, hash, value, ret);
    *ret = (size_t)place;
    r = add_known(b, *ret, value);
    if (r == 0)
        spellings_follow(&b->spellings, *ret, series_count(b->last));
    return r;
}

int batch_add(struct batch_builder *b, const struct batch_labels *labels, double value)
{
    size_t place, duplicates = b->duplicates;
    int r = render_name(b, labels) ?: add_name(b, labels, value, &place);

    if (r == 0 && (labels->uncut || b->n_cuts))
        batch_note_cut(b, place, b->duplicates > duplicates, labels->uncut);
    if (r == 0)
        spellings_note(&b->spellings, labels->spelling, place);
    if (r == 0)
        b->n_results++;
    return r == -EFBIG ? -ENOMEM : r;
}

size_t batch_spelled(const struct batch_builder *b, struct str text)
{
    return spellings_match(&b->spellings, text);
}

int batch_add_spelled(struct batch_builder *b, double value)
{
    size_t place, duplicates = b->duplicates;
    int r;

    spellings_take(&b->spellings, &place);
    r = add_known(b, place, value);
    if (r == 0 && b->n_cuts)
        batch_note_cut(b, place, b->duplicates > duplicates, NULL);
    if (r == 0)
        b->n_results++;
    return r;
}
