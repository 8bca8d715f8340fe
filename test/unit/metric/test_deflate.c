/* What deflate_piece() writes, read back by zlib. */
#include "exporter/base/buf.h"
#include "exporter/metric/deflate.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <zlib.h>

#include <cmocka.h>

static uint64_t random_u64(void)
{
    static uint64_t x = 0xda3e39cb94b95bdb;

    x ^= x << 13;
    x ^= x >> 7;
    return x ^= x << 17;
}

/* Inflates what is at z; wbits as zlib takes them. The result's size is the caller's guess at most. */
static int inflate_all(struct str z, int wbits, struct buf *into, size_t room, z_stream *s)
{
    char *to;
    int r;

    *s = (z_stream){.next_in = (Bytef *)(uintptr_t)z.p, .avail_in = (uInt)z.n};
    assert_int_equal(inflateInit2(s, wbits), Z_OK);
    assert_int_equal(buf_room(into, room, &to), 0);
    s->next_out = (Bytef *)to;
    s->avail_out = (uInt)room;
    r = inflate(s, Z_FINISH);
    into->n += s->total_out;
    (void)inflateEnd(s);
    return r;
}

/* A piece alone never says that it is the last, so zlib must want more after all of it. */
static size_t round_trip(struct str text)
{
    BUF_AUTO(z, text.n * 2 + 100);
    BUF_AUTO(back, text.n + 1);
    z_stream s;

    assert_int_equal(deflate_piece(&z, text), 0);
    assert_int_equal(inflate_all(buf_str(&z), -15, &back, text.n + 1, &s), Z_BUF_ERROR);
    assert_int_equal(s.avail_in, 0);
    assert_true(str_eq(buf_str(&back), text));
    return z.n;
}

static void fill_random(char *p, size_t n, unsigned letters)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (char)(random_u64() >> 33 & (letters - 1));
}

static char text[300000];

static void returns_small_texts_intact(void **state)
{
    (void)state;
    assert_int_equal(round_trip(STR("")), 0);
    for (int c = 0; c < 256; c++)
        (void)round_trip((struct str){(char[]){(char)c}, 1});
    for (size_t n = 2; n < 600; n++) {
        fill_random(text, n, n % 2 ? 256 : 2);
        (void)round_trip((struct str){text, n});
    }
}

static void returns_random_bytes_intact_and_hardly_larger(void **state)
{
    (void)state;
    fill_random(text, sizeof(text), 256);
    assert_in_range(round_trip((struct str){text, sizeof(text)}), sizeof(text), sizeof(text) / 8 * 9 + 32);
    memset(text, 0xff, 10); /* all nine-bit codes */
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)(144 + i * i % 112);
    (void)round_trip((struct str){text, sizeof(text)});
}

/* Every length and every distance that a match can have, and those that it cannot. */
static void returns_runs_intact(void **state)
{
    (void)state;
    memset(text, 'a', sizeof(text));
    assert_in_range(round_trip((struct str){text, sizeof(text)}), 1, 3000);
    for (size_t n = 1; n < 800; n++)
        (void)round_trip((struct str){text, n});
    for (size_t period = 1; period < 700; period++) {
        for (size_t i = 0; i < 2000; i++)
            text[i] = (char)(i % period * 31 >> 1);
        (void)round_trip((struct str){text, 2000});
    }
}

/* A phrase that comes again `distance` bytes later, among bytes that do not repeat. */
static void returns_far_matches_intact(void **state)
{
    static const size_t distances[] = {1,    2,    3,    4,     5,     255,   256,   257,   258,   511,  512,
                                       1024, 8191, 8192, 16384, 24576, 32766, 32767, 32768, 32769, 65536};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(distances); i++)
        for (size_t length = 3; length < 300; length += 37) {
            fill_random(text, distances[i] + length, 256);
            for (size_t k = 0; k < length; k++)
                text[distances[i] + k] = text[k];
            (void)round_trip((struct str){text, distances[i] + length});
        }
}

static size_t write_exposition(char *to, size_t room, unsigned from)
{
    size_t n = 0;

    for (unsigned i = from; n + 300 < room; i++)
        n += (size_t)sprintf(
            to + n,
            "dynamic_score{ds_app=\"\",ds_cluster=\"cluster-1\",ds_container=\"\",ds_node=\"node-%u\","
            "ds_pod=\"web-%x\",ds_score_name=\"cpu\"} %u.%03u\n",
            i / 50, i * 2654435761u, i % 100, i * 7 % 1000);
    return n;
}

