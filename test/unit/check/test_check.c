#include "controller/check/check.h"
#include "controller/check/findings.h"
#include "test/fakes/fake_server.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define JSON_TYPE "Content-Type: application/json\r\n"

static const struct check_options defaults = {.cluster_name = "c1", .dimension_format = "${pod}"};

/* A scoring API without a source: five calls in all. */
static struct fake_server *api_new(void)
{
    struct fake_server *s = fake_new();

    fake_default(s, (struct fake_answer){.headers = JSON_TYPE,
                                         .body = "{\"results\":[{\"metric\":{\"pod\":\"p\"},\"score\":1}]}"});
    fake_aside(s, (struct fake_answer){.only_path = "/healthz"});
    fake_aside(s, (struct fake_answer){
                      .only_path = "/a/config",
                      .headers = JSON_TYPE,
                      .body = "{\"source\":{\"type\":\"None\"},\"scoring\":{\"path\":\"/a/scoring\","
                              "\"params\":{\"name\":\"s\",\"interval\":30}}}"});
    return s;
}

static void calls_as_the_hub_and_an_agent_do(void **state)
{
    struct fake_server *s = api_new();
    struct check_options o = defaults;
    struct findings f;

    (void)state;
    o.url = fake_url(s, "/a/");
    findings_init(&f);
    assert_int_equal(check_run(&f, &o), 0);
    assert_int_equal(f.n_findings, 0);
    assert_string_equal(f.url, fake_url(s, "/a/config"));
    assert_string_equal(f.outcome.object, "s");
    assert_int_equal(f.outcome.items.n, 1);
    assert_int_equal(fake_requests(s), 2);
    assert_string_equal(fake_request(s, 0)->target, "/a/scoring");
    assert_string_equal(fake_request(s, 0)->body, "{\"data\":[]}");
    findings_done(&f);
    (void)fake_free(s);
}

static void refuses_what_is_no_url(void **state)
{
    static const char *const urls[] = {"",        "localhost:8000", "ftp://h/",
                                       "http://", "http://u:p@h/",  "http://h\xff/"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(urls); i++) {
        struct check_options o = defaults;
        struct findings f;

        o.url = urls[i];
        findings_init(&f);
        assert_int_equal(check_run(&f, &o), -EINVAL);
        findings_done(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_as_the_hub_and_an_agent_do),
        cmocka_unit_test(refuses_what_is_no_url),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
