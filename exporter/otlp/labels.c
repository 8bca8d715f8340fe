/* Each text is checked and counted where it is made, in labels_keep(); labels_write() only copies. */
#include "exporter/otlp/labels.h"

#include "exporter/base/arena.h"
#include "exporter/base/buf.h"
#include "exporter/base/utf8.h"
#include "exporter/otlp/translate.h"

enum { LABELS_BYTES = 4 << 10 };

void labels_init(struct labels *l, uint64_t *written)
{
    l->arena.chunk_bytes = LABELS_BYTES;
    l->text.max = SIZE_MAX;
    l->written = written;
    labels_begin(l);
}

void labels_done(struct labels *l)
{
    arena_done(&l->arena);
    buf_done(&l->text);
}

void labels_begin(struct labels *l)
{
    arena_done(&l->arena);
    buf_clear(&l->text);
    l->n = 0;
    l->is_bad = false;
}

/* Moves the text into the arena, and empties it. */
static struct str labels_keep(struct labels *l)
{
    struct str kept = {arena_text(&l->arena, buf_str(&l->text)), l->text.n};

    if (kept.n > SERIES_MAX_LABEL_BYTES || utf8_valid_prefix(kept) < kept.n)
        l->is_bad = true;
    *l->written += kept.n;
    buf_clear(&l->text);
    return kept;
}

struct str labels_copy(struct labels *l, struct str text)
{
    if (text.n > SERIES_MAX_LABEL_BYTES)
        l->is_bad = true;
    else
        put_str(&l->text, text);
    return labels_keep(l);
}

struct str labels_text(struct labels *l, struct str any_value)
{
    if (any_value.n > SERIES_MAX_LABEL_BYTES)
        l->is_bad = true;
    if (!l->is_bad)
        put_any_value(&l->text, any_value, false);
    return labels_keep(l);
}

/* The name of the label that an attribute becomes. */
static struct str labels_name(struct labels *l, struct str key)
{
    if (key.n > SERIES_MAX_LABEL_BYTES)
        l->is_bad = true;
    if (!l->is_bad)
        put_label_name(&l->text, key);
    return labels_keep(l);
}

struct str labels_join(struct labels *l, struct str a, char between, struct str b)
{
    put_str(&l->text, a);
    put_str(&l->text, (struct str){&between, 1});
    put_str(&l->text, b);
    return labels_keep(l);
}

struct str *labels_at(struct labels *l, struct str name)
{
    size_t i = 0;

    while (i < l->n && !str_eq(l->list[i].name, name))
        i++;
    if (i == l->n) {
        l->list[i] = (struct series_label){.name = name};
        if (i == SERIES_MAX_LABELS)
            l->is_bad = true;
        else
            l->n++;
    }
    return &l->list[i].value;
}

void labels_set_attributes(struct labels *l, struct str message, unsigned number, bool (*skips)(struct str))
{
    CLEANUP(cleanup_free) struct attribute *list = NULL;
    size_t n = read_attributes(&list, message, number, SERIES_MAX_LABELS);

    if (n > SERIES_MAX_LABELS)
        l->is_bad = true;
    for (size_t i = 0; i < n && !l->is_bad; i++) {
        struct str name, value, *label;

        if (skips && skips(list[i].key))
            continue;
        name = labels_name(l, list[i].key);
        value = labels_text(l, list[i].value);
        label = labels_at(l, name);
        *label = label->n ? labels_join(l, *label, ';', value) : value;
    }
}

DEFINE_ORDER(label_order, struct series_label, str_cmp(a->name, b->name))

void labels_sort(struct labels *l)
{
    qsort(l->list, l->n, sizeof(*l->list), label_order);
}

/* A label without a name or a value is none. */
static void write_label(struct buf *into, const struct series_label *label)
{
    static const char end = LABEL_END;

    if (label->name.n == 0 || label->value.n == 0)
        return;
    put_str(into, label->name);
    put_str(into, (struct str){&end, 1});
    put_str(into, label->value);
    put_str(into, (struct str){&end, 1});
}

bool labels_write(const struct labels *l, const struct series_label *own, size_t n_own, struct buf *into)
{
    size_t i = 0, k = 0, n = 0;

    buf_clear(into);
    for (; (i < l->n || k < n_own) && into->n <= SERIES_MAX_LABEL_BYTES; n++) {
        int order = i == l->n ? 1 : k == n_own ? -1 : str_cmp(l->list[i].name, own[k].name);

        if (order < 0) {
            write_label(into, &l->list[i++]);
            continue;
        }
        if (order == 0)
            i++; /* the series' own one replaces it */
        write_label(into, &own[k++]);
    }
    *l->written += into->n;
    return n <= SERIES_MAX_LABELS && into->n <= SERIES_MAX_LABEL_BYTES;
}
