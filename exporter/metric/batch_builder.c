/* Turns a round's results into a batch.
 *
 * Most rounds bring the series of the round before. So each result is looked up in the last set first, by its spelling,
 * then by its name, and the set is used again when nothing came and nothing went; only otherwise is a new one made,
 * by merging what stayed (already in order) with what is new (sorted). */
#include "exporter/metric/series_set.h"
#include "exporter/metric/spellings.h"

#include <errno.h>

enum { PIECES = DS_LABELS - 2 }; /* label values that results bring */

struct fresh {
    uint64_t hash;
    size_t at, n; /* in fresh_text */
    double value;
    uint32_t result;
    uint32_t id; /* as they came; until the batch is sealed their places are those after the last set's */
};

struct batch_builder {
    char *score_name;
    size_t max_series;
    struct buf constants;
    /* What stands before the i-th value that a result brings, and (last) after all of them: slices of constants. */
    struct str piece[PIECES + 1];
    enum ds_label label[PIECES];

    struct series_set *last;    /* of the batch before */
    struct spellings spellings; /* of last's series */
    size_t label_max;

    /* While a batch is begun. */
    struct buf name;
    double *values;    /* for last's series */
    uint32_t *results; /* which result brought each value */
    uint8_t *seen;
    size_t n_seen, n_results, duplicates;
    struct buf fresh_text;
    struct fresh *fresh;
    size_t n_fresh, fresh_cap;
    uint32_t *fresh_slots;
    size_t fresh_mask;
};

static int put_escaped(struct buf *b, struct str s)
{
    char *to, *o;
    int r = buf_room(b, s.n * 2, &to);

    if (r < 0)
        return r;
    o = to;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\\' || s.p[i] == '"' || s.p[i] == '\n')
            *o++ = '\\';
        *o++ = s.p[i] == '\n' ? 'n' : s.p[i];
    }
    b->n += (size_t)(o - to);
    return 0;
}

