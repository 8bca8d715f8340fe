/* What a Location leads to. Most rows are texts that two parsers read differently: libcurl, browsers (the URL
 * standard) and RFC 3986. Whatever others make of them, such a text is never followed to another origin. */
#include "exporter/base/buf.h"
#include "exporter/base/def.h"
#include "exporter/http/http.h"
#include "exporter/http/redirect.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const char asked[] = "http://user:pass@good.test:80/a/b?c=d";

enum { WHY_BYTES = 1000 };

struct row {
    struct str location;
    const char *want; /* of FOLLOW the URL, of all others a part of the text for a person */
};

#define ROW(location, want) \
    {                       \
        STR(location), want \
    }

static enum redirect_verdict judge(const char *from, struct str location, char **ret_url, struct buf *why)
{
    CLEANUP(cleanup_curl_url_cleanup) CURLU *u = curl_url(), *to = NULL;
    enum redirect_verdict verdict;

    *ret_url = NULL;
    assert_int_equal(curl_url_set(u, CURLUPART_URL, from, 0), CURLUE_OK);
    verdict = redirect_judge(&to, location, u, why);
    assert_int_equal(verdict == REDIRECT_FOLLOW, to != NULL);
    if (to)
        assert_int_equal(curl_url_get(to, CURLUPART_URL, ret_url, 0), CURLUE_OK);
    return verdict;
}

static void expect(const struct row *row, enum redirect_verdict want)
{
    BUF_AUTO(why, WHY_BYTES);
    char *url = NULL;
    enum redirect_verdict verdict = judge(asked, row->location, &url, &why);
    CLEANUP(cleanup_free) char *text = str_dup(buf_str(&why));

    if (verdict != want)
        print_error("%.*s: verdict %d, %s\n", STR_ARG(row->location), (int)verdict, url ? url : text);
    assert_int_equal(verdict, want);
    if (want == REDIRECT_FOLLOW)
        assert_string_equal(url, row->want);
    else if (!strstr(text, row->want))
        fail_msg("%.*s: %s", STR_ARG(row->location), text);
    curl_free(url);
}

