/* Makes the items of a batch, or of a fallback. Owns nothing but what it returns. Pure; on the loop, and in
 * check-scorer. The same batch always has the same items in the same order. */
#include "controller/placement/items.h"

#include "exporter/base/alloc.h"
#include "exporter/base/arena.h"
#include "exporter/base/escape.h"
#include "exporter/base/hash.h"
#include "exporter/base/strset.h"
#include "exporter/base/text.h"
#include "exporter/metric/batch.h"
#include "exporter/num/num.h"
#include "exporter/score/format.h"

#include <ctype.h>
#include <math.h>

/* ---- Names ---- */

size_t object_name(struct str score_name, char out[OBJECT_NAME_MAX + 1])
{
    size_t n = 0;

    for (size_t i = 0; i < score_name.n && n < OBJECT_NAME_MAX; i++) {
        char c = (char)tolower((unsigned char)score_name.p[i]);

        if (isalnum((unsigned char)c)) {
            out[n++] = c;
        } else if (n > 0 && isalnum((unsigned char)out[n - 1])) {
            out[n++] = c == '.' ? '.' : '-';
        } else if (n > 0 && c == '.') { /* "a-.b" is invalid, "a.b" is not */
            out[n - 1] = '.';
        }
    }
    while (n > 0 && !isalnum((unsigned char)out[n - 1]))
        n--;
    if (n == 0) {
        memcpy(out, "score", 5);
        n = 5;
    }
    out[n] = '\0';
    return n;
}

/* ---- Formats ---- */

/* Takes the first part of a format: a placeholder for *ret_label, or a text with DS_LABELS. */
static bool format_take(struct str *rest, struct str *ret_text, enum ds_label *ret_label)
{
    enum ds_label next;
    size_t n;

    *ret_label = DS_LABELS;
    if (rest->n == 0)
        return false;
    n = format_placeholder_at(*rest, ret_label);
    if (n == 0)
        do
            n++;
        while (n < rest->n && !format_placeholder_at((struct str){rest->p + n, rest->n - n}, &next));
    *ret_text = (struct str){rest->p, n};
    *rest = (struct str){rest->p + n, rest->n - n};
    return true;
}

void item_name_put(struct str format, const struct str labels[DS_LABELS], struct buf *into)
{
    enum ds_label label;
    struct str text;

    while (format_take(&format, &text, &label))
        buf_put_str(into, label < DS_LABELS ? labels[label] : text);
}

/* Bit 1 << i for each label i that the format has. */
static unsigned format_labels(struct str format)
{
    enum ds_label label;
    unsigned labels = 0;
    struct str text;

    while (format_take(&format, &text, &label))
        labels |= label < DS_LABELS ? 1u << label : 0;
    return labels;
}

/* ---- Items ---- */

enum { NAME_MAX_BYTES = 1 << 20, NAMES_CHUNK = 16 << 10 };

struct named_item {
    struct str name;
    size_t format;
    double value; /* last, sum, max or min so far */
    size_t results;
    uint64_t uncut; /* of the last result */
    uint32_t order; /* for AGGREGATE_LAST: the order of the result in `value` */
};

struct maker {
    const struct batch *batch;
    const struct summary *summary;
    size_t format;   /* the one whose items are being made */
    unsigned labels; /* those that it has */
    struct arena names;
    struct strset places; /* of names in the list */
    struct named_item *list;
    size_t cut; /* the next of batch->cuts */
    struct items *items;
};

/* The item of this name, found or added. */
static struct named_item *maker_item(struct maker *m, struct str name)
{
    size_t place = strset_find(&m->places, name);

    if (place == SIZE_MAX) {
        name.p = memcpy(arena_alloc(&m->names, name.n), name.p, name.n);
        place = strset_add(&m->places, name);
        m->list[place] = (struct named_item){.name = name, .format = m->format};
    }
    return &m->list[place];
}

static void item_aggregate(struct named_item *i, enum score_aggregation how, double v, uint32_t order)
{
    bool first = i->results++ == 0;

    if (how == AGGREGATE_LAST && !first && order < i->order)
        return;
    i->value = first || how == AGGREGATE_LAST ? v
               : how == AGGREGATE_MAX         ? fmax(i->value, v)
               : how == AGGREGATE_MIN         ? fmin(i->value, v)
                                              : i->value + v;
    i->order = order;
}

/* What tells series apart whose names became one when labels were truncated; 0 if none of the name was. */
static uint64_t maker_uncut(struct maker *m, size_t series)
{
    const struct cut_labels *cut;
    uint64_t h = 0;

    if (m->cut == m->batch->n_cuts || m->batch->cuts[m->cut].series != series)
        return 0;
    cut = &m->batch->cuts[m->cut++];
    for (unsigned i = 0; i < DS_LABELS; i++)
        if (m->labels & (1u << i) && cut->uncut[i])
            h = hash_chain_u64(hash_chain_u64(h, i), cut->uncut[i]);
    return h;
}

