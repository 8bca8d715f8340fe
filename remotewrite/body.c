#include "remotewrite/body.h"

#include "exporter/base/escape.h"
#include "exporter/base/hash.h"
#include "exporter/base/map.h"
#include "exporter/base/varint.h"
#include "remote_v1.pb-c.h"
#include "remotewrite/body_v2.h"

#include <errno.h>
#include <snappy-c.h>
#include <zstd.h>

enum { ZSTD_LEVEL = 1 };

int body_unpack(struct str block, struct buf *into)
{
    size_t n;
    char *room;
    int r;

    if (snappy_uncompressed_length(block.p, block.n, &n) != SNAPPY_OK)
        return -EBADMSG;
    if (n > BODY_MAX)
        return -EFBIG;
    r = buf_room(into, n, &room);
    if (r < 0)
        return r;
    if (snappy_uncompress(block.p, block.n, room, &n) != SNAPPY_OK)
        return -EBADMSG;
    into->n += n;
    return 0;
}

/* Skips a field, which must be length-delimited; *ret_field is its number. NULL if there is none. */
static const char *next_field(const char *p, const char *end, uint64_t *ret_field)
{
    uint64_t tag, n;

    p = get_varint(p, end, &tag);
    if (!p || (tag & 7) != 2)
        return NULL;
    p = get_varint(p, end, &n);
    if (!p || n > (uint64_t)(end - p))
        return NULL;
    *ret_field = tag >> 3;
    return p + n;
}

int body_series(struct str message, struct str **ret, size_t *ret_n)
{
    CLEANUP(cleanup_free) struct str *list = NULL;
    const char *p = message.p, *end = message.p + message.n, *next;
    size_t n = 0, cap = 0;
    uint64_t field;

    for (; p < end; p = next) {
        next = next_field(p, end, &field);
        if (!next)
            return -EBADMSG;
        if (field != 1)
            continue;
        if (n == cap) {
            struct str *more = realloc(list, (cap = size_max(64, cap * 2)) * sizeof(*list));

            if (!more)
                return -ENOMEM;
            list = more;
        }
        list[n++] = (struct str){p, (size_t)(next - p)};
    }
    *ret = TAKE_PTR(list);
    *ret_n = n;
    return 0;
}

static int put_compressed(struct str message, bool zstd, struct buf *into)
{
    size_t n = zstd ? ZSTD_compressBound(message.n) : snappy_max_compressed_length(message.n);
    char *room;
    int r = buf_room(into, n, &room);

    if (r < 0)
        return r;
    if (zstd)
        n = ZSTD_compress(room, n, message.p, message.n, ZSTD_LEVEL);
    else if (snappy_compress(message.p, message.n, room, &n) != SNAPPY_OK)
        return -EBADMSG;
    if (zstd && ZSTD_isError(n))
        return -ENOMEM;
    into->n += n;
    return 0;
}

/* Appends a 1.0 message in one of the forms. */
static int put_form(enum rw_form form, struct str message, const struct families *own, struct buf *into)
{
    BUF_AUTO(v2, BODY_MAX);
    int r = form == RW_FORM_V2 ? body_v2_message(message, own, &v2) : 0;

    return r ?: put_compressed(form == RW_FORM_V2 ? buf_str(&v2) : message, form == RW_FORM_VM, into);
}

uint64_t body_series_hash(struct str series)
{
    const char *end = series.p + series.n, *labels, *p, *next;
    uint64_t field;

    /* A tag of one byte and the length, then the labels, then the samples. */
    p = labels = get_varint(series.p + 1, end, &field);
    while (p && p < end && (next = next_field(p, end, &field)) && field == 1)
        p = next;
    return p ? hash_bytes((struct str){labels, (size_t)(p - labels)}) : 0;
}

/* The series of the part, which are contiguous, unless some are skipped. */
static int part_message(const struct str *series, const struct body_part *part, struct buf *kept,
                        struct str *ret)
{
    struct str first = series[part->from], last = series[part->to - 1];
    int r = 0;

    *ret = (struct str){first.p, (size_t)(last.p + last.n - first.p)};
    if (!part->skip)
        return 0;
    for (size_t i = part->from; i < part->to && r == 0; i++)
        if (!part->skip[i])
            r = buf_put_str(kept, series[i]);
    *ret = buf_str(kept);
    return r;
}

