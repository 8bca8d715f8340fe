#include "exporter/base/buf.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/metrics.h"
#include "remote_v2.pb-c.h"
#include "remotewrite/families.h"
#include "remotewrite/frame.h"
#include "test/unit/remotewrite/rw.h"

#include <errno.h>
#include <zstd.h>

static const int64_t AT = 1760000000123;
enum { SERIES = 50 };

/* A record of SERIES series; a few values are odd. */
static void make_block(struct buf *into)
{
    struct batch *b = rw_batch("score", SERIES, AT);
    struct rw_endpoint_config *c = rw_endpoint("[{url: 'http://h/'}]");
    struct label_bytes *l;
    struct frame *f;
    char *room;

    b->values[1] = rw_double(1ull << 63);
    b->values[2] = rw_double(RW_NAN_BITS);
    l = label_bytes_new(b->set, 0, series_count(b->set), c, NULL);
    f = frame_new(l, 0, l->n, AT);
    assert_int_equal(buf_reserve(into, f->block_n, &room), 0);
    frame_fill(f, room, b->values, AT);
    into->n = f->block_n;
    (void)frame_free(f);
    (void)label_bytes_free(l);
    (void)rw_endpoint_config_unref(c);
    (void)batch_unref(b);
}

static double value_of(size_t i)
{
    return i == 1 ? rw_double(1ull << 63) : i == 2 ? rw_double(RW_NAN_BITS) : (double)i;
}

static void assert_v1(const Rw__V1__WriteRequest *rq, size_t from, size_t to)
{
    assert_int_equal(rq->n_timeseries, to - from);
    for (size_t i = from; i < to; i++) {
        const Rw__V1__TimeSeries *s = rq->timeseries[i - from];
        char node[32];

        (void)snprintf(node, sizeof(node), "n%05zu", i);
        assert_string_equal(s->labels[2]->value, node);
        assert_true(rw_bits(s->samples[0]->value) == rw_bits(value_of(i)));
        assert_int_equal(s->samples[0]->timestamp, AT);
    }
}

/* A body with series [from, to) of a block. */
static int part_of(enum rw_form form, const struct buf *block, size_t from, size_t to,
                   const struct families *own, struct buf *into)
{
    CLEANUP(cleanup_free) struct str *series = NULL;
    BUF_AUTO(message, 1 << 20);
    size_t n;
    int r = body_unpack(buf_str(block), &message) ?: body_series(buf_str(&message), &series, &n);

    return r ?: body_make(form, series + from, to - from, own, into);
}

static void splits_bodies_of_1_0_and_zstd(void **state)
{
    BUF_AUTO(block, 1 << 20);

    (void)state;
    make_block(&block);
    for (size_t from = 0; from < SERIES; from += 7)
        for (size_t to = from + 1; to <= SERIES; to += 11) {
            BUF_AUTO(v1, 1 << 20);
            BUF_AUTO(vm, 1 << 20);
            char raw[1 << 16];
            Rw__V1__WriteRequest *rq;
            size_t n;

            assert_int_equal(part_of(RW_FORM_V1, &block, from, to, NULL, &v1), 0);
            rq = rw_decode(buf_str(&v1));
            assert_v1(rq, from, to);
            rw__v1__write_request__free_unpacked(rq, NULL);
            assert_int_equal(part_of(RW_FORM_VM, &block, from, to, NULL, &vm), 0);
            n = ZSTD_decompress(raw, sizeof(raw), vm.p, vm.n);
            assert_false(ZSTD_isError(n));
            rq = rw__v1__write_request__unpack(NULL, n, (const uint8_t *)raw);
            assert_v1(rq, from, to);
            rw__v1__write_request__free_unpacked(rq, NULL);
        }
}