static void follows_within_the_origin(void **state)
{
    static const struct row rows[] = {
        ROW("/x?y#z", "http://user:pass@good.test:80/x?y#z"),
        ROW("x", "http://user:pass@good.test:80/a/x"),
        ROW("../x", "http://user:pass@good.test:80/x"),
        ROW("?x", "http://user:pass@good.test:80/a/b?x"),
        ROW("//good.test/x", "http://user:pass@good.test/x"),
        ROW("http://good.test/x", "http://user:pass@good.test/x"),
        ROW("HTTP://GOOD.test:80/x", "http://user:pass@GOOD.test:80/x"),
        ROW("http://good.test:080/x", "http://user:pass@good.test:80/x"),
        ROW(" \t/x \t", "http://user:pass@good.test:80/x"),
        ROW("/\xc3\xbc", "http://user:pass@good.test:80/%c3%bc"),
        /* An @ and a second URL in path or query belong to them. */
        ROW("/@evil.test/", "http://user:pass@good.test:80/@evil.test/"),
        ROW("/x?http://evil.test/", "http://user:pass@good.test:80/x?http://evil.test/"),
        ROW("http://good.test/@evil.test/", "http://user:pass@good.test/@evil.test/"),
        ROW("http://good.test?@evil.test/", "http://user:pass@good.test/?@evil.test/"),
        ROW("http://good.test#@evil.test/", "http://user:pass@good.test/#@evil.test/"),
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        expect(&rows[i], REDIRECT_FOLLOW);
}

static void never_sends_the_user_of_a_location(void **state)
{
    static const struct row rows[] = {
        ROW("http://other:secret@good.test/x", "http://user:pass@good.test/x"),
        ROW("http://other@good.test/x", "http://user:pass@good.test/x"),
        ROW("//other:secret@good.test/x", "http://user:pass@good.test/x"),
    };
    BUF_AUTO(why, WHY_BYTES);
    char *url = NULL;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        expect(&rows[i], REDIRECT_FOLLOW);
    assert_int_equal(judge("http://good.test/", STR("http://u:p@good.test/x"), &url, &why), REDIRECT_FOLLOW);
    assert_string_equal(url, "http://good.test/x");
    curl_free(url);
}

static void refuses_other_origins(void **state)
{
    static const struct row rows[] = {
        ROW("http://evil.test/", "redirect from http://good.test:80 to http://evil.test:80 is not followed"),
        ROW("//evil.test", "to http://evil.test:80 is not followed"),
        ROW("http://good.test:81/", "to http://good.test:81 is not followed"),
        ROW("https://good.test/", "to https://good.test:443 is not followed: configure the https:// URL"),
        ROW("https://good.test.evil.test/", "it is another origin"),
        ROW("http://good.test:80@evil.test/", "to http://evil.test:80 "),
        ROW("http://good.test@evil.test", "to http://evil.test:80 "),
        ROW("http://evil.test#@good.test/", "to http://evil.test:80 "),
        ROW("http://evil.test?@good.test/", "to http://evil.test:80 "),
        ROW("http://good.test./", "it is another origin"),
        ROW("http://127.0.0.1/", "it is another origin"),
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        expect(&rows[i], REDIRECT_ELSEWHERE);
}

static void says_what_to_do_however_long_the_hosts_are(void **state)
{
    static const char advice[] = "configure its URL if it is the right one";
    char from[300], to[300], url_from[400], url_to[400];
    BUF_AUTO(why, WHY_BYTES);
    struct str text;
    char *url = NULL;

    (void)state;
    memset(from, 'a', sizeof(from));
    memset(to, 'b', sizeof(to));
    (void)snprintf(url_from, sizeof(url_from), "http://%.250s/", from);
    (void)snprintf(url_to, sizeof(url_to), "http://%.250s/", to);
    assert_int_equal(judge(url_from, str_of(url_to), &url, &why), REDIRECT_ELSEWHERE);
    text = buf_str(&why);
    assert_non_null(memmem(text.p, text.n, advice, strlen(advice)));
}

static void refuses_what_parsers_read_differently(void **state)
{
    static const struct row rows[] = {
        /* libcurl trims these at the beginning, browsers too. */
        ROW("\x0bhttp://evil.test/", "byte 0x0b"),
        ROW("\x0chttp://evil.test/", "byte 0x0c"),
        ROW("\x01http://evil.test/", "byte 0x01"),
        ROW(" \x0b /x", "byte 0x0b"),
        ROW("http://evil.test/\x0b", "byte 0x0b"),
        ROW("/x\r", "byte 0x0d"),
        ROW("/x\n", "byte 0x0a"),
        /* libcurl ends the header here, browsers drop the byte. */
        ROW("http://evil.test/\rzzz", "byte 0x0d"),
        ROW("/\t/evil.test", "byte 0x09"),
        ROW("ht\ntp://evil.test/", "byte 0x0a"),
        ROW("http://good.test\0.evil.test/", "byte 0x00"),
        ROW("http://good.test /", "byte 0x20"),
        ROW("/a b", "byte 0x20"),
        ROW("/x\x7f", "byte 0x7f"),
        /* Browsers read a backslash as a slash. */
        ROW("/\\evil.test/", "byte 0x5c"),
        ROW("\\\\evil.test/", "byte 0x5c"),
        ROW("http:\\\\evil.test", "byte 0x5c"),
        ROW("http://good.test\\@evil.test/", "byte 0x5c"),
        ROW("http://evil.test\\@good.test/", "byte 0x5c"),
        /* More or fewer slashes: libcurl and browsers find a host in them, RFC 3986 does not. */
        ROW("http:/evil.test/", "no http or https URL"),
        ROW("http:evil.test/", "no http or https URL"),
        ROW("http:///evil.test/", "no http or https URL"),
        ROW("http:////evil.test/", "no http or https URL"),
        ROW("///evil.test/", "no host"),
        ROW("////evil.test/", "no host"),
        ROW("//", "no host"),
        ROW("http://", "no http or https URL"),
        ROW("http://?good.test", "invalid Location"),
        ROW("http://@/", "invalid Location"),
        /* Other schemes, and what looks like one. */
        ROW("file:///etc/passwd", "no http or https URL"),
        ROW("javascript:alert(1)", "no http or https URL"),
        ROW("good.test:80/x", "no http or https URL"),
        ROW("httpx://good.test/", "no http or https URL"),
        ROW("n\xffm:/evil.test", "the text before the colon is not a valid scheme"),
        ROW("a_b:c", "the text before the colon is not a valid scheme"),
        ROW("http://good.test:port/", "invalid Location"),
        ROW("http://good.test:70000/", "invalid Location"),
        ROW("http://[::1/", "invalid Location"),
        ROW("http://a@good.test@evil.test/", "more than one @"),
        ROW("//a@evil.test@good.test", "more than one @"),
        {{NULL, 0}, "it is empty"},
        ROW("", "it is empty"),
        ROW(" \t ", "it is empty"),
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        expect(&rows[i], REDIRECT_INVALID);
}

static void follows_no_address_with_a_zone(void **state)
{
    static const char from[] = "http://[fe80::1%25eth0]/", no_zone[] = "http://[fe80::1]/";
    BUF_AUTO(why, WHY_BYTES);
    char *url = NULL;

    (void)state;
    assert_int_equal(judge(from, STR("http://[fe80::1%25eth1]/x"), &url, &why), REDIRECT_INVALID);
    assert_int_equal(judge(from, STR("http://[fe80::1]/x"), &url, &why), REDIRECT_INVALID);
    assert_int_equal(judge(no_zone, STR("http://[fe80::1%25eth1]/x"), &url, &why), REDIRECT_INVALID);
    assert_int_equal(judge(no_zone, STR("/x"), &url, &why), REDIRECT_FOLLOW);
    assert_string_equal(url, "http://[fe80::1]/x");
    curl_free(url);
}

static void knows_which_answers_are_redirects(void **state)
{
    static const long same_method[] = {301, 302, 307, 308}, answers[] = {200, 300, 304, 305, 306, 309, 401};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(same_method); i++) {
        assert_true(redirect_is_followed(same_method[i], true));
        assert_true(redirect_is_followed(same_method[i], false));
    }
    for (size_t i = 0; i < ARRAY_SIZE(answers); i++)
        assert_false(redirect_is_followed(answers[i], true));
    assert_true(redirect_is_followed(303, true));
    assert_false(redirect_is_followed(303, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(follows_within_the_origin),
        cmocka_unit_test(never_sends_the_user_of_a_location),
        cmocka_unit_test(refuses_other_origins),
        cmocka_unit_test(says_what_to_do_however_long_the_hosts_are),
        cmocka_unit_test(refuses_what_parsers_read_differently),
        cmocka_unit_test(follows_no_address_with_a_zone),
        cmocka_unit_test(knows_which_answers_are_redirects),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
