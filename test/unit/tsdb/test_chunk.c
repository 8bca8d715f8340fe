/* What is read is what was written, bit by bit. */
#include "exporter/tsdb/chunk.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct point {
    int64_t t;
    uint64_t v;
};

static uint64_t random_bits(void)
{
    return (uint64_t)mrand48() << 32 ^ (uint64_t)(uint32_t)mrand48();
}

static uint64_t bits_of_double(double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof(bits));
    return bits;
}

/* Writes a chunk into `to` and returns its head. */
static struct chunk_head write_chunk(struct chunk_codec *c, const struct point *points, unsigned n,
                                     unsigned char to[CHUNK_MAX_BYTES + CHUNK_PAD])
{
    struct chunk_head head;

    memset(to, 0, CHUNK_MAX_BYTES + CHUNK_PAD);
    chunk_start(&head, c, points[0].t, points[0].v);
    for (unsigned i = 1; i < n; i++) {
        struct chunk_bits bits = {.bytes = {to[head.bits / 8]}, .n = head.bits % 8};

        chunk_encode(c, &bits, points[i].t, points[i].v);
        assert_true(bits.n - head.bits % 8 <= CHUNK_MAX_SAMPLE_BITS);
        memcpy(to + head.bits / 8, bits.bytes, (bits.n + 7) / 8);
        head.bits = (uint16_t)(head.bits / 8 * 8 + bits.n);
        head.count++;
    }
    return head;
}

static void check_chunk(const struct chunk_head *head, const unsigned char *bytes, const struct point *points,
                        unsigned n)
{
    struct chunk_reader r;
    struct point p;

    chunk_reader_init(&r, head, bytes);
    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(chunk_next(&r, &p.t, &p.v), 1);
        if (p.t != points[i].t || p.v != points[i].v)
            fail_msg("sample %u: %lld %016llx, not %lld %016llx", i, (long long)p.t, (unsigned long long)p.v,
                     (long long)points[i].t, (unsigned long long)points[i].v);
    }
    assert_int_equal(chunk_next(&r, &p.t, &p.v), 0);
}

/* Several chunks after each other, each read alone. Returns bits for each sample. */
static double round_trip(struct point (*make)(unsigned i, struct point before), unsigned rounds)
{
    static unsigned char bytes[CHUNK_MAX_BYTES + CHUNK_PAD];
    struct point points[CHUNK_MAX_SAMPLES], last = {.t = 1790000000000};
    struct chunk_codec c;
    uint64_t bits = 0;

    chunk_codec_init(&c);
    for (unsigned round = 0; round < rounds; round++) {
        struct chunk_head head;

        for (unsigned i = 0; i < CHUNK_MAX_SAMPLES; i++)
            last = points[i] = make(round * CHUNK_MAX_SAMPLES + i, last);
        head = write_chunk(&c, points, CHUNK_MAX_SAMPLES, bytes);
        check_chunk(&head, bytes, points, CHUNK_MAX_SAMPLES);
        bits += head.bits;
    }
    return (double)bits / rounds / CHUNK_MAX_SAMPLES;
}

static struct point steady(struct point before, double v)
{
    return (struct point){before.t + 15000, bits_of_double(v)};
}

static double double_before(struct point before)
{
    double v;

    memcpy(&v, &before.v, sizeof(v));
    return v;
}

static struct point make_constant(unsigned i, struct point before)
{
    (void)i;
    return steady(before, 42);
}

static struct point make_counter(unsigned i, struct point before)
{
    (void)i;
    return steady(before, double_before(before) + floor(drand48() * 200));
}

static struct point make_percent(unsigned i, struct point before)
{
    (void)i;
    return steady(before, round(drand48() * 10000) / 100);
}

static struct point make_double(unsigned i, struct point before)
{
    (void)i;
    return steady(before, drand48());
}

