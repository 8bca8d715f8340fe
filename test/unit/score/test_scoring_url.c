/* ${cluster} in the URL of a scoring API. */
#include "exporter/base/buf.h"
#include "exporter/base/def.h"
#include "exporter/score/scoring_url.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static void puts_the_name_into_path_and_query(void **state)
{
    static const struct {
        const char *url, *cluster, *want;
    } cases[] = {
        {"http://s/scoring", "c1", "http://s/scoring"},
        {"HTTPS://User:pw@S:8/x?y#z", "c1", "HTTPS://User:pw@S:8/x?y#z"}, /* as it is written */
        {"http://s/${cluster}/scoring", "c1", "http://s/c1/scoring"},
        {"http://s/scoring?for=${cluster}&a=b", "c1", "http://s/scoring?for=c1&a=b"},
        {"http://s/${cluster}-${cluster}?${cluster}=${cluster}", "c1", "http://s/c1-c1?c1=c1"},
        {"http://s:8080/${cluster}", "a/b?c#d&e=f g", "http://s:8080/a%2Fb%3Fc%23d%26e%3Df%20g"},
        {"http://s/?for=${cluster}", "a&b=c#d", "http://s/?for=a%26b%3Dc%23d"},
        {"http://u:p@s/${cluster}", "@evil/", "http://u:p@s/%40evil%2F"},
        {"http://s/${cluster}", "${cluster}", "http://s/%24%7Bcluster%7D"}, /* not expanded again */
        {"http://s/${cluster}", "\xc3\xa4", "http://s/%C3%A4"},
        {"http://s/x?q=${node}&c=${cluster}", "c1", "http://s/x?q=${node}&c=c1"},
        {"http://s/%24%7Bcluster%7D", "c1", "http://s/%24%7Bcluster%7D"}, /* was encoded on purpose */
        {"http://s/x.${cluster}", "..", "http://s/x..."},
        {"http://s/x?c=${cluster}", "..", "http://s/x?c=.."},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(cleanup_free) char *got = NULL;

        assert_int_equal(scoring_url_make(&got, cases[i].url, str_of(cases[i].cluster)), 0);
        assert_string_equal(got, cases[i].want);
    }
}

/* A segment `.` or `..` would be removed on the way, with the one before it. */
static void refuses_names_that_change_the_path(void **state)
{
    static const struct {
        const char *url, *cluster;
    } cases[] = {
        {"http://s/a/${cluster}", "."},           {"http://s/a/${cluster}", ".."},
        {"http://s/a/${cluster}/b", ".."},        {"http://s/a/.${cluster}", "."},
        {"http://s/a/%2e${cluster}/b", "."},      {"http://s/a/.${cluster}/b", ""},
        {"http://s/a/${cluster}${cluster}", "."}, {"not a URL ${cluster}", "c1"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char *got = NULL;

        assert_int_equal(scoring_url_make(&got, cases[i].url, str_of(cases[i].cluster)), -EINVAL);
        assert_null(got);
    }
}

static void knows_its_placeholders(void **state)
{
    static const struct {
        const char *url;
        bool uses;
        const char *unknown;
    } cases[] = {
        {"http://s/scoring", false, ""},
        {"http://s/${cluster}", true, ""},
        {"http://s/x?a=${cluster}", true, ""},
        {"http://s/x#${cluster}", false, ""},
        {"http://u:${cluster}@s/x", false, ""},
        {"http://s/${Cluster}/${cluster}", true, "${Cluster}"},
        {"http://s/x?a=%24%7Bnode%7D", false, "${node}"}, /* as the hub encodes a parameter */
        {"http://s/x?a=${open", false, ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(unknown, 256);

        scoring_url_unknown(cases[i].url, &unknown);
        buf_putc(&unknown, '\0');
        assert_int_equal(buf_failed(&unknown), 0);
        assert_string_equal(unknown.p, cases[i].unknown);
        assert_int_equal(scoring_url_uses_cluster(cases[i].url), cases[i].uses);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(puts_the_name_into_path_and_query),
        cmocka_unit_test(refuses_names_that_change_the_path),
        cmocka_unit_test(knows_its_placeholders),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
