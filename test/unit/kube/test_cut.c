#include "controller/kube/cut.h"
#include "controller/kube/json.h"
#include "exporter/base/buf.h"
#include "exporter/base/hash.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static uint64_t hash(struct str text)
{
    return hash_bytes(text);
}

static struct kube_cut cut = {.name = "long", .hash = hash};

/* A string of `n` times the text, escaped as it is given. */
static const char *times(const char *text, size_t n)
{
    static char out[8192];

    out[0] = '\0';
    for (size_t i = 0; i < n; i++)
        (void)strcat(out, text);
    return out;
}

static void expect(const char *text, const char *want)
{
    BUF_AUTO(b, 1u << 20);

    buf_puts(&b, "x");
    assert_int_equal(buf_failed(&b), 0);
    assert_int_equal(kube_cut(&cut, str_of(text), &b), 0);
    buf_putc(&b, '\0');
    assert_int_equal(buf_failed(&b), 0);
    assert_string_equal(b.p + 1, want);
}

static void leaves_other_text_as_it_is(void **state)
{
    static const char *const texts[] = {
        "",
        "{}",
        "{\"long\":\"short\"}",
        "{\"long\":7,\"other\":\"x\"}",
        "[\"long\",\"\\\"long\\\":\\\"not a member\\\"\"]",
        "{\"long\":\"no end",
        "{\"long\":\"bad escape \\x\"}",
        "not JSON at all",
    };
    char text[9000];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        expect(texts[i], texts[i]);
    (void)snprintf(text, sizeof(text), "{\"other\":\"%s\"}", times("x", 1000));
    expect(text, text);
    (void)snprintf(text, sizeof(text), "{\"long\":\"%s\"}", times("x", KUBE_CUT_MIN_BYTES));
    expect(text, text);
}

static void replaces_long_strings_of_the_member(void **state)
{
    char text[20000], want[200], plain[4096] = "";
    uint64_t h;

    (void)state;
    for (size_t i = 0; i < 300; i++)
        (void)strcat(plain, "a\"<\n");
    h = hash(str_of(plain));
    (void)snprintf(want, sizeof(want),
                   "{\"a\":[{\"long\":\"cut:%016llx\"}],\"long\":\"cut:%016llx\",\"z\":{}}",
                   (unsigned long long)h, (unsigned long long)h);
    /* Two spellings of one text have one hash. */
    (void)snprintf(text, sizeof(text), "{\"a\":[{\"long\":\"%s\"}],", times("a\\\"\\u003c\\n", 300));
    (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "\"long\":\"%s\",\"z\":{}}",
                   times("a\\\"<\\u000a", 300));
    expect(text, want);
}

static void reads_only_the_words_that_it_writes(void **state)
{
    static const char *const wrong[] = {"", "cut:", "cut:00000000000000000", "cut:000000000000000G",
                                        "Cut:0000000000000000"};
    uint64_t h = 0;

    (void)state;
    assert_true(kube_cut_read(STR("cut:0123456789abcdef"), &h));
    assert_true(h == UINT64_C(0x0123456789abcdef));
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        assert_false(kube_cut_read(str_of(wrong[i]), &h));
}

static void parses_to_the_same_document(void **state)
{
    char text[9000];
    json_t *o = NULL;
    uint64_t h;

    (void)state;
    (void)snprintf(text, sizeof(text), "{\"m\":{\"long\":\"%s\",\"n\":1}}", times("y", 1000));
    assert_int_equal(kube_json_parse_cut(&o, str_of(text), &cut, NULL), 0);
    assert_true(kube_cut_read(kube_text(o, "m", "long", NULL), &h));
    assert_true(h == hash(str_of(times("y", 1000))));
    json_decref(o);
    assert_int_equal(kube_json_parse_cut(&o, str_of(text), NULL, NULL), 0);
    assert_int_equal(kube_text(o, "m", "long", NULL).n, 1000);
    json_decref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(leaves_other_text_as_it_is),
        cmocka_unit_test(replaces_long_strings_of_the_member),
        cmocka_unit_test(reads_only_the_words_that_it_writes),
        cmocka_unit_test(parses_to_the_same_document),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