static void deduplicates_symbols_of_2_0(void **state)
{
    BUF_AUTO(block, 1 << 20);
    BUF_AUTO(body, 1 << 20);
    BUF_AUTO(message, 1 << 20);
    Rw__V2__Request *rq;
    Rw__V1__WriteRequest *as_v1;

    (void)state;
    make_block(&block);
    assert_int_equal(part_of(RW_FORM_V2, &block, 0, SERIES, NULL, &body), 0);
    assert_int_equal(body_unpack(buf_str(&body), &message), 0);
    rq = rw__v2__request__unpack(NULL, message.n, (const uint8_t *)message.p);
    assert_non_null(rq);
    assert_string_equal(rq->symbols[0], "");
    for (size_t i = 0; i < rq->n_symbols; i++)
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(rq->symbols[i], rq->symbols[k]);
    assert_int_equal(rq->n_timeseries, SERIES);
    for (size_t i = 0; i < SERIES; i++) {
        const Rw__V2__TimeSeries *s = rq->timeseries[i];

        assert_int_equal(s->n_labels_refs, 8);
        for (size_t k = 0; k < s->n_labels_refs; k++)
            assert_in_range(s->labels_refs[k], 1, rq->n_symbols - 1);
        assert_string_equal(rq->symbols[s->labels_refs[0]], "__name__");
        assert_string_equal(rq->symbols[s->labels_refs[1]], SCORE_METRIC);
        assert_true(s->samples[0]->has_value && rw_bits(s->samples[0]->value) == rw_bits(value_of(i)));
        assert_int_equal(s->samples[0]->timestamp, AT);
        assert_int_equal(s->metadata->type, RW__V2__METADATA__TYPE__GAUGE);
        assert_string_equal(rq->symbols[s->metadata->help_ref], SCORE_HELP);
    }
    rw__v2__request__free_unpacked(rq, NULL);
    /* What an old receiver sees. */
    as_v1 = rw__v1__write_request__unpack(NULL, message.n, (const uint8_t *)message.p);
    assert_int_equal(as_v1->n_timeseries + as_v1->n_metadata, 0);
    rw__v1__write_request__free_unpacked(as_v1, NULL);
}

static const Rw__V1__MetricMetadata *find_metadata(const Rw__V1__WriteRequest *rq, const char *name)
{
    for (size_t i = 0; i < rq->n_metadata; i++)
        if (strcmp(rq->metadata[i]->metric_family_name, name) == 0)
            return rq->metadata[i];
    fail_msg("no metadata of %s", name);
    return NULL;
}

static void note_families(struct families *f)
{
    static const char *const suffixes[] = {"_bucket", "_sum", "_count"};
    char name[32];

    families_note(f, STR("a_total"), "", METRIC_TYPE_COUNTER, "Help \"a\".");
    families_note(f, STR(SCORE_METRIC), "", METRIC_TYPE_GAUGE, "A gauge.");
    for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
        (void)snprintf(name, sizeof(name), "h%s", suffixes[i]);
        families_note(f, str_of(name), suffixes[i], METRIC_TYPE_HISTOGRAM, "A histogram.");
    }
}

static void encodes_metadata(void **state)
{
    struct families families = {0};
    BUF_AUTO(body, 1 << 20);
    Rw__V1__WriteRequest *rq;

    (void)state;
    assert_int_equal(metadata_body(RW_FORM_V1, &families, &body), 0);
    assert_int_equal(body.n, 0);
    note_families(&families);
    assert_int_equal(metadata_body(RW_FORM_V1, &families, &body), 0);
    rq = rw_decode(buf_str(&body));
    assert_int_equal(rq->n_metadata, 3);
    assert_int_equal(find_metadata(rq, "a_total")->type, RW__V1__METRIC_METADATA__TYPE__COUNTER);
    assert_string_equal(find_metadata(rq, "a_total")->help, "Help \"a\".");
    assert_int_equal(find_metadata(rq, SCORE_METRIC)->type, RW__V1__METRIC_METADATA__TYPE__GAUGE);
    assert_int_equal(find_metadata(rq, "h")->type, RW__V1__METRIC_METADATA__TYPE__HISTOGRAM);
    rw__v1__write_request__free_unpacked(rq, NULL);
    families_done(&families);
}

/* What the series are called decides for the program's own metrics; scores keep theirs under any name. */
static void describes_own_metrics_of_2_0(void **state)
{
    static const struct {
        enum metric_type type;
        int64_t started, wanted;
    } cases[] = {
        {METRIC_TYPE_COUNTER, AT - 5, AT - 5}, {METRIC_TYPE_HISTOGRAM, AT, AT},
        {METRIC_TYPE_GAUGE, AT - 5, 0},        {METRIC_TYPE_COUNTER, 0, 0},
        {METRIC_TYPE_COUNTER, AT + 1, 0}, /* of an earlier process */
    };
    BUF_AUTO(block, 1 << 20);

    (void)state;
    make_block(&block);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct families own = {.started_ms = cases[i].started};
        BUF_AUTO(body, 1 << 20);
        BUF_AUTO(message, 1 << 20);
        Rw__V2__Request *rq;

        families_note(&own, STR(SCORE_METRIC), "", cases[i].type, "help");
        assert_int_equal(part_of(RW_FORM_V2, &block, 0, 1, &own, &body), 0);
        assert_int_equal(body_unpack(buf_str(&body), &message), 0);
        rq = rw__v2__request__unpack(NULL, message.n, (const uint8_t *)message.p);
        assert_int_equal(rq->timeseries[0]->metadata->type, 1 + cases[i].type);
        assert_string_equal(rq->symbols[rq->timeseries[0]->metadata->help_ref], "help");
        assert_int_equal(rq->timeseries[0]->samples[0]->start_timestamp, cases[i].wanted);
        rw__v2__request__free_unpacked(rq, NULL);
        families_done(&own);
    }
}