/* Writes the parts of a name that never change once, so that a name is fifteen copies and no formatting. */
static int make_pieces(struct batch_builder *b, const struct batch_options *o)
{
    size_t start[PIECES + 2], k = 0;
    int r = buf_puts(&b->constants, SCORE_METRIC "{");

    start[0] = 0;
    for (size_t i = 0; r == 0 && i < DS_LABELS; i++) {
        r = buf_printf(&b->constants, "%s%s=\"", i ? "\"," : "", ds_label_names[i].p);
        if (r == 0 && i == DS_CLUSTER) {
            r = put_escaped(&b->constants, str_of(o->cluster_name));
        } else if (r == 0 && i == DS_SCORE_NAME) {
            r = put_escaped(&b->constants, str_of(o->score_name));
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
    CLEANUP(cleanup_batch_builder_free) struct batch_builder *b = calloc(1, sizeof(*b));
    int r;

    if (!b)
        return -ENOMEM;
    buf_init(&b->constants, 1u << 20);
    buf_init(&b->name, 64u << 20);
    buf_init(&b->fresh_text, SIZE_MAX / 2);
    b->max_series = o->max_series;
    b->score_name = str_dup(str_of(o->score_name));
    if (!b->score_name)
        return -ENOMEM;
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
    buf_done(&b->fresh_text);
    b->values = NULL;
    b->results = NULL;
    b->seen = NULL;
    b->fresh = NULL;
    b->fresh_slots = NULL;
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

static size_t last_count(const struct batch_builder *b)
{
    return b->last ? series_count(b->last) : 0;
}

int batch_begin(struct batch_builder *b)
{
    size_t n = last_count(b);

    batch_abandon(b);
    b->values = calloc(size_max(n, 1), sizeof(*b->values));
    b->results = calloc(size_max(n, 1), sizeof(*b->results));
    b->seen = calloc(size_max(n, 1), 1);
    return b->values && b->results && b->seen ? 0 : -ENOMEM;
}

/* memcpy() of a length not known beforehand costs a call; label values are short. */
static inline char *append(char *o, struct str s)
{
    memcpy(o, s.p, s.n);
    return o + s.n;
}

static char *append_escaped(char *o, struct str s)
{
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\\' || s.p[i] == '"' || s.p[i] == '\n')
            *o++ = '\\';
        *o++ = s.p[i] == '\n' ? 'n' : s.p[i];
    }
    return o;
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
        o = append(o, b->piece[i]);
        if (v.n)
            o = l->escapes & (1u << b->label[i]) ? append_escaped(o, v) : append(o, v);
    }
    o = append(o, b->piece[PIECES]);
    b->name.n = (size_t)(o - to);
    return 0;
}

static int fresh_grow(struct batch_builder *b)
{
    size_t cap = size_max(64, b->fresh_cap * 2), slots = cap * 2;
    struct fresh *fresh = realloc(b->fresh, cap * sizeof(*fresh));
    uint32_t *s;

    if (!fresh)
        return -ENOMEM;
    b->fresh = fresh;
    s = calloc(slots, sizeof(*s));
    if (!s)
        return -ENOMEM;
    for (size_t i = 0; i < b->n_fresh; i++) {
        size_t at = fresh[i].hash & (slots - 1);
        while (s[at])
            at = (at + 1) & (slots - 1);
        s[at] = (uint32_t)i + 1;
    }
    free(b->fresh_slots);
    b->fresh_slots = s;
    b->fresh_mask = slots - 1;
    b->fresh_cap = cap;
    return 0;
}

/* A name that the last set does not have. *ret is its place until the batch is sealed. */
static int add_fresh(struct batch_builder *b, uint64_t hash, double value, size_t *ret)
{
    struct str name = buf_str(&b->name);
    size_t at;
    int r;

    if (b->n_fresh == b->fresh_cap) {
        r = fresh_grow(b);
        if (r < 0)
            return r;
    }
    for (at = hash & b->fresh_mask; b->fresh_slots[at]; at = (at + 1) & b->fresh_mask) {
        struct fresh *f = &b->fresh[b->fresh_slots[at] - 1];
        if (f->hash == hash && str_eq((struct str){b->fresh_text.p + f->at, f->n}, name)) {
            f->value = value;
            f->result = (uint32_t)b->n_results;
            b->duplicates++;
            *ret = last_count(b) + f->id;
            return 0;
        }
    }
    if (b->n_seen + b->n_fresh >= b->max_series)
        return -ENOSPC;
    r = buf_put_str(&b->fresh_text, name);
    if (r < 0)
        return r == -EFBIG ? -ENOMEM : r;
    *ret = last_count(b) + b->n_fresh;
    b->fresh[b->n_fresh] = (struct fresh){
        .hash = hash,
        .at = b->fresh_text.n - name.n,
        .n = name.n,
        .value = value,
        .result = (uint32_t)b->n_results,
        .id = (uint32_t)b->n_fresh,
    };
    b->fresh_slots[at] = (uint32_t)++b->n_fresh;
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
static int add_name(struct batch_builder *b, double value, size_t *ret)
{
    struct str name = buf_str(&b->name);
    uint64_t hash = series_hash(name);
    ssize_t place = b->last ? series_set_lookup(b->last, name, hash) : -1;
    int r;

    if (place < 0)
        return add_fresh(b, hash, value, ret);
    *ret = (size_t)place;
    r = add_known(b, *ret, value);
    return r == 0 ? spellings_follow(&b->spellings, *ret, series_count(b->last)) : r;
}

int batch_add(struct batch_builder *b, const struct batch_labels *labels, double value)
{
    size_t place;
    int r = render_name(b, labels);

    if (r == 0)
        r = add_name(b, value, &place);
    if (r == 0)
        r = spellings_note(&b->spellings, labels->spelling, place);
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
    size_t place;
    int r = spellings_take(&b->spellings, &place);

    if (r == 0)
        r = add_known(b, place, value);
    if (r == 0)
        b->n_results++;
    return r;
}

static int by_name(const void *x, const void *y, void *text)
{
    const struct fresh *a = x, *b = y;

    return str_cmp((struct str){(const char *)text + a->at, a->n},
                   (struct str){(const char *)text + b->at, b->n});
}

static size_t kept_bytes(const struct batch_builder *b)
{
    size_t bytes = 0;

    for (size_t i = 0; i < last_count(b); i++)
        if (b->seen[i])
            bytes += series_name(b->last, i).n;
    return bytes;
}

/* Makes the batch's set, values and order from the series of the last set that were seen again and the fresh ones. moved[]
 * gets, by the place that each had until now, the place that it has there. */
static int merge(struct batch_builder *b, struct batch *batch, uint32_t *moved)
{
    size_t n = b->n_seen + b->n_fresh, old_n = last_count(b);
    CLEANUP(cleanup_series_set_unref) struct series_set *set = NULL;
    CLEANUP(cleanup_free) double *values = calloc(size_max(n, 1), sizeof(*values));
    CLEANUP(cleanup_free) uint32_t *order = calloc(size_max(n, 1), sizeof(*order));
    size_t i = 0, k = 0;
    int r;

    if (!values || !order)
        return -ENOMEM;
    r = series_set_new(&set, n, kept_bytes(b) + b->fresh_text.n);
    if (r < 0)
        return r;
    if (b->n_fresh)
        qsort_r(b->fresh, b->n_fresh, sizeof(*b->fresh), by_name, b->fresh_text.p);
    while (set->n < n) {
        const struct fresh *f = k < b->n_fresh ? &b->fresh[k] : NULL;
        struct str fresh_name = f ? (struct str){b->fresh_text.p + f->at, f->n} : (struct str){NULL, 0};
        while (i < old_n && !b->seen[i])
            i++;
        if (!f || (i < old_n && str_cmp(series_name(b->last, i), fresh_name) < 0)) {
            struct str name = series_name(b->last, i);
            moved[i] = (uint32_t)set->n;
            values[set->n] = b->values[i];
            order[set->n] = b->results[i++];
            series_set_append(set, name, series_hash(name));
        } else {
            moved[old_n + f->id] = (uint32_t)set->n;
            values[set->n] = f->value;
            order[set->n] = f->result;
            series_set_append(set, fresh_name, f->hash);
            k++;
        }
    }
    batch->set = TAKE_PTR(set);
    batch->values = TAKE_PTR(values);
    batch->order = TAKE_PTR(order);
    return 0;
}

static int new_batch(struct batch **ret, const struct batch_builder *b, unix_ms at)
{
    struct batch *batch = calloc(1, sizeof(*batch));

    if (!batch)
        return -ENOMEM;
    batch->refs = 1;
    batch->at = at;
    batch->score_name = str_dup(str_of(b->score_name));
    *ret = batch;
    return batch->score_name ? 0 : -ENOMEM;
}

/* With other series than the last batch had. */
static int seal_new_set(struct batch_builder *b, struct batch *batch)
{
    CLEANUP(cleanup_free) uint32_t *moved = calloc(last_count(b) + b->n_fresh + 1, sizeof(*moved));
    int r = moved ? merge(b, batch, moved) : -ENOMEM;

    if (r < 0)
        return r;
    (void)series_set_unref(b->last);
    b->last = series_set_ref(batch->set);
    spellings_keep(&b->spellings, moved);
    return 0;
}

int batch_seal(struct batch_builder *b, unix_ms at, struct batch **ret, size_t *ret_duplicates)
{
    CLEANUP(cleanup_batch_unref) struct batch *batch = NULL;
    int r = new_batch(&batch, b, at);

    if (r < 0)
        return r;
    if (b->last && b->n_fresh == 0 && b->n_seen == series_count(b->last)) {
        batch->set = series_set_ref(b->last);
        batch->values = TAKE_PTR(b->values);
        batch->order = TAKE_PTR(b->results);
        spellings_keep(&b->spellings, NULL);
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
