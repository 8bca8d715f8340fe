#include "exporter/base/buf.h"
#include "remotewrite/position.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct position_lane lanes[] = {
    {STR("first"), 7, 1700000000000},
    {{"", 0}, 0, INT64_MIN},
    {STR("third"), UINT64_MAX, -1},
};

static int on_lane(void *arg, const struct position_lane *l)
{
    size_t *n = arg;

    assert_true(*n < ARRAY_SIZE(lanes));
    assert_true(str_eq(l->name, lanes[*n].name));
    assert_true(l->seq == lanes[*n].seq && l->last_ms == lanes[*n].last_ms);
    ++*n;
    return 0;
}

static void reads_back_what_it_wrote_over_older_bytes(void **state)
{
    BUF_AUTO(b, 4096);
    uint64_t generation = 0;
    size_t n = 0;

    (void)state;
    assert_int_equal(position_put(&b, 42, lanes, ARRAY_SIZE(lanes)), 0);
    assert_int_equal(buf_puts(&b, "what a longer file held here before"), 0);
    assert_int_equal(position_generation(buf_str(&b), &generation), 0);
    assert_int_equal(generation, 42);
    assert_int_equal(position_read(buf_str(&b), on_lane, &n), 0);
    assert_int_equal(n, ARRAY_SIZE(lanes));
}

static void refuses_a_damaged_file(void **state)
{
    BUF_AUTO(b, 4096);
    uint64_t generation;

    (void)state;
    assert_int_equal(position_put(&b, 42, lanes, ARRAY_SIZE(lanes)), 0);
    for (size_t n = 0; n < b.n; n++) {
        char *copy = malloc(n + 1);

        memcpy(copy, b.p, n);
        assert_int_equal(position_generation((struct str){copy, n}, &generation), -EBADMSG);
        free(copy);
    }
    for (size_t i = 0; i < b.n * 8; i++) {
        b.p[i / 8] = (char)(b.p[i / 8] ^ 1 << i % 8);
        assert_int_equal(position_generation(buf_str(&b), &generation), -EBADMSG);
        b.p[i / 8] = (char)(b.p[i / 8] ^ 1 << i % 8);
    }
}

static void leaves_a_full_buffer_unchanged(void **state)
{
    BUF_AUTO(b, 50);

    (void)state;
    assert_int_equal(position_put(&b, 1, lanes, ARRAY_SIZE(lanes)), -EFBIG);
    assert_int_equal(b.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_back_what_it_wrote_over_older_bytes),
        cmocka_unit_test(refuses_a_damaged_file),
        cmocka_unit_test(leaves_a_full_buffer_unchanged),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