static void hashes_labels_only(void **state)
{
    BUF_AUTO(one, 1 << 20);
    BUF_AUTO(message, 1 << 20);
    struct str *a;
    size_t n;

    (void)state;
    make_block(&one);
    assert_int_equal(body_unpack(buf_str(&one), &message), 0);
    assert_int_equal(body_series(buf_str(&message), &a, &n), 0);
    assert_true(body_series_hash(a[0]) != body_series_hash(a[1]));
    /* Another value, the same labels. */
    uint64_t before = body_series_hash(a[3]);
    memset((char *)(uintptr_t)(a[3].p + a[3].n - 12), 0x55, 4);
    assert_true(body_series_hash(a[3]) == before);
    free(a);
}

static void prints_samples_as_text(void **state)
{
    BUF_AUTO(block, 1 << 20);
    BUF_AUTO(text, 1 << 20);
    static const char first[] =
        "dynamic_score{ds_cluster=\"c1\",ds_node=\"n00000\",ds_score_name=\"score\"} 0 1760000000123\n";

    (void)state;
    make_block(&block);
    assert_int_equal(body_print(buf_str(&block), &text), 0);
    assert_true(str_starts(buf_str(&text), str_of(first)));
}

/* The third block is so long that its length takes more bytes than theirs. */
static void joins_blocks(void **state)
{
    BUF_AUTO(block, 1 << 20);
    BUF_AUTO(first, 1 << 20);
    BUF_AUTO(joined, 1 << 20);
    BUF_AUTO(message, 1 << 20);
    CLEANUP(cleanup_free) struct str *series = NULL;
    struct str blocks[3];
    size_t n;

    (void)state;
    make_block(&block);
    assert_int_equal(part_of(RW_FORM_V1, &block, 7, 8, NULL, &first), 0);
    blocks[0] = blocks[1] = buf_str(&first);
    blocks[2] = buf_str(&block);
    assert_int_equal(body_join(blocks, 3, &joined), 0);
    assert_int_equal(body_unpack(buf_str(&joined), &message), 0);
    assert_int_equal(body_series(buf_str(&message), &series, &n), 0);
    assert_int_equal(n, SERIES + 2);
    assert_true(str_eq(series[0], series[1]) && str_eq(series[0], series[2 + 7]));
    blocks[1] = STR("");
    assert_int_equal(body_join(blocks, 3, &joined), -EBADMSG);
}

static void refuses_malformed_bodies(void **state)
{
    BUF_AUTO(block, 1 << 20);
    BUF_AUTO(out, 1 << 20);
    struct str *series;
    size_t n;

    (void)state;
    make_block(&block);
    for (size_t cut = 0; cut < block.n; cut++)
        assert_int_equal(body_unpack((struct str){block.p, cut}, &out), -EBADMSG);
    assert_int_equal(body_unpack(STR("\xff\xff\xff\xff\x0f"), &out), -EFBIG);
    assert_int_equal(body_series(STR("\x0a\x05xx"), &series, &n), -EBADMSG);
    assert_int_equal(body_series(STR("\x08\x01"), &series, &n), -EBADMSG);
    assert_int_equal(body_series(STR("\x0a"), &series, &n), -EBADMSG);
    assert_int_equal(body_series(STR("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), &series, &n),
                     -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits_bodies_of_1_0_and_zstd),
        cmocka_unit_test(deduplicates_symbols_of_2_0),
        cmocka_unit_test(encodes_metadata),
        cmocka_unit_test(describes_own_metrics_of_2_0),
        cmocka_unit_test(hashes_labels_only),
        cmocka_unit_test(prints_samples_as_text),
        cmocka_unit_test(joins_blocks),
        cmocka_unit_test(refuses_malformed_bodies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
