#include "remotewrite/format.h"

#include "exporter/base/buf.h"
#include "remotewrite/format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { RECORDS = 4 };

/* Where each record begins; the last entry is the file's end. */
static size_t begins[RECORDS + 1];

static void make(struct buf *b)
{
    buf_put(b, segment_magic, SEGMENT_HEAD);
    assert_int_equal(buf_failed(b), 0);
    for (unsigned i = 0; i < RECORDS; i++) {
        char head[RECORD_HEAD], payload[64];
        struct str p = {payload, (size_t)snprintf(payload, sizeof(payload), "payload of %u", i)};
        struct record_head h = {.seq = i + 1,
                                .kind = i == 2 ? RECORD_MARKERS : RECORD_SAMPLES,
                                .samples = i * 10,
                                .first_ms = -5,
                                .last_ms = 1700000000000 + i,
                                .lane = i == 1 ? STR("") : STR("lane")};

        begins[i] = b->n;
        record_head_put(head, &h, p);
        buf_put(b, head, sizeof(head));
        buf_put_str(b, h.lane);
        buf_put_str(b, p);
        assert_int_equal(buf_failed(b), 0);
    }
    begins[RECORDS] = b->n;
}

/* Bit i: record i was read, whole and as it was written. */
static unsigned read_all(struct str bytes, unsigned *ret_damaged, bool *ret_torn)
{
    struct segment_reader r;
    struct segment_item item;
    enum segment_found what;
    unsigned seen = 0;
    size_t last = 0;

    *ret_damaged = 0;
    *ret_torn = false;
    r = (struct segment_reader){.bytes = bytes};
    while ((what = segment_next(&r, &item)) != SEGMENT_END) {
        char expected[64];

        assert_true(item.at >= last && item.at + item.n <= bytes.n);
        last = item.at + item.n;
        if (what != SEGMENT_RECORD) {
            *ret_damaged += what == SEGMENT_DAMAGE;
            *ret_torn = *ret_torn || what == SEGMENT_TORN;
            assert_true(item.n > 0);
            continue;
        }
        assert_in_range(item.head.seq, 1, RECORDS);
        (void)snprintf(expected, sizeof(expected), "payload of %u", (unsigned)item.head.seq - 1);
        assert_true(str_eq(item.payload, str_of(expected)));
        assert_int_equal(item.head.samples, (item.head.seq - 1) * 10);
        assert_int_equal(item.head.first_ms, -5);
        seen |= 1u << (item.head.seq - 1);
    }
    assert_int_equal(segment_next(&r, &item), SEGMENT_END);
    return seen;
}

static void reads_every_record(void **state)
{
    BUF_AUTO(b, 4096);
    unsigned damaged;
    bool torn;

    (void)state;
    make(&b);
    assert_int_equal(read_all(buf_str(&b), &damaged, &torn), (1u << RECORDS) - 1);
    assert_true(!damaged && !torn);
    assert_int_equal(read_all((struct str){b.p, SEGMENT_HEAD}, &damaged, &torn), 0);
    assert_true(!damaged && !torn);
    assert_int_equal(read_all((struct str){b.p, 0}, &damaged, &torn), 0);
}

static void loses_only_the_tail_of_a_cut_file(void **state)
{
    BUF_AUTO(b, 4096);

    (void)state;
    make(&b);
    for (size_t n = SEGMENT_HEAD; n < b.n; n++) {
        /* In memory of just this size, so that ASan sees every byte too far. */
        char *copy = malloc(n);
        unsigned damaged, expected = 0;
        bool torn, at_border = n == SEGMENT_HEAD;

        memcpy(copy, b.p, n);
        for (unsigned i = 0; i < RECORDS; i++) {
            expected |= begins[i + 1] <= n ? 1u << i : 0;
            at_border = at_border || begins[i + 1] == n;
        }
        assert_int_equal(read_all((struct str){copy, n}, &damaged, &torn), expected);
        assert_int_equal(torn, !at_border);
        assert_int_equal(damaged, 0);
        free(copy);
    }
}