static void maker_add_series(struct maker *m, size_t i, struct buf *name)
{
    const struct summary_item *how = &m->summary->items[m->format];
    double v = m->batch->values[i];
    struct str labels[DS_LABELS];
    struct named_item *item;
    struct item_overlap *overlap = &m->items->overlap;
    uint64_t uncut = maker_uncut(m, i);

    if (!isfinite(v)) {
        m->items->left_out += m->format == 0;
        return;
    }
    series_labels(m->batch->set, i, labels);
    buf_clear(name);
    item_name_put(str_of(how->format), labels, name);
    if (buf_failed(name) < 0 || name->n == 0) {
        m->items->unnamed++;
        return;
    }
    item = maker_item(m, buf_str(name));
    if (item->format != m->format) {
        if (overlap->results++ == 0) {
            overlap->earlier = item->format;
            overlap->later = m->format;
            text_line(overlap->name, sizeof(overlap->name), item->name);
        }
        return;
    }
    m->items->formats[m->format].results++;
    m->items->merged += item->results > 0;
    m->items->merged_by_cut += item->results > 0 && item->uncut != uncut;
    item->uncut = uncut;
    item_aggregate(item, how->aggregation, v, m->batch->order ? m->batch->order[i] : (uint32_t)i);
}

/* The items of one format, behind those of the formats before it. */
static void maker_add_format(struct maker *m, size_t format, struct buf *name)
{
    size_t n = series_count(m->batch->set), before = m->places.n;

    m->format = format;
    m->labels = format_labels(str_of(m->summary->items[format].format));
    m->cut = 0;
    m->list = xreallocarray(m->list, before + n + 1, sizeof(*m->list));
    for (size_t i = 0; i < n; i++)
        maker_add_series(m, i, name);
    m->items->formats[format].n = m->places.n - before;
}

static int value_clamp(double v)
{
    return v < ITEM_MIN ? ITEM_MIN : v > ITEM_MAX ? ITEM_MAX : (int)v;
}

/* Floor: a cast would turn -0.5 into 0. A range with min above max scales as any other. What is adjusted
 * is the value before it is clamped. */
static int items_value(const struct summary *s, double v, const struct adjuster *by, bool *ret_clamped)
{
    if (s->has_range && v >= s->range_max && v <= s->range_max)
        v = ITEM_MAX; /* rounding must not yield 99 */
    else if (s->has_range)
        v = 200 * (v - s->range_min) / (s->range_max - s->range_min) + ITEM_MIN;
    v = floor(v);
    *ret_clamped = v < ITEM_MIN || v > ITEM_MAX;
    return value_clamp(adjust_value(by, s->score_name, v));
}

static int items_fallback_value(const struct summary *s, const struct adjuster *by)
{
    return value_clamp(adjust_value(by, s->score_name, s->fallback));
}

/* The bytes that the store's JSON adds to ours: it escapes < > & U+2028 U+2029. */
static size_t items_store_excess(struct str name)
{
    size_t more = 0;

    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        if (c == '<' || c == '>' || c == '&')
            more += 5;
        else if (c == '\xe2' && i + 2 < name.n && name.p[i + 1] == '\x80' &&
                 (name.p[i + 2] == '\xa8' || name.p[i + 2] == '\xa9'))
            more += 3;
    }
    return more;
}

static struct items items_begin(void)
{
    struct items items = {
        .json.max = ITEMS_MAX_BYTES * 2, .room = ITEMS_MAX_BYTES - 2, .values.max = ITEMS_MAX_BYTES};

    buf_putc(&items.json, '[');
    return items;
}

/* Appends one item, unless it would exceed what the store takes. Later items are omitted too then, or the
 * set would depend on the length of names. */
static void items_put(struct items *o, struct str name, int value)
{
    struct buf_mark mark = buf_mark(&o->json);
    char number[NUM_MAX];
    size_t took;

    if (o->truncated) {
        o->truncated++;
        return;
    }
    if (o->n > 0)
        buf_putc(&o->json, ',');
    buf_puts(&o->json, "{\"name\":");
    buf_put_json(&o->json, name);
    buf_puts(&o->json, ",\"value\":");
    if (value < 0)
        buf_putc(&o->json, '-');
    buf_put(&o->json, number, num_put_u64(number, (uint64_t)(value < 0 ? -value : value)));
    buf_putc(&o->json, '}');

    took = o->json.n - mark.n + items_store_excess(name);
    if (buf_failed(&o->json) < 0 || took > o->room) {
        buf_rollback(&o->json, mark);
        o->truncated++;
        return;
    }
    o->room -= took;
    o->n++;
}

