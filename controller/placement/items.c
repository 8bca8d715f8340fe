/* Names are rendered into one text and looked up by open hashing, so that 20,000 results take a few
 * milliseconds. */
#include "controller/placement/items.h"

#include "exporter/base/buf.h"
#include "exporter/base/hash.h"
#include "exporter/base/json.h"
#include "exporter/num/num.h"

#include <errno.h>
#include <math.h>

/* ---- Names ---- */

static bool name_is_alnum(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

size_t object_name(struct str score_name, char out[OBJECT_NAME_MAX + 1])
{
    size_t n = 0;

    for (size_t i = 0; i < score_name.n && n < OBJECT_NAME_MAX; i++) {
        char c = score_name.p[i];

        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        if (name_is_alnum(c)) {
            out[n++] = c;
        } else if (n > 0 && name_is_alnum(out[n - 1])) {
            out[n++] = c == '.' ? '.' : '-';
        } else if (n > 0 && c == '.') { /* "a-.b" is invalid, "a.b" is not */
            out[n - 1] = '.';
        }
    }
    while (n > 0 && !name_is_alnum(out[n - 1]))
        n--;
    if (n == 0) {
        memcpy(out, "score", 5);
        n = 5;
    }
    out[n] = '\0';
    return n;
}

/* ---- Formats ---- */

static const struct {
    struct str word;
    enum ds_label label;
} placeholders[] = {
    {STR("cluster"), DS_CLUSTER},
    {STR("node"), DS_NODE},
    {STR("device"), DS_DEVICE},
    {STR("namespace"), DS_NAMESPACE},
    {STR("app"), DS_APP},
    {STR("pod"), DS_POD},
    {STR("container"), DS_CONTAINER},
    {STR("scoreName"), DS_SCORE_NAME},
    {STR("meta"), DS_META},
};

/* The length of the placeholder at the start of s, 0 for none. */
static size_t format_placeholder_at(struct str s, enum ds_label *ret)
{
    for (size_t i = 0; i < ARRAY_SIZE(placeholders); i++) {
        struct str word = placeholders[i].word;

        if (s.n >= word.n + 3 && s.p[0] == '$' && s.p[1] == '{' && s.p[word.n + 2] == '}' &&
            memcmp(s.p + 2, word.p, word.n) == 0) {
            *ret = placeholders[i].label;
            return word.n + 3;
        }
    }
    return 0;
}

static void format_add_part(struct dimension_format *f, struct str text, enum ds_label label)
{
    struct dimension_part *parts = xrealloc(f->parts, (f->n + 1) * sizeof(*parts));

    f->parts = parts;
    f->parts[f->n++] = (struct dimension_part){text, label};
    if (text.n == 0)
        f->labels |= 1u << label;
    if (text.n == 0 && label != DS_CLUSTER && label != DS_SCORE_NAME)
        f->per_series = true;
}

void dimension_format_parse(struct dimension_format *ret, struct str format)
{
    CLEANUP(dimension_format_done) struct dimension_format f = {0};
    size_t from = 0;

    for (size_t at = 0; at <= format.n;) {
        enum ds_label label = DS_LABELS;
        size_t n = format_placeholder_at((struct str){format.p + at, format.n - at}, &label);

        if (n == 0 && at < format.n) {
            at++;
            continue;
        }
        if (at > from)
            format_add_part(&f, (struct str){format.p + from, at - from}, DS_LABELS);
        if (n == 0)
            break;
        format_add_part(&f, STR(""), label);
        at += n;
        from = at;
    }
    *ret = f;
    f = (struct dimension_format){0};
}

void dimension_format_done(struct dimension_format *f)
{
    free(f->parts);
    *f = (struct dimension_format){0};
}

int dimension_format_render(const struct dimension_format *f, const struct str labels[DS_LABELS],
                            struct buf *into)
{
    int r = 0;

    for (size_t i = 0; r == 0 && i < f->n; i++) {
        const struct dimension_part *part = &f->parts[i];

        r = buf_put_str(into, part->text.n ? part->text : labels[part->label]);
    }
    return r;
}

/* ---- Items ---- */

struct item {
    size_t at, n; /* the name, in maker.names */
    uint64_t hash;
    double value; /* last, sum, max or min so far */
    size_t results;
    uint64_t uncut; /* of the last result */
    uint32_t order; /* for AGGREGATE_LAST: the order of the result in `value` */
};

struct maker {
    const struct batch *batch;
    const struct summary *summary;
    struct dimension_format format;
    struct buf names;
    struct item *list;
    size_t n;
    uint32_t *slots; /* 1-based places in list; a power of two, at least twice the series */
    size_t mask;
    size_t cut; /* the next of batch->cuts */
    struct items *items;
};

static void maker_done(struct maker *m)
{
    dimension_format_done(&m->format);
    buf_done(&m->names);
    free(m->list);
    free(m->slots);
}

static void maker_init(struct maker *m, size_t series)
{
    size_t slots = 16;

    while (slots < series * 2)
        slots *= 2;
    buf_init(&m->names, SIZE_MAX / 2);
    m->mask = slots - 1;
    m->slots = xcalloc(slots, sizeof(*m->slots));
    m->list = xcalloc(size_max(series, 1), sizeof(*m->list));
    dimension_format_parse(&m->format, str_of(m->summary->dimension_format));
}

static struct str item_name(const struct maker *m, const struct item *i)
{
    return (struct str){m->names.p + i->at, i->n};
}

/* The item named by the end of m->names, found or added. */
static struct item *maker_find_or_add(struct maker *m, size_t at)
{
    struct str name = {m->names.p + at, m->names.n - at};
    uint64_t hash = hash_bytes(name);
    size_t slot = hash & m->mask;

    for (; m->slots[slot]; slot = (slot + 1) & m->mask) {
        struct item *i = &m->list[m->slots[slot] - 1];
        if (i->hash == hash && str_eq(item_name(m, i), name)) {
            buf_truncate(&m->names, at);
            return i;
        }
    }
    m->list[m->n] = (struct item){.at = at, .n = name.n, .hash = hash};
    m->slots[slot] = (uint32_t)++m->n;
    return &m->list[m->n - 1];
}

static void item_aggregate(struct item *i, enum score_aggregation how, double v, uint32_t order)
{
    bool first = i->results++ == 0;

    switch (how) {
    case AGGREGATE_LAST:
        if (!first && order < i->order)
            return;
        i->value = v;
        break;
    case AGGREGATE_AVG:
    case AGGREGATE_SUM:
        i->value = first ? v : i->value + v;
        break;
    case AGGREGATE_MAX:
        i->value = first || v > i->value ? v : i->value;
        break;
    case AGGREGATE_MIN:
        i->value = first || v < i->value ? v : i->value;
        break;
    }
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
        if (m->format.labels & (1u << i) && cut->uncut[i])
            h = hash_chain_u64(hash_chain_u64(h, i), cut->uncut[i]);
    return h;
}

static int maker_add_series(struct maker *m, size_t i)
{
    double v = m->batch->values[i];
    size_t at = m->names.n;
    struct str labels[DS_LABELS];
    struct item *item;
    uint64_t uncut = maker_uncut(m, i);
    int r;

    if (!isfinite(v)) {
        m->items->left_out++;
        return 0;
    }
    series_labels(m->batch->set, i, labels);
    r = dimension_format_render(&m->format, labels, &m->names);
    if (r < 0)
        return -ENOMEM;
    if (m->names.n == at) {
        m->items->unnamed++;
        return 0;
    }
    item = maker_find_or_add(m, at);
    m->items->merged += item->results > 0;
    m->items->merged_by_cut += item->results > 0 && item->uncut != uncut;
    item->uncut = uncut;
    item_aggregate(item, m->summary->aggregation, v, m->batch->order ? m->batch->order[i] : (uint32_t)i);
    return 0;
}

/* Floor: a cast would turn -0.5 into 0. */
static int items_value(const struct summary *s, double v, bool *ret_clamped)
{
    if (s->has_range && v >= s->range_max && v <= s->range_max)
        v = ITEM_MAX; /* rounding must not yield 99 */
    else if (s->has_range)
        v = 200 * (v - s->range_min) / (s->range_max - s->range_min) + ITEM_MIN;
    v = floor(v);
    *ret_clamped = v < ITEM_MIN || v > ITEM_MAX;
    return v < ITEM_MIN ? ITEM_MIN : v > ITEM_MAX ? ITEM_MAX : (int)v;
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

/* Appends one item, or counts it as truncated when it exceeds *room, the bytes left in the store. */
static int items_put(struct items *o, struct str name, int value, size_t *room)
{
    size_t mark = o->json.n, took;
    char number[NUM_MAX];
    int r = buf_puts(&o->json, o->n ? ",{\"name\":" : "{\"name\":") ?: buf_put_json(&o->json, name)
                ?: buf_puts(&o->json, value < 0 ? ",\"value\":-" : ",\"value\":")
                ?: buf_put(&o->json, number, num_put_u64(number, (uint64_t)(value < 0 ? -value : value)))
                ?: buf_putc(&o->json, '}');

    if (r < 0)
        return -ENOMEM;
    took = o->json.n - mark + items_store_excess(name);
    if (took > *room) {
        buf_truncate(&o->json, mark);
        o->truncated++;
        return 0;
    }
    *room -= took;
    o->n++;
    return 0;
}

static int items_by_name(const void *a, const void *b, void *arg)
{
    return str_cmp(item_name(arg, a), item_name(arg, b));
}

static int items_put_all(struct maker *m)
{
    size_t room = ITEMS_MAX_BYTES - 2;
    int r = buf_putc(&m->items->json, '[');

    if (m->n)
        qsort_r(m->list, m->n, sizeof(*m->list), items_by_name, m);
    for (size_t i = 0; r == 0 && i < m->n; i++) {
        const struct item *item = &m->list[i];
        double v =
            m->summary->aggregation == AGGREGATE_AVG ? item->value / (double)item->results : item->value;
        bool clamped;
        int value = items_value(m->summary, v, &clamped);

        m->items->clamped += clamped;
        if (m->items->truncated) /* later items too, or the set would depend on the length of names */
            m->items->truncated++;
        else
            r = items_put(m->items, item_name(m, item), value, &room);
    }
    return r < 0 ? -ENOMEM : buf_putc(&m->items->json, ']') < 0 ? -ENOMEM : 0;
}

int items_make(struct items *ret, const struct batch *b, const struct summary *s)
{
    CLEANUP(items_done) struct items items = {.json.max = ITEMS_MAX_BYTES * 2};
    CLEANUP(maker_done) struct maker m = {.batch = b, .summary = s, .items = &items};
    size_t n = series_count(b->set);
    int r = 0;

    maker_init(&m, n);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = maker_add_series(&m, i);
    if (r == 0)
        r = items_put_all(&m);
    if (r < 0)
        return r;
    buf_shrink(&items.json);
    *ret = items;
    items = (struct items){0};
    return 0;
}

static int items_unescape(struct buf *into, struct str raw)
{
    char *to;

    into->n = 0;
    if (buf_room(into, raw.n * 3 + 1, &to) < 0)
        return -ENOMEM;
    into->n = jr_unescape(raw, to);
    return 0;
}

/* The raw name of the next {"name": ...}, or an empty one. */
static struct str items_read_name(struct jr *j)
{
    struct str key, name = STR("");

    (void)jr_object(j);
    while (jr_member(j, &key))
        if (jr_key_is(key, "name"))
            (void)jr_string(j, &name);
        else
            (void)jr_skip(j, NULL);
    return name;
}

int items_refill(struct items *ret, struct str like, int value)
{
    CLEANUP(items_done) struct items items = {.json.max = ITEMS_MAX_BYTES * 2};
    BUF_AUTO(name, SIZE_MAX / 2);
    size_t room = ITEMS_MAX_BYTES - 2;
    struct jr j;
    int r = buf_putc(&items.json, '[');

    jr_init(&j, like, JR_STRICT);
    (void)jr_array(&j);
    while (r == 0 && jr_item(&j)) {
        r = items_unescape(&name, items_read_name(&j));
        if (r == 0 && name.n)
            r = items_put(&items, buf_str(&name), value, &room);
    }
    r = r ?: buf_putc(&items.json, ']');
    if (r < 0)
        return -ENOMEM;
    if (!jr_end(&j))
        return -EINVAL;
    *ret = items;
    items = (struct items){0};
    return 0;
}

int items_single(struct items *ret, const struct summary *s, const char *cluster_name, int value)
{
    CLEANUP(items_done) struct items items = {.json.max = ITEMS_MAX_BYTES * 2};
    CLEANUP(dimension_format_done) struct dimension_format f = {0};
    BUF_AUTO(name, SIZE_MAX / 2);
    size_t room = ITEMS_MAX_BYTES - 2;
    int r = 0;

    dimension_format_parse(&f, str_of(s->dimension_format));
    for (size_t i = 0; r == 0 && !f.per_series && i < f.n; i++)
        r = buf_put_str(&name, f.parts[i].text.n                ? f.parts[i].text
                               : f.parts[i].label == DS_CLUSTER ? str_of(cluster_name)
                                                                : str_of(s->score_name));
    r = r ?: buf_putc(&items.json, '[') ?: (name.n ? items_put(&items, buf_str(&name), value, &room) : 0);
    r = r ?: buf_putc(&items.json, ']');
    if (r < 0)
        return -ENOMEM;
    *ret = items;
    items = (struct items){0};
    return 0;
}

void items_done(struct items *i)
{
    buf_done(&i->json);
    *i = (struct items){0};
}