static void stores_usual_values_in_few_bits(void **state)
{
    (void)state;
    srand48(1);
    assert_true(round_trip(make_constant, 20) < 3);
    assert_true(round_trip(make_counter, 20) < 11);
    assert_true(round_trip(make_percent, 20) < 17);
    assert_true(round_trip(make_double, 20) < 56);
}

static struct point make_any(unsigned i, struct point before)
{
    (void)i;
    return (struct point){(int64_t)random_bits(), before.v ^ random_bits()};
}

/* Steps through all that a series may hold, for a few samples each. */
static struct point make_mixed(unsigned i, struct point before)
{
    static const uint64_t specials[] = {
        0x7ff0000000000002, /* a stale marker */
        0x7ff8000000000000,
        0xfff8000000000001,
        0x7fffffffffffffff, /* other NaNs */
        0x7ff0000000000000,
        0xfff0000000000000, /* infinities */
        0x8000000000000000,
        0,
        1,
        0x000fffffffffffff, /* zeros and denormal numbers */
        0x7fefffffffffffff,
        0xffefffffffffffff, /* the greatest ones */
        0x43d0000000000000,
        0xc3d0000000000000,
        0x43cfffffffffffff, /* around 2^62 */
    };
    static const double numbers[] = {0.1, 0.5, 1, 1e15, 9007199254740993.0, -3, 0.1 + 0.2, 1e-12, 1e300};
    struct point p = {before.t + 1 + (int64_t)(random_bits() % 3 ? 0 : random_bits() % 100000), before.v};

    switch (i / 7 % 5) {
    case 0:
        p.v = specials[random_bits() % ARRAY_SIZE(specials)];
        break;
    case 1:
        p.v = bits_of_double(numbers[random_bits() % ARRAY_SIZE(numbers)]);
        break;
    case 2:
        p.v = random_bits() % 4 ? bits_of_double(floor(drand48() * 1000)) : specials[0];
        break;
    case 3:
        p.v = random_bits() % 4 ? bits_of_double(round(drand48() * 1e6) / 1e3) : random_bits();
        break;
    default:
        p.v = bits_of_double(drand48() - 0.5);
    }
    return p;
}

static void keeps_every_bit(void **state)
{
    (void)state;
    srand48(2);
    (void)round_trip(make_mixed, 2000);
    (void)round_trip(make_any, 500);
}

static struct point make_extreme(unsigned i, struct point before)
{
    static const int64_t times[] = {INT64_MIN, INT64_MAX, 0, -1, INT64_MIN + 1, INT64_MAX - 1};

    return (struct point){times[i % ARRAY_SIZE(times)], before.v + 1};
}

static void wraps_differences_of_extreme_timestamps(void **state)
{
    (void)state;
    (void)round_trip(make_extreme, 3);
}

static void rejects_a_truncated_stream(void **state)
{
    static unsigned char bytes[CHUNK_MAX_BYTES + CHUNK_PAD];
    struct point points[CHUNK_MAX_SAMPLES], last = {.t = 1790000000000}, p;
    struct chunk_codec c;
    struct chunk_head head;
    struct chunk_reader r;

    (void)state;
    for (unsigned i = 0; i < CHUNK_MAX_SAMPLES; i++)
        last = points[i] = make_mixed(i, last);
    chunk_codec_init(&c);
    head = write_chunk(&c, points, CHUNK_MAX_SAMPLES, bytes);
    for (unsigned bits = 0; bits < head.bits; bits++) {
        struct chunk_head cut = head;
        int result;

        cut.bits = (uint16_t)bits;
        chunk_reader_init(&r, &cut, bytes);
        do
            result = chunk_next(&r, &p.t, &p.v);
        while (result == 1);
        assert_int_equal(result, -EBADMSG);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stores_usual_values_in_few_bits),
        cmocka_unit_test(keeps_every_bit),
        cmocka_unit_test(wraps_differences_of_extreme_timestamps),
        cmocka_unit_test(rejects_a_truncated_stream),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
