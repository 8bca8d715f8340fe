/* OTLP requests in protobuf: what a point stores does not depend on what was read before it. The points of a
 * request give the same series and samples as one request for each of them, read by an ingest that has seen
 * nothing else. Only target_info, which a resource gets once for all of its points, is left out. */
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/hash.h"
#include "exporter/num/num.h"
#include "exporter/otlp/decode.h"
#include "exporter/otlp/ingest.h"
#include "exporter/otlp/protobuf.h"
#include "exporter/otlp/series.h"
#include "exporter/otlp/translate.h"

#include <assert.h>

enum { NOW = 1700000100, INPUT_MAX = 64 << 10, POINTS_MAX = 64, STORE_BYTES = 64 << 20 };
enum {
    REQUEST_RESOURCES = 1,
    RESOURCE_RESOURCE = 1,
    RESOURCE_SCOPES = 2,
    SCOPE_METRICS = 2,
    DATA_POINTS = 1
};

static const struct otlp_promotion promotion = {.k8s = true, .names = STR("x, 1,")};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static mono_ms fuzz_mono(const struct clock *c)
{
    (void)c;
    return (mono_ms){0};
}

static unix_ms fuzz_wall(const struct clock *c)
{
    (void)c;
    return (unix_ms){NOW * INT64_C(1000)};
}

static const struct clock fuzz_clock = {.mono = fuzz_mono, .wall = fuzz_wall};

static struct store *fuzz_store(void)
{
    struct store *store = store_new(&fuzz_clock);

    store_set_limits(store, STORE_BYTES, UINT64_MAX);
    return store;
}

static void put_message(struct buf *into, unsigned number, struct str content)
{
    char head[2 * VARINT_MAX], *end = put_varint(put_varint(head, number << 3 | WIRE_BYTES), content.n);

    put_str(into, (struct str){head, (size_t)(end - head)});
    put_str(into, content);
}

static struct str field_bytes(const struct wire_field *f, const char *end)
{
    return (struct str){f->from, (size_t)(end - f->from)};
}

/* Appends the fields of the message, but not `left_out`. */
static void put_others(struct buf *into, struct str message, const struct wire_field *left_out)
{
    struct wire_field f;

    while (wire_next(&message, &f))
        if (f.from != left_out->from)
            put_str(into, field_bytes(&f, message.p));
}

static bool is_data(unsigned metric_field)
{
    return metric_field == 5 || metric_field == 7 || (metric_field >= 9 && metric_field <= 11);
}

/* The kind of metric and its points: the last such field counts. */
static struct wire_field metric_data(struct str metric)
{
    struct wire_field f, data = {0};

    while (wire_next(&metric, &f))
        if (is_data(f.number))
            data = f;
    return data;
}

/* Stores one point, as the only one of a request. */
static void store_alone(struct store *store, struct str resource, struct str metric,
                        const struct wire_field *data, struct str point)
{
    CLEANUP(cleanup_ingest_free) struct ingest *in = ingest_new(store, &fuzz_clock, &promotion);
    BUF_AUTO(points, SIZE_MAX);
    BUF_AUTO(single, SIZE_MAX);
    BUF_AUTO(scope, SIZE_MAX);
    BUF_AUTO(body, SIZE_MAX);
    BUF_AUTO(request, SIZE_MAX);
    struct str rest = data->bytes;
    struct ingest_outcome outcome;
    char why[DECODE_WHY_BYTES];
    struct wire_field f;
    size_t fields;

    while (wire_next(&rest, &f))
        if (f.number != DATA_POINTS)
            put_str(&points, field_bytes(&f, rest.p));
    put_message(&points, DATA_POINTS, point);
    put_others(&single, metric, data);
    put_message(&single, data->number, buf_str(&points));
    put_message(&scope, SCOPE_METRICS, buf_str(&single));
    put_message(&body, RESOURCE_RESOURCE, resource);
    put_message(&body, RESOURCE_SCOPES, buf_str(&scope));
    put_message(&request, REQUEST_RESOURCES, buf_str(&body));
    assert(decode_check(buf_str(&request), &fields, why) == 0);
    ingest_request(in, buf_str(&request), UINT64_MAX, &outcome);
}

/* Stores each point of the request alone. Returns how many; stops at one more than POINTS_MAX. */
static size_t store_points(struct store *store, struct str request)
{
    struct wire_field resources, scopes, metrics, point;
    size_t n = 0;

    while (wire_find(&request, REQUEST_RESOURCES, &resources)) {
        struct str resource = wire_last(resources.bytes, RESOURCE_RESOURCE).bytes;

        while (wire_find(&resources.bytes, RESOURCE_SCOPES, &scopes))
            while (wire_find(&scopes.bytes, SCOPE_METRICS, &metrics)) {
                struct wire_field data = metric_data(metrics.bytes);
                struct str points = data.bytes;

                while (data.from && wire_find(&points, DATA_POINTS, &point)) {
                    if (++n > POINTS_MAX)
                        return n;
                    store_alone(store, resource, metrics.bytes, &data, point.bytes);
                }
            }
    }
    return n;
}

/* The same for stores with the same series and samples, whatever their order. */
static uint64_t store_digest(struct store *store)
{
    CLEANUP(series_reader_done) struct series_reader in = {.store = store, .to_ms = INT64_MAX};
    uint64_t sum = 0;
    int r;

    while ((r = series_next(&in)) > 0) {
        uint64_t hash = hash_bytes(in.labels);

        if (str_eq(labels_value(in.labels, STR("__name__")), STR("target_info")))
            continue;
        for (size_t i = 0; i < in.n; i++)
            hash =
                hash_chain_u64(hash_chain_u64(hash, (uint64_t)in.samples[i].t), double_bits(in.samples[i].v));
        sum += hash;
    }
    assert(r == 0);
    return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(cleanup_store_free) struct store *together = NULL;
    CLEANUP(cleanup_store_free) struct store *alone = NULL;
    CLEANUP(cleanup_ingest_free) struct ingest *in = NULL;
    struct str request = {(const char *)data, size};
    struct ingest_outcome outcome;
    char why[DECODE_WHY_BYTES];
    size_t fields;

    if (size > INPUT_MAX || decode_check(request, &fields, why) < 0)
        return 0;
    alone = fuzz_store();
    if (store_points(alone, request) > POINTS_MAX)
        return 0;
    together = fuzz_store();
    in = ingest_new(together, &fuzz_clock, &promotion);
    ingest_request(in, request, UINT64_MAX, &outcome);
    assert(store_digest(together) == store_digest(alone));
    return 0;
}
