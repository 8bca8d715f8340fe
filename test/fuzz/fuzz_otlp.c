/* OTLP requests in protobuf: those that the check accepts are stored, or their points rejected. */
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/utf8.h"
#include "exporter/otlp/ingest.h"
#include "exporter/otlp/labels.h"
#include "exporter/otlp/reply.h"
#include "exporter/otlp/schema.h"
#include "exporter/tsdb/tsdb.h"

#include <assert.h>

enum { NOW = 1700000100 };

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

/* Labels as tsdb_ref() wants them: sorted, unique, not empty, in UTF-8. */
static void check_series(struct tsdb *t)
{
    const struct tsdb_matcher all = {.op = TSDB_NE, .name = STR("__name__"), .value = STR("")};
    CLEANUP(cleanup_tsdb_view_free) struct tsdb_view *v = NULL;
    char why[TSDB_WHY_BYTES];

    assert(tsdb_select(t, &all, 1, 0, INT64_MAX, 1u << 30, &v, why) == 0);
    for (size_t i = 0; i < tsdb_view_count(v); i++) {
        size_t n;
        const struct tsdb_label *l = tsdb_view_labels(v, i, &n);
        for (size_t k = 0; k < n; k++) {
            assert(l[k].value.n && utf8_valid_prefix(l[k].value) == l[k].value.n);
            assert(str_has_only(l[k].name, "_") && (k == 0 || str_cmp(l[k - 1].name, l[k].name) < 0));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct tsdb_options store = {.clock = &fuzz_clock, .max_bytes = 1 << 22, .max_series = 1000};
    CLEANUP(cleanup_tsdb_free) struct tsdb *t = NULL;
    CLEANUP(cleanup_ingest_free) struct ingest *in = NULL;
    struct ingest_options o = {.clock = &fuzz_clock};
    struct str request = {(const char *)data, size};
    char why[SCHEMA_WHY_BYTES] = "";
    struct ingest_outcome outcome;
    BUF_AUTO(reply, 1 << 16);

    if (schema_check(request, why) < 0) {
        assert(*why);
        return 0;
    }
    otlp_promote_k8s(&o.promotion);
    assert(tsdb_new(&t, &store) == 0);
    o.tsdb = t;
    assert(ingest_new(&in, &o) == 0);
    for (unsigned again = 0; again < 2; again++) {
        assert(ingest_request(in, request, &outcome) == 0);
        assert(otlp_put_response(OTLP_JSON, &outcome, &reply) == 0);
    }
    check_series(t);
    return 0;
}
