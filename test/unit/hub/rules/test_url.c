#include "controller/kube/json.h"
#include "exporter/http/http.h"
#include "test/unit/hub/rules/spec_world.h"

static void finds_the_origin_of_http_urls_only(void **state)
{
    static const struct {
        const char *url, *want;
    } cases[] = {
        {"http://a", "http://a:80"},
        {"https://a", "https://a:443"},
        {"http://a:80/x?y#z", "http://a:80"},
        {"http://a:/x", "http://a:80"},
        {"HTTP://A.Example:9090/", "http://a.example:9090"},
        {" http://a:0081\n", "http://a:81"},
        {"http://a?x=@b", "http://a:80"},
        {"http://a#@b", "http://a:80"},
        {"http://a/@b", "http://a:80"},
        {"http://[::1]:9090/x", "http://[::1]:9090"},
        {"http://[FE80::A]", "http://[fe80::a]:80"},
        {"http://10.0.0.1", "http://10.0.0.1:80"},
        /* The dot makes the name absolute: not the same host. */
        {"http://a.", "http://a.:80"},
        {"http://user@a", ""},
        {"https://user@a", ""},
        {"http://user:pw@a", ""},
        {"http://@a", ""},
        {"http://good:80@evil/", ""},
        {"http://good\\@evil/", ""},
        {"http://good%40evil/", ""},
        {"http://a%ff.example/", ""},
        {"http://a%c3%a9", "http://a\xc3\xa9:80"},
        {"http://[fe80::1%25eth0]/", ""},
        {"http://a:99999", ""},
        {"http://a:b", ""},
        {"http://", ""},
        {"http:///a", ""},
        {"http:/a", ""},
        {"http:a", ""},
        {"://a", ""},
        {"//a", ""},
        {"a", ""},
        {"a:9090", ""},
        {"", ""},
        {"ftp://a", ""},
        {"file:///etc/passwd", ""},
        {"http://a b/", ""},
        {"http://a\tb/", ""},
        {"http://[::1", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(cleanup_free) char *origin = url_origin(cases[i].url);

        if (strcmp(origin, cases[i].want) != 0)
            print_error("%s\n", cases[i].url);
        assert_string_equal(origin, cases[i].want);
    }
}

static void finds_no_origin_in_a_huge_host(void **state)
{
    CLEANUP(cleanup_free) char *url = malloc(70000), *origin;

    (void)state;
    assert_non_null(url);
    memset(url, 'a', 70000);
    memcpy(url, "http://", 7);
    url[69999] = '\0';
    origin = url_origin(url);
    assert_string_equal(origin, "");
}

/* Of host, path and parameters. */
static void makes_the_scoring_url(void **state)
{
    static const struct {
        const char *host, *path, *params, *want;
    } cases[] = {
        {"http://a", "/b", "", "http://a/b"},
        {"http://a/", "/b", "", "http://a/b"},
        {"http://a", "b", "", "http://a/b"},
        {"http://a//", "//b/", "", "http://a/b/"},
        {"http://a/p/", "/b", "", "http://a/p/b"},
        {" http://a ", " /b ", "", "http://a/b"},
        {"http://a", "/", "", "http://a/"},
        {"http://good", "@evil", "", "http://good/@evil"},
        {"http://a", "b", "'z':1,'a':'x','m':true,'n':false", "http://a/b?a=x&m=true&n=false&z=1"},
        {"http://a", "b?c=d", "'e':-5", "http://a/b?c=d&e=-5"},
        {"http://a", "b#c?d", "'e':0.1", "http://a/b?e=0.1"},
        {"http://a", "b", "'x':1e300,'y':2.0", "http://a/b?x=1e%2B300&y=2"},
        {"http://a", "b", "'a b':'c&d=e?#/é','':''", "http://a/b?=&a%20b=c%26d%3De%3F%23%2F%C3%A9"},
        {"http://a", "b", "'k':'-._~AZaz09'", "http://a/b?k=-._~AZaz09"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(cleanup_free) char *members = NULL;
        CLEANUP(effective_done) struct effective e;
        json_auto_t *summary = NULL;

        assert_true(asprintf(&members, "'scoring':{'host':'%s','path':'%s','params':{%s}}", cases[i].host,
                             cases[i].path, cases[i].params) > 0);
        {
            CLEANUP(scorer_spec_done) struct scorer_spec s = good_spec(members);

            effective_make(&e, "n", &s, NULL);
        }
        summary = json_loadb(e.text.p, e.text.n, 0, NULL);
        assert_string_equal(cstr(kube_str(summary, "scoringEndpoint", NULL)), cases[i].want);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_the_origin_of_http_urls_only),
        cmocka_unit_test(finds_no_origin_in_a_huge_host),
        cmocka_unit_test(makes_the_scoring_url),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
