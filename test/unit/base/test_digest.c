#include "exporter/base/def.h"
#include "exporter/base/digest.h"
#include "exporter/base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void tells_values_and_their_borders_apart(void **state)
{
    static const char *const cases[][2] = {{"user", "password"},
                                           {"userp", "assword"},
                                           {"", "userpassword"},
                                           {"userpassword", ""},
                                           {"user", "P"}};
    char digests[ARRAY_SIZE(cases)][DIGEST_TEXT_BYTES], again[DIGEST_TEXT_BYTES];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct str parts[] = {str_of(cases[i][0]), str_of(cases[i][1])};

        assert_int_equal(digest_parts(digests[i], parts, 2), 0);
        assert_int_equal(strlen(digests[i]), DIGEST_TEXT_BYTES - 1);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(digests[i], digests[j]);
        assert_int_equal(digest_parts(again, parts, 2), 0);
        assert_string_equal(again, digests[i]);
        assert_int_equal(digest_parts(again, parts, 1), 0);
        assert_string_not_equal(again, digests[i]);
    }
}

/* With an empty key, anyone can compute it. */
static void depends_on_the_key_of_the_process(void **state)
{
    char digest[DIGEST_TEXT_BYTES];

    (void)state;
    assert_int_equal(digest_parts(digest, &STR("abc"), 1), 0);
    assert_string_not_equal(digest, "46187e589e447f02c5c0aa97e7338a67a137f4c84cfdd9eb2ab6b5d32f51595f");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_values_and_their_borders_apart),
        cmocka_unit_test(depends_on_the_key_of_the_process),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
