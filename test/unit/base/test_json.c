#include "exporter/base/buf.h"
#include "exporter/base/escape.c"
#include "exporter/base/json.c" /* their static functions are tested too */
#include "exporter/base/json.h"
#include "exporter/base/scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* A heap copy of exactly s.n bytes, so that AddressSanitizer sees each byte read past the end. */
static char *exact(struct str s)
{
    char *copy = malloc(s.n ? s.n : 1);

    assert_non_null(copy);
    if (s.n)
        memcpy(copy, s.p, s.n);
    return copy;
}

/* Reads a whole value token by token, with the pull calls alone. */
static void pull(struct jr *j)
{
    struct str key;

    switch (jr_peek(j)) {
    case JR_OBJECT:
        for (jr_object(j); jr_member(j, &key);)
            pull(j);
        break;
    case JR_ARRAY:
        for (jr_array(j); jr_item(j);)
            pull(j);
        break;
    case JR_STRING:
        jr_string(j, NULL);
        break;
    case JR_NUMBER:
    case JR_NONFINITE:
        jr_number(j, NULL);
        break;
    default:
        jr_skip(j, NULL);
    }
}

/* Reads text both ways, which must agree on the error and its place. Returns the error. */
static const char *read_both(struct str text, unsigned flags, size_t *ret_at)
{
    char *copy = exact(text);
    struct jr skipped, pulled;
    bool good;

    jr_init(&skipped, (struct str){copy, text.n}, flags);
    good = jr_skip(&skipped, NULL) && jr_end(&skipped);
    assert_int_equal(good, skipped.error == NULL);
    jr_init(&pulled, (struct str){copy, text.n}, flags);
    pull(&pulled);
    good = jr_end(&pulled);
    assert_int_equal(good, pulled.error == NULL);
    if (!skipped.error != !pulled.error || skipped.error_at != pulled.error_at ||
        (skipped.error && strcmp(skipped.error, pulled.error) != 0))
        fail_msg("%.*s: %s at %zu, %s at %zu", (int)text.n, text.p, cstr(skipped.error), skipped.error_at,
                 cstr(pulled.error), pulled.error_at);
    assert_true(skipped.error || skipped.depth == 0);
    free(copy);
    *ret_at = skipped.error_at;
    return skipped.error;
}

static void check_error(struct str text, unsigned flags, const char *error, size_t at)
{
    size_t got_at;
    const char *got = read_both(text, flags, &got_at);

    if ((error == NULL) != (got == NULL) || (error && (strcmp(error, got) != 0 || at != got_at)))
        fail_msg("`%.*s`: %s at %zu, expected %s at %zu", (int)text.n, text.p, cstr(got), got_at, cstr(error),
                 at);
}

