#include "exporter/ui/site.h"

#include "exporter/base/buf.h"
#include "exporter/base/httpd.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void answers_with_json_or_one_line_of_text(void **state)
{
    static const struct {
        int result;
        unsigned status;
        const char *type, *body;
    } cases[] = {
        {0, 0, "application/json", "{}"},
        {-EINVAL, 400, "text/plain; charset=utf-8", "why\n"},
        {-ENOENT, 404, "text/plain; charset=utf-8", "why\n"},
        {-ENOMEM, 500, "text/plain; charset=utf-8", "out of memory\n"},
        {-EFBIG, 500, "text/plain; charset=utf-8", "the answer is too large; set limit\n"},
    };
    BUF_AUTO(body, 100);

    (void)state;
    assert_int_equal(buf_puts(&body, "{}"), 0);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct httpd_reply reply = {0};

        api_reply(&reply, cases[i].result, "why", &body);
        assert_int_equal(reply.status, cases[i].status);
        assert_string_equal(reply.content_type, cases[i].type);
        assert_int_equal(reply.parts[0].iov_len, strlen(cases[i].body));
        assert_memory_equal(reply.parts[0].iov_base, cases[i].body, reply.parts[0].iov_len);
        reply.release(reply.arg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_with_json_or_one_line_of_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
