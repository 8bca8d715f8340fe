/* Frames against two things that know nothing of them: libsnappy, which takes them apart, and protobuf-c,
 * which reads them. */
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/random.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/batch_builder.h"
#include "exporter/num/num.h"
#include "remotewrite/frame.h"
#include "test/unit/remotewrite/rw.h"

#include <errno.h>
#include <math.h>

static const int64_t AT = 1760000000123;

static void assert_same_labels(const Rw__V1__TimeSeries *s, struct str labels)
{
    Rw__V1__TimeSeries *want = rw__v1__time_series__unpack(NULL, labels.n, (const uint8_t *)labels.p);

    assert_non_null(want);
    assert_int_equal(s->n_labels, want->n_labels);
    for (size_t i = 0; i < s->n_labels; i++) {
        assert_string_equal(s->labels[i]->name, want->labels[i]->name);
        assert_string_equal(s->labels[i]->value, want->labels[i]->value);
        assert_true(i == 0 || strcmp(s->labels[i - 1]->name, s->labels[i]->name) < 0);
    }
    rw__v1__time_series__free_unpacked(want, NULL);
}

static void assert_frame(const struct frame *f, const struct label_bytes *l, size_t first, const char *block,
                         const double *values, int64_t at)
{
    Rw__V1__WriteRequest *rq = rw_decode((struct str){block, f->block_n});

    assert_int_equal(rq->n_timeseries, f->n);
    for (size_t i = 0; i < f->n; i++) {
        size_t place = first + i;
        const Rw__V1__TimeSeries *s = rq->timeseries[i];
        double v = values ? values[l->series[place]] : rw_double(RW_STALE_BITS);

        assert_same_labels(s, label_bytes_at(l, place));
        assert_int_equal(s->n_samples, 1);
        assert_int_equal(s->samples[0]->timestamp, at);
        assert_true(rw_bits(s->samples[0]->value) == (isnan(v) && values ? RW_NAN_BITS : rw_bits(v)));
    }
    rw__v1__write_request__free_unpacked(rq, NULL);
}

static struct label_bytes *labels_of(const struct batch *b, const char *yaml)
{
    struct rw_endpoint_config *c = rw_endpoint(yaml);
    struct label_bytes *l;

    l = label_bytes_new(b->set, 0, series_count(b->set), c, NULL);
    (void)rw_endpoint_config_unref(c);
    return l;
}

static void frames_any_subset_of_series(void **state)
{
    static const size_t counts[] = {1, 2, 3, 17, 300, 2000};

    (void)state;
    for (size_t k = 0; k < ARRAY_SIZE(counts); k++) {
        struct batch *b = rw_batch("score", counts[k], AT);
        struct label_bytes *l =
            labels_of(b, "[{url: 'http://h/', external_labels: {zone: \"é\", a: \"1\"}}]");
        size_t first = counts[k] / 3, n = counts[k] - first;
        struct frame *f;
        char *block;

        f = frame_new(l, first, n, AT);
        block = malloc(f->block_n);
        for (int round = 0; round < 3; round++) {
            for (size_t i = 0; i < counts[k]; i++)
                b->values[i] = rw_double(rand_u64());
            frame_fill(f, block, b->values, AT + round * 60000);
            assert_frame(f, l, first, block, b->values, AT + round * 60000);
        }
        frame_fill_markers(f, block, AT + 1);
        assert_frame(f, l, first, block, NULL, AT + 1);
        free(block);
        (void)frame_free(f);
        (void)label_bytes_free(l);
        (void)batch_unref(b);
    }
}

static void writes_odd_values_exactly(void **state)
{
    static const uint64_t bits[] = {0,
                                    1ull << 63,
                                    RW_STALE_BITS,
                                    RW_NAN_BITS,
                                    0xfff8000000000000ull,
                                    0x7ff0000000000001ull,
                                    0x7ff0000000000000ull,
                                    0xfff0000000000000ull,
                                    1,
                                    0x7fefffffffffffffull};
    struct batch *b = rw_batch("score", ARRAY_SIZE(bits), AT);
    struct label_bytes *l = labels_of(b, "[{url: 'http://h/'}]");
    struct frame *f;
    char *block;

    (void)state;
    memcpy(b->values, bits, sizeof(bits));
    f = frame_new(l, 0, l->n, AT);
    block = malloc(f->block_n);
    frame_fill(f, block, b->values, AT);
    assert_frame(f, l, 0, block, b->values, AT);
    free(block);
    (void)frame_free(f);
    (void)label_bytes_free(l);
    (void)batch_unref(b);
}