static void loses_one_record_to_a_flipped_bit(void **state)
{
    BUF_AUTO(b, 4096);

    (void)state;
    make(&b);
    for (size_t at = 0; at < b.n; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            unsigned damaged, expected = (1u << RECORDS) - 1;
            bool torn;

            b.p[at] = (char)(b.p[at] ^ 1 << bit);
            for (unsigned i = 0; i < RECORDS; i++)
                if (at >= begins[i] && at < begins[i + 1])
                    expected &= ~(1u << i);
            assert_int_equal(read_all(buf_str(&b), &damaged, &torn), expected);
            /* A length that goes beyond the end of the file looks like a torn record. */
            assert_int_equal(damaged + torn, 1);
            assert_true(!torn || at >= begins[RECORDS - 1]);
            b.p[at] = (char)(b.p[at] ^ 1 << bit);
        }
}

static void ignores_trailing_garbage(void **state)
{
    BUF_AUTO(b, 8192);
    unsigned damaged;
    bool torn;

    (void)state;
    make(&b);
    for (unsigned i = 0; i < 2000; i++)
        buf_putc(&b, i < 1000 ? '\0' : (char)(i * 31));
    assert_int_equal(buf_failed(&b), 0);
    assert_int_equal(read_all(buf_str(&b), &damaged, &torn), (1u << RECORDS) - 1);
    assert_true(!torn && damaged == 1);
}

static void finds_records_without_the_beginning(void **state)
{
    BUF_AUTO(b, 4096);
    unsigned damaged;
    bool torn;

    (void)state;
    make(&b);
    assert_int_equal(read_all((struct str){b.p + SEGMENT_HEAD, b.n - SEGMENT_HEAD}, &damaged, &torn), 15);
    assert_int_equal(read_all((struct str){b.p + 3, b.n - 3}, &damaged, &torn), 15);
}

static void finds_nothing_in_other_files(void **state)
{
    unsigned damaged;
    bool torn;

    (void)state;
    assert_int_equal(read_all(STR("no segment at all"), &damaged, &torn), 0);
    assert_true(damaged == 1 && !torn);
    assert_int_equal(read_all(STR("x"), &damaged, &torn), 0);
    assert_true(damaged == 1 && !torn);
    assert_int_equal(read_all(STR("DSR"), &damaged, &torn), 0);
    assert_true(damaged == 0 && torn);
}

