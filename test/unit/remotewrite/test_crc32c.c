#include "remotewrite/crc32c.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void returns_the_published_values(void **state)
{
    char zeros[32] = {0}, ones[32];

    (void)state;
    memset(ones, 0xff, sizeof(ones));
    assert_int_equal(crc32c(0, (struct str){"", 0}), 0);
    assert_int_equal(crc32c(0, STR("123456789")), 0xe3069283u);
    /* RFC 3720, appendix B.4 */
    assert_int_equal(crc32c(0, (struct str){zeros, 32}), 0x8a9136aau);
    assert_int_equal(crc32c(0, (struct str){ones, 32}), 0x62a8ab43u);
}

static void continues_at_any_place(void **state)
{
    char bytes[100];

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * 37 + 11);
    for (size_t n = 0; n <= sizeof(bytes); n++)
        for (size_t cut = 0; cut <= n; cut += 7) {
            uint32_t whole = crc32c(0, (struct str){bytes, n});
            uint32_t begin = crc32c(0, (struct str){bytes, cut});

            assert_int_equal(crc32c(begin, (struct str){bytes + cut, n - cut}), whole);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(returns_the_published_values),
        cmocka_unit_test(continues_at_any_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