/* Notes the item that was just appended, for items_are_near(). */
static void items_note(struct items *o, struct str name, int value)
{
    buf_putc(&o->values, (char)value);
    o->names = hash_chain_u64(o->names, hash_bytes(name));
}

static struct items items_end(struct items *o)
{
    buf_putc(&o->json, ']');
    buf_shrink(&o->json);
    return *o;
}

DEFINE_ORDER(items_by_name, struct named_item, str_cmp(a->name, b->name))

/* fallback: all have the value of fallbackScore. */
static struct items items_of_batch(const struct batch *b, const struct summary *s, bool fallback,
                                   const struct adjuster *by)
{
    struct items items = items_begin();
    struct maker m = {.batch = b, .summary = s, .names = {.chunk_bytes = NAMES_CHUNK}, .items = &items};
    BUF_AUTO(name, NAME_MAX_BYTES);
    const int fallback_value = items_fallback_value(s, by);

    for (size_t i = 0; i < s->n_items; i++)
        maker_add_format(&m, i, &name);
    qsort(m.list, m.places.n, sizeof(*m.list), items_by_name);
    for (size_t i = 0; i < m.places.n; i++) {
        const struct named_item *item = &m.list[i];
        bool avg = s->items[item->format].aggregation == AGGREGATE_AVG;
        double of = avg ? item->value / (double)item->results : item->value;
        bool clamped;
        int value = items_value(s, of, by, &clamped);

        value = fallback ? fallback_value : value;
        items.clamped += clamped;
        rounding_add(&items.formats[item->format].rounding, of);
        items_put(&items, item->name, value);
        if (s->score_tolerance && !items.truncated)
            items_note(&items, item->name, value);
    }
    strset_done(&m.places);
    arena_done(&m.names);
    free(m.list);
    return items_end(&items);
}

struct items items_make(const struct batch *b, const struct summary *s, const struct adjuster *by)
{
    return items_of_batch(b, s, false, by);
}

/* The items whose names are known before there is any result. */
static void items_put_known(struct items *o, const struct summary *s, const char *cluster_name, int value)
{
    const unsigned known = 1u << DS_CLUSTER | 1u << DS_SCORE_NAME;
    const struct str labels[DS_LABELS] = {
        [DS_CLUSTER] = str_of(cluster_name), [DS_SCORE_NAME] = str_of(s->score_name)};
    CLEANUP(arena_done) struct arena memory = {.chunk_bytes = NAMES_CHUNK};
    CLEANUP(strset_done) struct strset names = {0};

    for (size_t i = 0; i < s->n_items; i++) {
        struct str format = str_of(s->items[i].format), text;
        BUF_AUTO(name, NAME_MAX_BYTES);

        if (format_labels(format) & ~known)
            continue;
        item_name_put(format, labels, &name);
        if (buf_failed(&name) < 0 || name.n == 0 || strset_find(&names, buf_str(&name)) != SIZE_MAX)
            continue;
        text = str_of(arena_text(&memory, buf_str(&name)));
        (void)strset_add(&names, text);
        items_put(o, text, value);
    }
}

struct items items_fallback(const struct batch *last, const json_t *found, const struct summary *s,
                            const char *cluster_name, const struct adjuster *by)
{
    const int value = items_fallback_value(s, by);
    struct items items;
    json_t *item;
    size_t i;

    if (last) {
        items = items_of_batch(last, s, true, by);
        return (struct items){.json = items.json,
                              .n = items.n,
                              .truncated = items.truncated,
                              .values = items.values,
                              .names = items.names};
    }
    items = items_begin();
    json_array_foreach(found, i, item)
    {
        const json_t *text = json_object_get(item, "name");

        if (json_string_length(text))
            items_put(&items, (struct str){json_string_value(text), json_string_length(text)}, value);
    }
    if (items.n == 0 && json_array_size(found) == 0)
        items_put_known(&items, s, cluster_name, value);
    return items_end(&items);
}

struct items items_found(const json_t *found, const struct summary *s, const struct adjuster *by)
{
    struct items items = items_begin();
    json_t *item;
    size_t i;

    json_array_foreach(found, i, item)
    {
        const json_t *text = json_object_get(item, "name"), *value = json_object_get(item, "value");
        double adjusted = adjust_value(by, s->score_name, (double)json_integer_value(value));

        if (json_string_length(text))
            items_put(&items, (struct str){json_string_value(text), json_string_length(text)},
                      value_clamp(adjusted));
    }
    return items_end(&items);
}

bool items_are_near(const struct items *a, const struct items *b, int tolerance)
{
    if (a->names != b->names || a->values.n != b->values.n)
        return false;
    for (size_t i = 0; i < a->values.n; i++)
        if (abs((signed char)a->values.p[i] - (signed char)b->values.p[i]) > tolerance)
            return false;
    return true;
}

void items_done(struct items *i)
{
    buf_done(&i->json);
    buf_done(&i->values);
    *i = (struct items){0};
}
