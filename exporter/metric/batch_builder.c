/* Turns the results of a round into a batch.
 *
 * Most rounds return the series of the previous round. Each result is looked up in the last set, by its
 * spelling and then by its name; batch_seal() reuses that set if no series came or went. */
#include "exporter/metric/batch_builder.h"

#include "exporter/base/buf.h"
#include "exporter/base/escape.h"
#include "exporter/base/hash.h"
#include "exporter/metric/series.h"

#include <errno.h>

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
    CLEANUP(cleanup_batch_builder_free) struct batch_builder *b = calloc(1, sizeof(*b));
    int r;

    if (!b)
        return -ENOMEM;
    buf_init(&b->constants, 1u << 20);
    buf_init(&b->name, 64u << 20);
    buf_init(&b->fresh_text, UINT32_MAX);
    b->max_series = o->max_series;
    b->cluster_name = str_dup(str_of(o->cluster_name));
    b->score_name = str_dup(str_of(o->score_name));
    if (!b->cluster_name || !b->score_name)
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

int batch_begin(struct batch_builder *b)
{
    size_t n = batch_last_count(b);

    batch_abandon(b);
    b->values = calloc(size_max(n, 1), sizeof(*b->values));
    b->results = calloc(size_max(n, 1), sizeof(*b->results));
    b->seen = calloc(size_max(n, 1), 1);
    return b->values && b->results && b->seen ? 0 : -ENOMEM;
}

static inline char *append(char *o, struct str s)
{
    memcpy(o, s.p, s.n);
    return o + s.n;
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
            o = l->escapes & (1u << b->label[i]) ? escape_label_value(o, v) : append(o, v);
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
    int r = b->n_fresh == b->fresh_cap ? fresh_grow(b) : 0;

    if (r < 0)
        return r;
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
    return r == 0 ? spellings_follow(&b->spellings, *ret, series_count(b->last)) : r;
}

int batch_add(struct batch_builder *b, const struct batch_labels *labels, double value)
{
    size_t place, duplicates = b->duplicates;
    int r = render_name(b, labels) ?: add_name(b, labels, value, &place);

    if (r == 0 && (labels->uncut || b->n_cuts))
        r = batch_note_cut(b, place, b->duplicates > duplicates, labels->uncut);
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
    size_t place, duplicates = b->duplicates;
    int r = spellings_take(&b->spellings, &place) ?: add_known(b, place, value);

    if (r == 0 && b->n_cuts)
        r = batch_note_cut(b, place, b->duplicates > duplicates, NULL);
    if (r == 0)
        b->n_results++;
    return r;
}
