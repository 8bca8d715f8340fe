#include "exporter/base/base64.h"
#include "exporter/base/buf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void decodes_whole_texts_only(void **state)
{
    static const struct {
        const char *in, *out; /* NULL: refused */
    } cases[] = {
        {"", ""},
        {"Zg==", "f"},
        {"Zm8=", "fo"},
        {"Zm9v", "foo"},
        {"Zm9vYg==", "foob"},
        {"Zm9v\nYmE=\r\n", "fooba"},
        {"Zm9vYmFy", "foobar"},
        {"+/+/", "\xfb\xff\xbf"},
        {"Zg", NULL},
        {"Zg=", NULL},
        {"Zm9vY", NULL},
        {"Zm 9v", NULL},
        {"Zg==Zg==", NULL},
        {"Zg=g", NULL},
        {"====", NULL},
        {"-_-_", NULL},
        {"Zg===", NULL},
        {"Zm9v=", NULL},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(b, 100);
        buf_puts(&b, "x");
        assert_int_equal(buf_failed(&b), 0);
        assert_int_equal(base64_decode(str_of(cases[i].in), &b), cases[i].out ? 0 : -EINVAL);
        assert_int_equal(b.n, 1 + strlen(cstr(cases[i].out)));
        assert_memory_equal(b.p + 1, cstr(cases[i].out), b.n - 1);
    }
}

static void encodes_what_it_decodes(void **state)
{
    static const char *const texts[] = {"", "f", "fo", "foo", "foob", "\xfb\xff\xbf", "\xff\xff"};
    static const char *const encoded[] = {"", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "+/+/", "//8="};
    char out[64];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        assert_int_equal(base64_encode(str_of(texts[i]), out), strlen(encoded[i]));
        assert_memory_equal(out, encoded[i], strlen(encoded[i]));
    }
}

static void decodes_up_to_the_ceiling(void **state)
{
    BUF_AUTO(exact, 3);
    BUF_AUTO(less, 2);

    (void)state;
    assert_int_equal(base64_decode(STR("Zm9v"), &exact), 0);
    assert_int_equal(exact.n, 3);
    assert_int_equal(base64_decode(STR("Zm9v"), &less), -EFBIG);
    assert_int_equal(less.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decodes_whole_texts_only),
        cmocka_unit_test(encodes_what_it_decodes),
        cmocka_unit_test(decodes_up_to_the_ceiling),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