static void knows_segments_of_other_versions(void **state)
{
    static const struct {
        struct str bytes;
        bool other;
    } cases[] = {
        {STR("DSRWSEG2"), true},  {STR("DSRWSEG0 and more"), true},
        {STR("DSRWSEG1"), false}, {STR("DSRWSEG"), false},
        {STR(""), false},         {STR("DSRWSEG!"), false},
        {STR("DSRXSEG2"), false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(segment_has_other_version(cases[i].bytes), cases[i].other);
}

/* Sum of the samples that the heads of lost records tell. */
static unsigned lost_samples(struct str bytes)
{
    struct segment_reader r;
    struct segment_item item;
    enum segment_found what;
    unsigned samples = 0;

    r = (struct segment_reader){.bytes = bytes};
    while ((what = segment_next(&r, &item)) != SEGMENT_END) {
        struct record_head h;
        size_t end = item.at + item.n;

        if (what == SEGMENT_RECORD)
            continue;
        for (size_t at = item.at; segment_next_lost(bytes, &at, end, &h);) {
            assert_true(at <= end);
            assert_true(!h.lane.p || (h.lane.p >= bytes.p && h.lane.p + h.lane.n <= bytes.p + bytes.n));
            samples += h.samples;
        }
    }
    return samples;
}

/* A damaged payload leaves the head, which tells how many samples are lost; so does a cut one. */
static void tells_the_samples_of_lost_records(void **state)
{
    BUF_AUTO(b, 4096);

    (void)state;
    make(&b);
    assert_int_equal(lost_samples(buf_str(&b)), 0);
    for (size_t at = begins[1] + RECORD_HEAD; at < begins[2]; at++) {
        b.p[at] ^= 1;
        assert_int_equal(lost_samples(buf_str(&b)), 10);
        b.p[at] ^= 1;
    }
    b.p[begins[1]] ^= 1;
    assert_int_equal(lost_samples(buf_str(&b)), 10);
    b.p[begins[2] + RECORD_HEAD] ^= 1;
    assert_int_equal(lost_samples(buf_str(&b)), 10);
    for (size_t n = begins[RECORDS - 1] + 1; n < b.n; n++) {
        char *copy = malloc(n);

        memcpy(copy, b.p, n);
        copy[begins[1]] ^= 1;
        copy[begins[2] + RECORD_HEAD] ^= 1;
        assert_int_equal(lost_samples((struct str){copy, n}), 0);
        free(copy);
    }
}

static const struct position_lane lanes[] = {
    {STR("first"), 7, 1700000000000},
    {{"", 0}, 0, INT64_MIN},
    {STR("third"), UINT64_MAX, -1},
};

static void put_positions(struct buf *b)
{
    assert_int_equal(position_write(b, 42, lanes, ARRAY_SIZE(lanes)), 0);
}

static void reads_positions_over_older_bytes(void **state)
{
    BUF_AUTO(b, 4096);
    struct position_reader r;
    struct position_lane l;

    (void)state;
    put_positions(&b);
    buf_puts(&b, "what a longer file held here before");
    assert_int_equal(buf_failed(&b), 0);
    assert_true(position_open(&r, buf_str(&b)));
    assert_int_equal(r.generation, 42);
    for (size_t i = 0; i < ARRAY_SIZE(lanes); i++) {
        assert_true(position_next(&r, &l));
        assert_true(str_eq(l.name, lanes[i].name));
        assert_true(l.seq == lanes[i].seq && l.last_ms == lanes[i].last_ms);
    }
    assert_false(position_next(&r, &l));
}

static void refuses_damaged_positions(void **state)
{
    BUF_AUTO(b, 4096);
    struct position_reader r;

    (void)state;
    put_positions(&b);
    for (size_t n = 0; n < b.n; n++) {
        char *copy = malloc(n + 1);

        memcpy(copy, b.p, n);
        assert_false(position_open(&r, (struct str){copy, n}));
        free(copy);
    }
    for (size_t i = 0; i < b.n * 8; i++) {
        b.p[i / 8] = (char)(b.p[i / 8] ^ 1 << i % 8);
        assert_false(position_open(&r, buf_str(&b)));
        b.p[i / 8] = (char)(b.p[i / 8] ^ 1 << i % 8);
    }
}

static void sums_as_rfc_3720_does(void **state)
{
    char zeros[32] = {0}, ones[32];

    (void)state;
    memset(ones, 0xff, sizeof(ones));
    assert_int_equal(crc32c(0, STR("123456789")), 0xe3069283u);
    assert_int_equal(crc32c(crc32c(0, STR("1234")), STR("56789")), 0xe3069283u);
    assert_int_equal(crc32c(0, (struct str){zeros, 32}), 0x8a9136aau);
    assert_int_equal(crc32c(0, (struct str){ones, 32}), 0x62a8ab43u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_every_record),
        cmocka_unit_test(loses_only_the_tail_of_a_cut_file),
        cmocka_unit_test(loses_one_record_to_a_flipped_bit),
        cmocka_unit_test(ignores_trailing_garbage),
        cmocka_unit_test(finds_records_without_the_beginning),
        cmocka_unit_test(finds_nothing_in_other_files),
        cmocka_unit_test(knows_segments_of_other_versions),
        cmocka_unit_test(tells_the_samples_of_lost_records),
        cmocka_unit_test(reads_positions_over_older_bytes),
        cmocka_unit_test(refuses_damaged_positions),
        cmocka_unit_test(sums_as_rfc_3720_does),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