static void frames_long_and_non_ascii_labels(void **state)
{
    struct batch_builder *builder = rw_builder("zażółć \"quoted\" \\ back\nslash 🦊");
    char *longer = malloc(10241);
    struct batch *b;
    struct label_bytes *l;
    struct frame *f;
    char *block;

    (void)state;
    memset(longer, 'x', 10240);
    longer[10240] = '\0';
    for (size_t i = 0; i < 10240; i += 97)
        longer[i] = (char)('a' + i % 26);
    b = rw_batch_from(builder, longer + 10240 - 40, 1, 0, AT);
    (void)batch_unref(b);
    batch_begin(builder, 0, 0);
    for (size_t i = 0; i < 40; i++) {
        struct batch_labels labels = {.escapes = ~0u};

        for (int k = 0; k < DS_LABELS; k++)
            labels.value[k] = STR("");
        labels.value[DS_NODE] = (struct str){longer, 10240 - i};
        labels.value[DS_APP] = i % 2 ? STR("ünïcode \"and\" \\") : STR("日本語\n");
        assert_int_equal(batch_add(builder, &labels, (double)i), 0);
    }
    batch_seal(builder, (unix_ms){AT}, &b, NULL);
    l = labels_of(b, "[{url: 'http://h/'}]");
    assert_int_equal(l->n, 40);
    f = frame_new(l, 0, l->n, AT);
    block = malloc(f->block_n);
    frame_fill(f, block, b->values, AT);
    assert_frame(f, l, 0, block, b->values, AT);
    assert_true(f->block_n < f->raw_n / 10);
    free(block);
    (void)frame_free(f);
    (void)label_bytes_free(l);
    (void)batch_unref(b);
    (void)batch_builder_free(builder);
    free(longer);
}

/* Labels without any order or likeness, so that all kinds of literals and copies come up. */
static void frames_random_labels(void **state)
{
    (void)state;
    for (int k = 0; k < 200; k++) {
        struct label_bytes l = {0};
        BUF_AUTO(bytes, 1 << 20);
        size_t at[65] = {0};
        uint32_t pick[64];
        struct frame *f;
        char *block;

        for (l.n = 0; l.n < 1 + rand_below(64); l.n++) {
            char value[600];
            size_t n = rand_below(2) ? rand_below(20) : rand_below(sizeof(value) - 1);

            for (size_t i = 0; i < n; i++)
                value[i] = (char)('a' + rand_below(1 + rand_below(4)));
            value[n] = '\0';
            Rw__V1__Label label = RW__V1__LABEL__INIT, *place = &label;
            Rw__V1__TimeSeries s = RW__V1__TIME_SERIES__INIT;
            char *room;
            label.name = (char *)(uintptr_t) "n";
            label.value = value;
            s.labels = &place;
            s.n_labels = 1;
            assert_int_equal(buf_reserve(&bytes, rw__v1__time_series__get_packed_size(&s), &room), 0);
            bytes.n += rw__v1__time_series__pack(&s, (uint8_t *)room);
            at[l.n + 1] = bytes.n;
            pick[l.n] = (uint32_t)l.n;
        }
        l.bytes = bytes;
        l.at = at;
        l.series = pick;
        f = frame_new(&l, 0, l.n, AT);
        block = malloc(f->block_n);
        frame_fill_markers(f, block, AT);
        assert_frame(f, &l, 0, block, NULL, AT);
        free(block);
        (void)frame_free(f);
    }
}

static void frames_timestamps_of_any_length(void **state)
{
    static const int64_t times[] = {0, 127, 128, 1ll << 35, (1ll << 42) - 1, 1ll << 42, INT64_MAX, -1};
    struct batch *b = rw_batch("score", 5, AT);
    struct label_bytes *l = labels_of(b, "[{url: 'http://h/'}]");

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
        struct frame *f;
        char *block;

        f = frame_new(l, 0, l->n, times[i]);
        assert_int_equal(f->time_n, varint_size((uint64_t)times[i]));
        block = malloc(f->block_n);
        frame_fill(f, block, b->values, times[i]);
        assert_frame(f, l, 0, block, b->values, times[i]);
        free(block);
        (void)frame_free(f);
    }
    (void)label_bytes_free(l);
    (void)batch_unref(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frames_any_subset_of_series),      cmocka_unit_test(writes_odd_values_exactly),
        cmocka_unit_test(frames_long_and_non_ascii_labels), cmocka_unit_test(frames_random_labels),
        cmocka_unit_test(frames_timestamps_of_any_length),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
