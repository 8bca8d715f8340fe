/* Files that cannot be read; certificates that can are in test/scenarios/test_web_config.py. */
#include "exporter/base/buf.h"
#include "exporter/base/httpd_tls.h"
#include "exporter/base/problems.h"
#include "exporter/web/web_file.h"
#include "test/oom.h"
#include "test/unit/web/web_world.h"

#include <errno.h>

static int load(const char *path, struct problems *p)
{
    CLEANUP(cleanup_web_file_free) struct web_file *f = NULL;
    struct httpd_tls *tls = NULL;
    int r = problems_init(p, "web.yml") ?: web_file_read(&f, path, p);

    if (r == 0 && f->has_tls)
        r = web_file_set_tls(f, &tls, p);
    (void)httpd_tls_free(tls);
    return r;
}

static void names_the_place_of_errors_in_other_files(void **state)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"tls_server_config:\n  cert_file: nowhere\n  key_file: nowhere\n",
         "web.yml:2:14: error: tls_server_config.cert_file: "},
        {"tls_server_config:\n  cert: nothing\n  key: nothing\n",
         "web.yml:2:9: error: tls_server_config.cert"},
        {"tls_server_config:\n  cert_file: nowhere\n  key_file: nowhere\n  client_auth_type: x\n",
         "web.yml:4:21: error: tls_server_config.client_auth_type: "},
        {"{", "web.yml:1:2: error: "},
    };
    struct folder f;

    (void)state;
    folder_make(&f);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(problems_done) struct problems p = {0};
        BUF_AUTO(why, 1 << 20);
        folder_write(&f, cases[i].text);
        assert_int_equal(load(f.file, &p), -EINVAL);
        assert_int_equal(problems_print(&p, &why) ?: buf_putc(&why, '\0'), 0);
        if (!strstr(why.p, cases[i].why))
            fail_msg("\"%s\" is not in: %s", cases[i].why, why.p);
    }
    folder_remove(&f);
}

static void says_why_a_file_cannot_be_read(void **state)
{
    CLEANUP(problems_done) struct problems none = {0}, folder = {0};
    struct folder f;

    (void)state;
    folder_make(&f);
    assert_int_equal(load(f.file, &none), -EINVAL);
    assert_string_equal(none.list[0].text, "No such file or directory");
    assert_int_equal(load(f.path, &folder), -EINVAL);
    assert_string_equal(folder.list[0].text, "Is a directory");
    folder_remove(&f);
}

static void survives_each_failed_allocation(void **state)
{
    struct folder f;

    (void)state;
    folder_make(&f);
    folder_write(&f, "rate_limit:\n  interval: 1s\n  burst: 1\n");
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        CLEANUP(problems_done) struct problems p = {0};
        int r = load(f.file, &p);
        assert_int_equal(r, oom_happened() ? -ENOMEM : 0);
    }
    folder_remove(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_the_place_of_errors_in_other_files),
        cmocka_unit_test(says_why_a_file_cannot_be_read),
        cmocka_unit_test(survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