static void good_texts(void **state)
{
    static const struct str texts[] = {
        STR("0"),
        STR("-0"),
        STR("10"),
        STR("-1.5e-7"),
        STR("1E+5"),
        STR("1e05"),
        STR("0.0"),
        STR("0e0"),
        STR("true"),
        STR("false"),
        STR("null"),
        STR("\"\""),
        STR("\"\x7f\""),
        STR("[]"),
        STR("{}"),
        STR(" [ ] "),
        STR("\t{\n}\r "),
        STR("[[[]]]"),
        STR("[{}]"),
        STR("{\"\":{}}"),
        STR("{\"a\":1,\"a\":2}"),
        STR("[1,2 , 3]"),
        STR("[null,true,false]"),
        STR("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0000\\uABcd\""),
        STR("\"\\ud83d\\ude00\""),
        STR("\"\\ud800\""),
        STR("\"\\udc00x\""),
        STR("\"\xc3\xa9\xe6\x97\xa5\xf0\x9f\x98\x80\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf\""),
        STR("\"\xe2\x80\xa8\""),
        STR("{\"a\" : [ 1 , { \"b\" : \"c\" } ] , \"d\" : null }"),
        STR("123456789012345678901234567890"),
        STR("1.00000000000000000000000000000000000000000000001e-400"),
        STR("{\"a\":[],\"b\":{}}"),
        STR("[\"0123456789012345678901234567890123456789012345678901234567890123456789\"]"),
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        check_error(texts[i], JR_STRICT, NULL, 0);
}

static const struct {
    struct str text;
    const char *error;
    size_t at;
} bad_texts[] = {
    {STR(""), "unexpected end", 0},
    {STR("  "), "unexpected end", 2},
    {STR("["), "unexpected end", 1},
    {STR("{"), "unexpected end", 1},
    {STR("[1"), "unexpected end", 2},
    {STR("[1,"), "unexpected end", 3},
    {STR("{\"a\""), "unexpected end", 4},
    {STR("{\"a\":"), "unexpected end", 5},
    {STR("{\"a\":1"), "unexpected end", 6},
    {STR("{\"a\":1,"), "unexpected end", 7},
    {STR("\"abc"), "unexpected end", 4},
    {STR("\"abc\\"), "unexpected end", 5},
    {STR("\"\\u12"), "unexpected end", 5},
    {STR("-"), "unexpected end", 1},
    {STR("1."), "unexpected end", 2},
    {STR("1e"), "unexpected end", 2},
    {STR("1e-"), "unexpected end", 3},
    {STR("]"), "expected a value", 0},
    {STR("}"), "expected a value", 0},
    {STR(","), "expected a value", 0},
    {STR("x"), "expected a value", 0},
    {STR("tru"), "expected a value", 0},
    {STR("True"), "expected a value", 0},
    {STR("nul"), "expected a value", 0},
    {STR("+1"), "expected a value", 0},
    {STR(".5"), "expected a value", 0},
    {STR("'a'"), "expected a value", 0},
    {STR("NaN"), "expected a value", 0},
    {STR("Infinity"), "expected a value", 0},
    {STR("\xef\xbb\xbf[]"), "expected a value", 0},
    {STR("\0"), "expected a value", 0},
    {STR("/**/1"), "expected a value", 0},
    {STR("\v1"), "expected a value", 0},
    {STR("[,1]"), "expected a value", 1},
    {STR("[1,]"), "expected a value", 3},
    {STR("[1,,2]"), "expected a value", 3},
    {STR("{\"a\":}"), "expected a value", 5},
    {STR("{\"a\":,}"), "expected a value", 5},
    {STR("[1}"), "expected ',' or ']'", 2},
    {STR("[1 2]"), "expected ',' or ']'", 3},
    {STR("[1:2]"), "expected ',' or ']'", 2},
    {STR("[\"a\"\"b\"]"), "expected ',' or ']'", 4},
    {STR("[truex]"), "expected ',' or ']'", 5},
    {STR("[1\0]"), "expected ',' or ']'", 2},
    {STR("{\"a\":1]"), "expected ',' or '}'", 6},
    {STR("{\"a\":1 \"b\":2}"), "expected ',' or '}'", 7},
    {STR("{\"a\":\"b\":1}"), "expected ',' or '}'", 8},
    {STR("{1:2}"), "expected a name in quotes", 1},
    {STR("{,}"), "expected a name in quotes", 1},
    {STR("{]"), "expected a name in quotes", 1},
    {STR("{a:1}"), "expected a name in quotes", 1},
    {STR("{\"a\":1,}"), "expected a name in quotes", 7},
    {STR("{\"a\",1}"), "expected ':'", 4},
    {STR("{\"a\"}"), "expected ':'", 4},
    {STR("{\"a\"::1}"), "expected a value", 5},
    {STR("1 2"), "unexpected data after the value", 2},
    {STR("{}{}"), "unexpected data after the value", 2},
    {STR("[]]"), "unexpected data after the value", 2},
    {STR("1a"), "unexpected data after the value", 1},
    {STR("0x1"), "unexpected data after the value", 1},
    {STR("\"a\"b"), "unexpected data after the value", 3},
    {STR("01"), "number with a leading zero", 0},
    {STR("[-00]"), "number with a leading zero", 2},
    {STR("[-01.5]"), "number with a leading zero", 2},
    {STR("[1.]"), "expected a digit", 3},
    {STR("[1.e5]"), "expected a digit", 3},
    {STR("[1e]"), "expected a digit", 3},
    {STR("[1e+]"), "expected a digit", 4},
    {STR("[1e+-5]"), "expected a digit", 4},
    {STR("[-]"), "expected a digit", 2},
    {STR("[-a]"), "expected a digit", 2},
    {STR("[--1]"), "expected a digit", 2},
    {STR("[-Infinity]"), "expected a digit", 2},
    {STR("[1.5.5]"), "expected ',' or ']'", 4},
    {STR("\"\\x\""), "invalid escape", 2},
    {STR("\"\\\0\""), "invalid escape", 2},
    {STR("\"\\U0041\""), "invalid escape", 2},
    {STR("\"\\u12G4\""), "expected four hexadecimal digits", 5},
    {STR("\"\\u \""), "expected four hexadecimal digits", 3},
    {STR("\"\\u-123\""), "expected four hexadecimal digits", 3},
    {STR("\"\\u123\""), "expected four hexadecimal digits", 6},
    {STR("\"a\tb\""), "control character in a string", 2},
    {STR("\"a\nb\""), "control character in a string", 2},
    {STR("\"\0\""), "control character in a string", 1},
    {STR("\"\x1f\""), "control character in a string", 1},
    {STR("{\"a\nb\":1}"), "control character in a string", 3},
    {STR("\"\x80\""), "ill-formed UTF-8", 1},
    {STR("\"a\xff\""), "ill-formed UTF-8", 2},
    {STR("\"\xc0\x80\""), "ill-formed UTF-8", 1},
    {STR("\"\xc3\""), "ill-formed UTF-8", 1},
    {STR("\"\xc3"), "ill-formed UTF-8", 1},
    {STR("\"\xe6\x97\""), "ill-formed UTF-8", 1},
    {STR("\"\xc3\xa9\xed\xa0\x80\""), "ill-formed UTF-8", 3},
    {STR("\"\xf4\x90\x80\x80\""), "ill-formed UTF-8", 1},
    {STR("{\"\xf8\":1}"), "ill-formed UTF-8", 2},
};

static void refused_texts(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad_texts); i++)
        check_error(bad_texts[i].text, JR_STRICT, bad_texts[i].error, bad_texts[i].at);
}

