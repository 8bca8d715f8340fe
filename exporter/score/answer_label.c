/* The labels of one result: from JSON to values that are valid UTF-8 within the limit. */
#include "exporter/score/answer_internal.h"

#include "exporter/base/buf.h"
#include "exporter/base/hash.h"
#include "exporter/base/utf8.h"

#include <errno.h>

static const struct str REPLACEMENT = {"\xef\xbf\xbd", 3};

/* Whether a raw value needs no change in an exposition line. */
static bool label_is_plain(struct str raw)
{
    const uint64_t ones = 0x0101010101010101ull, tops = 0x8080808080808080ull;
    size_t i = 0;

    for (; i + 8 <= raw.n; i += 8) {
        uint64_t v, x;
        memcpy(&v, raw.p + i, 8);
        x = v ^ ones * '\\';
        if ((v | ((x - ones) & ~x)) & tops)
            return false;
    }
    for (; i < raw.n; i++)
        if ((raw.p[i] & 0x80) || raw.p[i] == '\\')
            return false;
    return true;
}

static void cut_label(struct answer_reader *r, enum ds_label label, struct str *value)
{
    if (r->labels.uncut)
        r->uncut[label] = 0;
    if (value->n <= r->label_max)
        return;
    if (!r->labels.uncut)
        memset(r->uncut, 0, sizeof(r->uncut));
    r->labels.uncut = r->uncut;
    r->uncut[label] = (uint32_t)hash_bytes(*value) | 1;
    *value = utf8_cut(*value, r->label_max);
    r->stats->cut++;
}

/* NUL is valid in JSON and UTF-8, but some parsers of the text format end the line there. */
static int replace_nul(struct buf *b, size_t n)
{
    size_t nuls = 0;
    char *to;

    for (size_t i = 0; i < n; i++)
        nuls += b->p[i] == '\0';
    b->n = n;
    if (nuls == 0)
        return 0;
    if (buf_room(b, nuls * 2, &to) < 0)
        return -ENOMEM;
    b->n = n + nuls * 2;
    for (size_t i = n, o = b->n; i-- > 0;) {
        if (b->p[i] == '\0') {
            o -= REPLACEMENT.n;
            memcpy(b->p + o, REPLACEMENT.p, REPLACEMENT.n);
        } else {
            b->p[--o] = b->p[i];
        }
    }
    return 0;
}

static void set_escaped_label(struct answer_reader *r, enum ds_label label, struct str raw)
{
    struct str value;
    char *to;

    r->escape.n = 0;
    if (buf_room(&r->escape, raw.n * 3 + 1, &to) < 0 || replace_nul(&r->escape, jr_unescape(raw, to)) < 0) {
        r->out_of_memory = true;
        return;
    }
    value = buf_str(&r->escape);
    if (memmem(value.p, value.n, REPLACEMENT.p, REPLACEMENT.n))
        r->stats->mended++;
    cut_label(r, label, &value);
    to = r->room + (size_t)label * r->label_max;
    if (value.n)
        memcpy(to, value.p, value.n);
    r->labels.value[label] = (struct str){to, value.n};
    r->labels.escapes |= 1u << label;
}

static void set_label(struct answer_reader *r, enum ds_label label, struct str raw)
{
    r->bad_labels &= ~(1u << label);
    if (!label_is_plain(raw)) {
        set_escaped_label(r, label, raw);
        return;
    }
    cut_label(r, label, &raw);
    r->labels.value[label] = raw;
    r->labels.escapes &= ~(1u << label);
}

/* The label that a member of `metric` becomes, or DS_LABELS. */
static enum ds_label label_of_member(struct str key)
{
    static const enum ds_label sources[] = {DS_NODE,      DS_POD,    DS_NAMESPACE, DS_APP,
                                            DS_CONTAINER, DS_DEVICE, DS_META};

    for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
        struct str name = ds_label_sources[sources[i]];
        if (key.n == name.n && memcmp(key.p, name.p, name.n) == 0)
            return sources[i];
    }
    if (memchr(key.p, '\\', key.n))
        for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
            if (jr_key_is(key, ds_label_sources[sources[i]].p))
                return sources[i];
    return DS_LABELS;
}

/* A value that is not a string: numbers and booleans as written, null as empty. */
static void read_other_label(struct answer_reader *r, enum ds_label label)
{
    enum jr_type type = jr_peek(&r->j);
    struct str span = STR("");

    (void)jr_skip(&r->j, &span);
    if (type == JR_OBJECT || type == JR_ARRAY)
        r->bad_labels |= 1u << label;
    else
        set_label(r, label, type == JR_NULL ? STR("") : span);
}

static void read_labels(struct answer_reader *r)
{
    struct str key;

    r->has_labels = true;
    (void)jr_object(&r->j);
    while (jr_member(&r->j, &key)) {
        enum ds_label label = label_of_member(key);
        struct str raw;
        if (label == DS_LABELS)
            (void)jr_skip(&r->j, NULL);
        else if (jr_peek(&r->j) != JR_STRING)
            read_other_label(r, label);
        else if (jr_string(&r->j, &raw))
            set_label(r, label, raw);
    }
}

/* Labels that were cut or repaired are read again each round, so that they are counted. */
static void read_metric_object(struct answer_reader *r)
{
    const char *from = r->j.p;
    size_t counted = r->stats->cut + r->stats->mended;
    size_t n = batch_spelled(r->builder, (struct str){from, (size_t)(r->j.end - from)});

    r->is_repeated = n > 0;
    if (r->is_repeated) {
        jr_pass(&r->j, n);
        return;
    }
    read_labels(r);
    if (r->stats->cut + r->stats->mended == counted)
        r->labels.spelling = (struct str){from, (size_t)(r->j.p - from)};
}

void answer_read_metric(struct answer_reader *r)
{
    enum jr_type type = jr_peek(&r->j);

    answer_forget_labels(r);
    r->bad_labels = 0;
    r->no_metric = type == JR_OBJECT || type == JR_NULL ? NULL : ".metric: expected an object";
    r->is_repeated = false;
    if (type == JR_OBJECT)
        read_metric_object(r);
    else
        (void)jr_skip(&r->j, NULL);
}
