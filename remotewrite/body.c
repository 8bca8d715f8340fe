#include "remotewrite/body.h"

#include "exporter/base/escape.h"
#include "remote_v1.pb-c.h"
#include "remotewrite/body_v2.h"
#include "remotewrite/bytes.h"

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

static int put_snappy(struct str message, struct buf *into)
{
    size_t n = snappy_max_compressed_length(message.n);
    char *room;
    int r = buf_room(into, n, &room);

    if (r < 0)
        return r;
    if (snappy_compress(message.p, message.n, room, &n) != SNAPPY_OK)
        return -EBADMSG;
    into->n += n;
    return 0;
}

static int put_zstd(struct str message, struct buf *into)
{
    size_t n = ZSTD_compressBound(message.n);
    char *room;
    int r = buf_room(into, n, &room);

    if (r < 0)
        return r;
    n = ZSTD_compress(room, n, message.p, message.n, ZSTD_LEVEL);
    if (ZSTD_isError(n))
        return -ENOMEM;
    into->n += n;
    return 0;
}

/* Appends a 1.0 message in one of the forms. */
static int put_form(enum rw_form form, struct str message, struct buf *into)
{
    BUF_AUTO(v2, BODY_MAX);
    int r;

    if (form == RW_FORM_VM)
        return put_zstd(message, into);
    if (form == RW_FORM_V1)
        return put_snappy(message, into);
    r = body_v2_message(message, &v2);
    return r < 0 ? r : put_snappy(buf_str(&v2), into);
}

int body_make(enum rw_form form, struct str block, size_t from, size_t to, struct buf *into)
{
    CLEANUP(cleanup_free) struct str *series = NULL;
    BUF_AUTO(message, BODY_MAX);
    size_t n;
    struct str part;
    int r = body_unpack(block, &message);

    if (r == 0)
        r = body_series(buf_str(&message), &series, &n);
    if (r < 0)
        return r;
    if (from >= to || to > n)
        return -EBADMSG;
    /* The series are contiguous. */
    part.p = series[from].p;
    part.n = (size_t)(series[to - 1].p + series[to - 1].n - part.p);
    return put_form(form, part, into);
}

int body_metadata(enum rw_form form, const struct body_family *list, size_t n, struct buf *into)
{
    BUF_AUTO(message, BODY_MAX);
    int r = 0;

    for (size_t i = 0; i < n && r == 0; i++) {
        Rw__V1__MetricMetadata m = RW__V1__METRIC_METADATA__INIT, *place = &m;
        Rw__V1__WriteRequest rq = RW__V1__WRITE_REQUEST__INIT;
        char *room;

        m.type = (Rw__V1__MetricMetadata__Type)list[i].type;
        m.metric_family_name = (char *)(uintptr_t)list[i].name;
        m.help = (char *)(uintptr_t)list[i].help;
        rq.metadata = &place;
        rq.n_metadata = 1;
        r = buf_room(&message, rw__v1__write_request__get_packed_size(&rq), &room);
        if (r == 0)
            message.n += rw__v1__write_request__pack(&rq, (uint8_t *)room);
    }
    return r < 0 ? r : put_form(form, buf_str(&message), into);
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
