/* Typed getters: what is not there, and what is of another type, reads the same. */
#include "controller/kube/json.h"
#include "exporter/base/buf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const char text[] =
    "{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\",\"uid\":\"u\",\"resourceVersion\":\"7\","
    "\"labels\":{\"a.b/c\":\"l\"},\"annotations\":{\"x/y\":\"z\"}},\"i\":12,\"whole\":12.0,"
    "\"half\":12.5,\"huge\":1e300,\"t\":true,\"f\":false,\"null\":null,\"list\":[1],\"map\":{},"
    "\"nul\":\"a\\u0000b\",\"empty\":\"\"}";

static json_t *sample(void)
{
    json_t *o = NULL;

    assert_int_equal(kube_json_parse(&o, str_of(text), NULL), 0);
    return o;
}

static void reads_strings(void **state)
{
    json_auto_t *o = sample();

    (void)state;
    assert_string_equal(kube_str(o, "metadata", "name", NULL), "a");
    assert_string_equal(kube_str(o, "empty", NULL), "");
    assert_null(kube_str(o, "i", NULL));
    assert_null(kube_str(o, "null", NULL));
    assert_null(kube_str(o, "metadata", "name", "deeper", NULL));
    assert_null(kube_str(o, "list", "0", NULL));
    assert_null(kube_str(NULL, "a", NULL));
    assert_null(kube_str(o, "nul", NULL));
    assert_int_equal(kube_text(o, "nul", NULL).n, 3);
    assert_null(kube_text(o, "absent", NULL).p);
    assert_int_equal(kube_text(o, "absent", NULL).n, 0);
}

static void reads_metadata(void **state)
{
    json_auto_t *o = sample();

    (void)state;
    assert_string_equal(kube_name(o), "a");
    assert_string_equal(kube_namespace(o), "ns");
    assert_string_equal(kube_uid(o), "u");
    assert_string_equal(kube_version(o), "7");
    assert_string_equal(kube_label(o, "a.b/c"), "l");
    assert_string_equal(kube_annotation(o, "x/y"), "z");
    assert_null(kube_label(o, "x/y"));
    assert_string_equal(kube_name(NULL), "");
}

static void reads_integers(void **state)
{
    static const struct {
        const char *name;
        bool is_int;
    } cases[] = {{"i", true},  {"whole", true},  {"half", false},  {"huge", false},
                 {"t", false}, {"empty", false}, {"absent", false}};
    json_auto_t *o = sample();

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int64_t n = -1;
        assert_int_equal(kube_int(o, &n, cases[i].name, NULL), cases[i].is_int);
        assert_int_equal(n, cases[i].is_int ? 12 : -1);
    }
}

static void reads_lists_maps_and_bools(void **state)
{
    json_auto_t *o = sample(), *names = json_pack("[s, i, s]", "a", 1, "b");
    bool b = false;

    (void)state;
    assert_true(kube_bool(o, &b, "t", NULL) && b);
    assert_true(kube_bool(o, &b, "f", NULL) && !b);
    assert_false(kube_bool(o, &b, "i", NULL));
    assert_int_equal(json_array_size(kube_list(o, "list", NULL)), 1);
    assert_null(kube_list(o, "map", NULL));
    assert_true(kube_list_has(names, "b") && !kube_list_has(names, "c"));
    assert_false(kube_list_has(NULL, "a"));
    assert_non_null(kube_map(o, "map", NULL));
    assert_null(kube_map(o, "list", NULL));
    assert_null(kube_get(o, "null", NULL));
}

static void rejects_invalid_json_without_quoting_it(void **state)
{
    static const char *const cases[] = {"", "{", "{\"a\":}", "{\"secret\":tru}", "[1,]", "{} x"};
    char why[256];
    json_t *o;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        why[0] = '\0';
        assert_int_equal(kube_json_parse(&o, str_of(cases[i]), why), -EINVAL);
        assert_non_null(strstr(why, "line 1"));
        assert_null(strstr(why, "secret"));
    }
}

static void prints_compact_json(void **state)
{
    json_auto_t *o = sample(), *small = json_pack("{s:[i, s]}", "a", 1, "\xc3\xa4");
    BUF_AUTO(b, 1 << 20);
    BUF_AUTO(tiny, 20);

    (void)state;
    assert_int_equal(kube_json_print(small, &b), 0);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    assert_string_equal(b.p, "{\"a\":[1,\"\xc3\xa4\"]}");
    assert_int_equal(buf_puts(&tiny, "x"), 0);
    assert_int_equal(kube_json_print(o, &tiny), -EFBIG);
    assert_int_equal(tiny.n, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_strings),
        cmocka_unit_test(reads_metadata),
        cmocka_unit_test(reads_integers),
        cmocka_unit_test(reads_lists_maps_and_bools),
        cmocka_unit_test(rejects_invalid_json_without_quoting_it),
        cmocka_unit_test(prints_compact_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