int body_make(enum rw_form form, struct str block, const struct body_part *part, struct buf *into)
{
    CLEANUP(cleanup_free) struct str *series = NULL;
    BUF_AUTO(message, BODY_MAX);
    BUF_AUTO(kept, BODY_MAX);
    struct str content;
    size_t n;
    int r = body_unpack(block, &message) ?: body_series(buf_str(&message), &series, &n);

    if (r < 0)
        return r;
    if (part->from >= part->to || part->to > n)
        return -EBADMSG;
    r = part_message(series, part, &kept, &content);
    return r < 0 ? r : put_form(form, content, part->own, into);
}

/* Of a histogram's names, the one that ends with _count stands for the family. */
static bool family_is_listed(const struct family *f)
{
    return f->name[f->stem_n] == '\0' || strcmp(f->name + f->stem_n, "_count") == 0;
}

static int put_family(const struct family *f, struct buf *message)
{
    Rw__V1__MetricMetadata m = RW__V1__METRIC_METADATA__INIT, *place = &m;
    Rw__V1__WriteRequest rq = RW__V1__WRITE_REQUEST__INIT;
    CLEANUP(cleanup_free) char *stem = strndup(f->name, f->stem_n);
    char *room;
    int r;

    if (!stem)
        return -ENOMEM;
    m.type = (Rw__V1__MetricMetadata__Type)f->type;
    m.metric_family_name = stem;
    m.help = (char *)(uintptr_t)f->help;
    rq.metadata = &place;
    rq.n_metadata = 1;
    r = buf_room(message, rw__v1__write_request__get_packed_size(&rq), &room);
    if (r == 0)
        message->n += rw__v1__write_request__pack(&rq, (uint8_t *)room);
    return r;
}

int body_metadata(enum rw_form form, const struct families *families, struct buf *into)
{
    BUF_AUTO(message, BODY_MAX);
    const struct family *f;
    size_t at = 0;
    int r = 0;

    while (r == 0 && (f = map_next(&families->by_name, &at)))
        if (family_is_listed(f))
            r = put_family(f, &message);
    return r < 0 || message.n == 0 ? r : put_form(form, buf_str(&message), NULL, into);
}

static int put_name(const Rw__V1__TimeSeries *s, struct buf *into)
{
    const char *before = "{";
    int r = 0;

    for (size_t i = 0; i < s->n_labels && r == 0; i++)
        if (strcmp(s->labels[i]->name, "__name__") == 0)
            r = buf_puts(into, s->labels[i]->value);
    for (size_t i = 0; i < s->n_labels && r == 0; i++) {
        if (strcmp(s->labels[i]->name, "__name__") == 0)
            continue;
        r = buf_printf(into, "%s%s=\"", before, s->labels[i]->name);
        r = r ?: buf_put_label_value(into, str_of(s->labels[i]->value)) ?: buf_putc(into, '"');
        before = ",";
    }
    return r == 0 && *before == ',' ? buf_putc(into, '}') : r;
}

static void request_free(Rw__V1__WriteRequest **rq)
{
    rw__v1__write_request__free_unpacked(*rq, NULL);
}

int body_series_name(struct str series, struct buf *into)
{
    CLEANUP(request_free)
    Rw__V1__WriteRequest *rq = rw__v1__write_request__unpack(NULL, series.n, (const uint8_t *)series.p);

    if (!rq || rq->n_timeseries != 1)
        return -EBADMSG;
    return put_name(rq->timeseries[0], into);
}

static int print_series(const Rw__V1__TimeSeries *s, struct buf *into)
{
    int r = 0;

    for (size_t i = 0; i < s->n_samples && r == 0; i++) {
        uint64_t bits;

        memcpy(&bits, &s->samples[i]->value, sizeof(bits));
        r = put_name(s, into);
        if (r == 0 && bits == 0x7ff0000000000002ull)
            r = buf_puts(into, " stale");
        else if (r == 0)
            r = buf_printf(into, " %.17g", s->samples[i]->value);
        r = r ?: buf_printf(into, " %lld\n", (long long)s->samples[i]->timestamp);
    }
    return r;
}

int body_print(struct str block, struct buf *into)
{
    CLEANUP(request_free) Rw__V1__WriteRequest *rq = NULL;
    BUF_AUTO(message, BODY_MAX);
    int r = body_unpack(block, &message);

    if (r < 0)
        return r;
    rq = rw__v1__write_request__unpack(NULL, message.n, (const uint8_t *)message.p);
    if (!rq)
        return -EBADMSG;
    for (size_t i = 0; i < rq->n_timeseries && r == 0; i++)
        r = print_series(rq->timeseries[i], into);
    return r;
}
