/* OTLP requests in protobuf: those that the check accepts are stored, or their points rejected. */
#include "exporter/base/clock.h"
#include "exporter/base/utf8.h"
#include "exporter/otlp/decode.h"
#include "exporter/otlp/ingest.h"
#include "exporter/otlp/series.h"

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

/* Labels as store_enter() wants them: sorted, unique, not empty, in UTF-8. */
static void check_series(struct store *store)
{
    CLEANUP(series_reader_done) struct series_reader in = {.store = store, .to_ms = INT64_MAX};
    int r;

    while ((r = series_next(&in)) > 0) {
        struct str rest = in.labels, last = STR("");
        struct series_label l;

        for (; labels_next(&rest, &l); last = l.name) {
            assert(l.value.n && utf8_valid_prefix(l.value) == l.value.n);
            assert(str_has_only(l.name, "_") && str_cmp(last, l.name) < 0);
        }
    }
    assert(r == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(cleanup_store_free) struct store *store = NULL;
    CLEANUP(cleanup_ingest_free) struct ingest *in = NULL;
    const struct otlp_promotion promotion = {.k8s = true, .names = STR("x, 1,")};
    struct str request = {(const char *)data, size};
    char why[DECODE_WHY_BYTES] = "";
    struct ingest_outcome outcome;
    size_t fields;

    if (decode_check(request, &fields, why) < 0) {
        assert(*why);
        return 0;
    }
    store = store_new(&fuzz_clock);
    store_set_limits(store, 1 << 22, 1000);
    in = ingest_new(store, &fuzz_clock, &promotion);
    for (unsigned again = 0; again < 2; again++)
        ingest_request(in, request, UINT64_MAX, &outcome);
    check_series(store);
    return 0;
}