static void shrinks_exposition_text(void **state)
{
    size_t n = write_exposition(text, sizeof(text), 0);

    (void)state;
    assert_in_range(round_trip((struct str){text, n}), n / 20, n / 4);
}

static void returns_mutated_text_intact(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 300; i++) {
        size_t n = write_exposition(text, 20000, i * 31);
        for (size_t k = random_u64() % 200; k > 0; k--)
            text[random_u64() % n] = (char)random_u64();
        for (size_t k = random_u64() % 4; k > 0; k--) {
            size_t from = random_u64() % n, to = random_u64() % n, most = n - size_max(from, to);
            memmove(text + to, text + from, random_u64() % (most + 1));
        }
        (void)round_trip((struct str){text, n - random_u64() % 100});
    }
}

/* Many pieces between one beginning and one end are one gzip member, and zlib checks its sum and length. */
static void strings_pieces_into_one_member(void **state)
{
    (void)state;
    for (int round = 0; round < 50; round++) {
        BUF_AUTO(z, 4u << 20);
        BUF_AUTO(all, 4u << 20);
        BUF_AUTO(back, 8u << 20);
        char end[GZIP_END_BYTES];
        uint32_t crc = 0;
        z_stream s;
        assert_int_equal(buf_put_str(&z, gzip_begin), 0);
        for (size_t piece = random_u64() % 40; piece > 0; piece--) {
            size_t n = random_u64() % 3 ? random_u64() % 9000 : random_u64() % 3;
            fill_random(text, n, 1u << random_u64() % 9);
            crc = gzip_crc_join(crc, gzip_crc((struct str){text, n}), n);
            assert_int_equal(deflate_piece(&z, (struct str){text, n}), 0);
            assert_int_equal(buf_put(&all, text, n), 0);
        }
        gzip_end(end, crc, all.n);
        assert_int_equal(buf_put(&z, end, sizeof(end)), 0);
        assert_int_equal(crc, crc32(0, (const Bytef *)all.p, (uInt)all.n));
        assert_int_equal(inflate_all(buf_str(&z), 15 + 16, &back, all.n + 1, &s), Z_STREAM_END);
        assert_int_equal(s.avail_in, 0);
        assert_true(str_eq(buf_str(&back), buf_str(&all)));
        end[2 + round % 8] ^= 1; /* the test would see a wrong sum */
        memcpy(z.p + z.n - sizeof(end), end, sizeof(end));
        buf_truncate(&back, 0);
        assert_int_equal(inflate_all(buf_str(&z), 15 + 16, &back, all.n + 1, &s), Z_DATA_ERROR);
    }
}

static void joins_checksums(void **state)
{
    (void)state;
    assert_int_equal(gzip_crc(STR("")), 0);
    assert_int_equal(gzip_crc(STR("123456789")), 0xcbf43926);
    for (int i = 0; i < 200; i++) {
        size_t n = random_u64() % 1000, cut = n ? random_u64() % (n + 1) : 0;
        fill_random(text, n, 256);
        assert_int_equal(gzip_crc_join(gzip_crc((struct str){text, cut}),
                                       gzip_crc((struct str){text + cut, n - cut}), n - cut),
                         gzip_crc((struct str){text, n}));
    }
}

static void writes_the_length_modulo_4_gib(void **state)
{
    char end[GZIP_END_BYTES];

    (void)state;
    gzip_end(end, 0x04030201, ((uint64_t)7 << 32) + 0x08070605);
    assert_memory_equal(end, "\x03\x00\x01\x02\x03\x04\x05\x06\x07\x08", GZIP_END_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(returns_small_texts_intact),
        cmocka_unit_test(returns_random_bytes_intact_and_hardly_larger),
        cmocka_unit_test(returns_runs_intact),
        cmocka_unit_test(returns_far_matches_intact),
        cmocka_unit_test(shrinks_exposition_text),
        cmocka_unit_test(returns_mutated_text_intact),
        cmocka_unit_test(strings_pieces_into_one_member),
        cmocka_unit_test(joins_checksums),
        cmocka_unit_test(writes_the_length_modulo_4_gib),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