/* The same far inside a longer text, where blocks of bytes are looked at and not single ones. */
static void refused_inside(void **state)
{
    struct str after =
        STR(",\"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567\"]");
    char text[1024];

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(bad_texts); i++)
        for (size_t before = 3; before < 140; before++) {
            bool open = strcmp(bad_texts[i].error, "unexpected end") == 0;
            if (strcmp(bad_texts[i].error, "unexpected data after the value") == 0 ||
                bad_texts[i].text.n == 0 || bad_texts[i].text.p[0] == ']')
                continue;
            memset(text, 'x', sizeof text);
            memcpy(text, "[\"", 2);
            memcpy(text + before, "\",", 2);
            memcpy(text + before + 2, bad_texts[i].text.p, bad_texts[i].text.n);
            size_t n = before + 2 + bad_texts[i].text.n;
            if (!open) {
                memcpy(text + n, after.p, after.n);
                n += after.n;
            }
            check_error((struct str){text, n}, JR_STRICT, bad_texts[i].error, before + 2 + bad_texts[i].at);
        }
}

static void flags(void **state)
{
    (void)state;
    check_error(STR("\"\xff\xc3\""), JR_LENIENT_UTF8, NULL, 0);
    check_error(STR("{\"\xe6\x97\":\"\xed\xa0\x80\"}"), JR_LENIENT_UTF8, NULL, 0);
    check_error(STR("\"\xc3"), JR_LENIENT_UTF8, "unexpected end", 2);
    check_error(STR("\"\xff\n\""), JR_LENIENT_UTF8, "control character in a string", 2);
    check_error(STR("[NaN,Infinity,-Infinity]"), JR_NAN_WORDS, NULL, 0);
    check_error(STR("[-Infinit]"), JR_NAN_WORDS, "expected a value", 1);
    check_error(STR("[Infinitys]"), JR_NAN_WORDS, "expected ',' or ']'", 9);
    check_error(STR("[-NaN]"), JR_NAN_WORDS, "expected a digit", 2);
    check_error(STR("[nan]"), JR_NAN_WORDS, "expected a value", 1);
    check_error(STR("[NaN]"), JR_STRICT, "expected a value", 1);
}

