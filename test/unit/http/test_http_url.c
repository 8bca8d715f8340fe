#include "exporter/base/buf.h"
#include "exporter/http/http.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void knows_urls_with_a_host(void **state)
{
    static const char *const good[] = {"http://h", "HTTPS://h:1/p", "http://[::1]/"};
    static const char *const bad[] = {"",         "http://", "http:///h", "http:/h",
                                      "https://", "ftp://h", "h:80/p",    "http"};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        assert_true(http_is_url(str_of(good[i])));
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_false(http_is_url(str_of(bad[i])));
}

static void hides_credentials_of_urls(void **state)
{
    static const char *const cases[][2] = {
        {"http://h/p?q", "http://h/p?q"},
        {"http://u:secret@h:1/p", "http://h:1/p"},
        {"https://u@h", "https://h"},
        {"http://a:b@c:secret@h/x@y", "http://h/x@y"},
        {"http://h/p@q", "http://h/p@q"},
        {"http://h:80/p@q", "http://h:80/p@q"},
        {"http://[::1]:80/p@q", "http://[::1]:80/p@q"},
        {"http://u:secret@[::1]:80/", "http://[::1]:80/"},
        {"http://u:se/secret@h/x", "http://h/x"},
        {"http://h?x=http://u:p@k/", "http://h?x=***"},
        {"u:secret@h/x", "h/x"},
        {"h/x?to=http://k/", "h/x?to=***"},
        {"http://h/p?token=secret", "http://h/p?token=***"},
        {"http://h/p?token=secret&b=&c&query=up%3D1&end=2;start=1#step=secret",
         "http://h/p?token=***&b=&c&query=up%3D1&end=2;start=1#step=secret"},
        {"http://h/p?a=se?x=secret#y=secret", "http://h/p?a=***#y=***"},
        {"http://h/p?a==secret", "http://h/p?a=***"},
        {"no host in http://h/?k=secret: a=b", "no host in http://h/?k=*** a=b"},
        {"http://u:secret@", "http://"},
        {"http://", "http://"},
        {"", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(b, 100);
        buf_puts(&b, "x");
        http_url_for_people(str_of(cases[i][0]), &b);
        assert_int_equal(buf_failed(&b), 0);
        assert_int_equal(b.n - 1, strlen(cases[i][1]));
        assert_memory_equal(b.p + 1, cases[i][1], b.n - 1);
    }
    BUF_AUTO(tight, 10);
    http_url_for_people(STR("http://h/pp"), &tight);
    assert_int_equal(buf_failed(&tight), -EFBIG);
    assert_int_equal(tight.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(knows_urls_with_a_host),
        cmocka_unit_test(hides_credentials_of_urls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