static void depth(void **state)
{
    char text[2 * (JR_MAX_DEPTH + 1)];
    size_t at;

    (void)state;
    for (size_t n = JR_MAX_DEPTH - 1; n <= JR_MAX_DEPTH + 1; n++) {
        memset(text, '[', n);
        memset(text + n, ']', n);
        check_error((struct str){text, 2 * n}, JR_STRICT,
                    n > JR_MAX_DEPTH ? "nested deeper than 256 levels" : NULL, JR_MAX_DEPTH);
    }
    /* Objects and arrays in turn, so that each level's kind counts. */
    BUF_AUTO(b, 4096);
    for (int i = 0; i < JR_MAX_DEPTH; i++)
        buf_puts(&b, i % 3 ? "{\"a\":" : "[");
    buf_puts(&b, "1");
    for (int i = JR_MAX_DEPTH - 1; i >= 0; i--)
        buf_puts(&b, i % 3 ? "}" : "]");
    assert_int_equal(buf_failed(&b), 0);
    assert_null(read_both(buf_str(&b), JR_STRICT, &at));
    b.p[b.n - 100] = b.p[b.n - 100] == '}' ? ']' : '}';
    assert_non_null(read_both(buf_str(&b), JR_STRICT, &at));
    assert_int_equal(at, b.n - 100);
    /* Samples at the limit are too deep by one. */
    buf_truncate(&b, 0);
    for (int i = 0; i < JR_MAX_DEPTH; i++)
        buf_puts(&b, "[");
    for (int i = 0; i < 4; i++)
        buf_puts(&b, "[1718600000,\"1.1\"],");
    assert_int_equal(buf_failed(&b), 0);
    assert_string_equal(read_both(buf_str(&b), JR_STRICT, &at), "nested deeper than 256 levels");
    assert_int_equal(at, JR_MAX_DEPTH);
}

/* Every byte of a range answer, changed, cut or taken away: the loops for samples and blocks against the
 * pull calls. */
static void each_byte_of_a_range_answer(void **state)
{
    static const char answer[] = "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{"
                                 "\"metric\":{\"__name__\":\"up\",\"node\":"
                                 "\"a much longer name than sixty-four bytes, which no block of bytes holds "
                                 "at once\",\"job\":\"\"},\"values\":[["
                                 "1718600000,\"1.1\"],[1718600060.123,\"0.014498105493169442\"],[1718600120."
                                 "12,\"NaN\"],[1718600180.1,\"\xc3\xa9\"],["
                                 "1718600240.1234,\"0.014498105493169442014498105493169442\"],[171860030,"
                                 "\"1\"],[-1718600360,\"\\n\"],[1718600420.5 ,"
                                 "\"2\"],[1718600480,\"3\"],[0718600540,\"4\"]]},{\"metric\":{},\"values\":[["
                                 "1718600000,\"1\"],[1718600060,\"2\"],["
                                 "1718600120,\"3\"],[1718600180.789,\"4\"]]}]}}";
    static const char changes[] = "\"\\[]{},:0.-e \n\x80\xc3x";
    char text[sizeof answer];
    size_t n = sizeof answer - 1, at;

    (void)state;
    assert_string_equal(read_both((struct str){answer, n}, 0, &at), "number with a leading zero");
    for (size_t i = 0; i < n; i++) {
        memcpy(text, answer, n);
        text[strstr(text, "0718600540") - text] = '1';
        read_both((struct str){text, i}, 0, &at);
        for (size_t c = 0; c < sizeof changes; c++) {
            char was = text[i];
            text[i] = changes[c];
            read_both((struct str){text, n}, 0, &at);
            read_both((struct str){text, n}, JR_LENIENT_UTF8, &at);
            text[i] = was;
        }
        assert_null(read_both((struct str){text, n}, 0, &at));
        memmove(text + i, text + i + 1, n - i - 1);
        read_both((struct str){text, n - 1}, 0, &at);
    }
}

/* The byte-at-once searches against the plainest loop, for all bytes at all places. */
static void masks(void **state)
{
    char bytes[SCAN_STOPS];

    (void)state;
    for (int fill = 0; fill < 256; fill += 17)
        for (int c = 0; c < 256; c++)
            for (size_t i = 0; i < sizeof bytes; i++) {
                uint32_t stops = 0, others = 0;
                memset(bytes, fill, sizeof bytes);
                bytes[i] = (char)c;
                for (size_t k = 0; k < sizeof bytes; k++) {
                    unsigned char b = (unsigned char)bytes[k];
                    stops |= (uint32_t)(b < 0x20 || b >= 0x80 || b == '"' || b == '\\') << k;
                    others |= (uint32_t)(k < 16 && (b < '0' || b > '9')) << (k % 16);
                }
                assert_int_equal(scan_stops(bytes), stops);
                assert_int_equal(scan_not_digits(bytes), others);
            }
}

static void pull_values(void **state)
{
    struct str text = STR(" {\"a\" : \"x\\ty\", \"b\":[1, -2.5e3 ,{}], \"c\":{\"d\":null},\"e\":[]} ");
    struct str key, s = {0};
    struct jr j;

    (void)state;
    jr_init(&j, text, JR_STRICT);
    assert_int_equal(jr_peek(&j), JR_OBJECT);
    assert_true(jr_object(&j));
    assert_true(jr_member(&j, &key) && str_eq(key, STR("a")));
    assert_int_equal(jr_peek(&j), JR_STRING);
    assert_true(jr_string(&j, &s) && str_eq(s, STR("x\\ty")));
    assert_true(jr_member(&j, &key) && str_eq(key, STR("b")));
    assert_true(jr_array(&j));
    assert_true(jr_item(&j) && jr_number(&j, &s) && str_eq(s, STR("1")));
    assert_true(jr_item(&j) && jr_peek(&j) == JR_NUMBER && jr_number(&j, &s) && str_eq(s, STR("-2.5e3")));
    assert_true(jr_item(&j) && jr_object(&j) && !jr_member(&j, &key));
    assert_false(jr_item(&j));
    assert_true(jr_member(&j, &key) && str_eq(key, STR("c")));
    assert_true(jr_skip(&j, &s) && str_eq(s, STR("{\"d\":null}")));
    assert_true(jr_member(&j, &key) && jr_array(&j) && !jr_item(&j));
    assert_false(jr_member(&j, &key));
    assert_true(jr_end(&j));
    assert_null(j.error);
}

static void pull_wrong_type(void **state)
{
    struct jr j;
    struct str s;

    (void)state;
    jr_init(&j, STR(" [true]"), JR_STRICT);
    assert_false(jr_object(&j));
    assert_string_equal(j.error, "expected an object");
    assert_int_equal(j.error_at, 1);
    jr_init(&j, STR("{}"), JR_STRICT);
    assert_false(jr_array(&j));
    assert_string_equal(j.error, "expected an array");
    jr_init(&j, STR("1"), JR_STRICT);
    assert_false(jr_string(&j, &s));
    assert_string_equal(j.error, "expected a string");
    jr_init(&j, STR("\"1\""), JR_STRICT);
    assert_false(jr_number(&j, &s));
    assert_string_equal(j.error, "expected a number");
    jr_init(&j, STR("NaN"), JR_STRICT);
    assert_false(jr_number(&j, &s));
    assert_string_equal(j.error, "expected a number");
    jr_init(&j, STR(""), JR_STRICT);
    assert_false(jr_array(&j));
    assert_string_equal(j.error, "unexpected end");
}

static void pull_types(void **state)
{
    static const struct {
        const char *text;
        enum jr_type strict, words;
    } cases[] = {
        {"{", JR_OBJECT, JR_OBJECT},   {"[", JR_ARRAY, JR_ARRAY},      {"\"", JR_STRING, JR_STRING},
        {"-1", JR_NUMBER, JR_NUMBER},  {"7", JR_NUMBER, JR_NUMBER},    {"true", JR_TRUE, JR_TRUE},
        {"false", JR_FALSE, JR_FALSE}, {"null", JR_NULL, JR_NULL},     {"NaN", JR_NONE, JR_NONFINITE},
        {"x", JR_NONE, JR_NONE},       {"", JR_NONE, JR_NONE},         {"Infinity", JR_NONE, JR_NONFINITE},
        {"-", JR_NUMBER, JR_NUMBER},   {" \n1", JR_NUMBER, JR_NUMBER}, {"-Infinity", JR_NUMBER, JR_NONFINITE},
    };
    struct jr j;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        jr_init(&j, str_of(cases[i].text), JR_STRICT);
        assert_int_equal(jr_peek(&j), cases[i].strict);
        assert_int_equal(j.error != NULL, cases[i].strict == JR_NONE);
        jr_init(&j, str_of(cases[i].text), JR_NAN_WORDS);
        assert_int_equal(jr_peek(&j), cases[i].words);
    }
}

static void errors_stick(void **state)
{
    struct jr j;
    struct str s = STR("untouched");

    (void)state;
    jr_init(&j, STR("[1,2]"), JR_STRICT);
    assert_true(jr_array(&j) && jr_item(&j));
    assert_false(jr_fail(&j, "score of the wrong kind"));
    assert_int_equal(j.error_at, 1);
    assert_false(jr_fail(&j, "later"));
    assert_false(jr_number(&j, &s) || jr_string(&j, &s) || jr_skip(&j, &s) || jr_item(&j) ||
                 jr_member(&j, &s));
    assert_false(jr_object(&j) || jr_array(&j) || jr_end(&j));
    assert_int_equal(jr_peek(&j), JR_NONE);
    assert_string_equal(j.error, "score of the wrong kind");
    assert_true(str_eq(s, STR("untouched")));
    jr_init(&j, STR("["), JR_STRICT);
    assert_true(jr_array(&j));
    assert_false(jr_end(&j));
    assert_string_equal(j.error, "unexpected end");
    /* At the end of the text the caller's words are kept too. */
    jr_init(&j, STR(""), JR_STRICT);
    assert_false(jr_fail(&j, "mine"));
    assert_string_equal(j.error, "mine");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_texts),      cmocka_unit_test(refused_texts),
        cmocka_unit_test(refused_inside),  cmocka_unit_test(flags),
        cmocka_unit_test(depth),           cmocka_unit_test(each_byte_of_a_range_answer),
        cmocka_unit_test(masks),           cmocka_unit_test(pull_values),
        cmocka_unit_test(pull_wrong_type), cmocka_unit_test(pull_types),
        cmocka_unit_test(errors_stick),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
