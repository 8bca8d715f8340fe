#include "exporter/base/buf.h"
#include "exporter/models/results.h"
#include "test/oom.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static int write_results(struct buf *out)
{
    static const struct result_label meta[] = {{"meta", {"m\"\n", 3}}, {"kind", {"", 0}}};
    struct results rs;

    results_begin(&rs, out);
    results_add(&rs, &(struct result){.metric = STR("{ \"a\" : \"\\u00e9\" }"), .score = 10});
    results_add(&rs,
                &(struct result){.metric = STR("{\"\\u006deta\":\"old\", \"b\":\"c\",\"meta\":\"older\"}"),
                                 .labels = meta,
                                 .n_labels = 2,
                                 .score = -0.25,
                                 .members = STR("\"error\":1")});
    results_add(&rs, &(struct result){.metric = STR("{}"), .labels = meta, .n_labels = 1, .score = 1e300});
    return results_end(&rs);
}

static void writes_labels_as_they_came(void **state)
{
    BUF_AUTO(out, 1000);

    (void)state;
    assert_int_equal(write_results(&out), 0);
    assert_int_equal(buf_putc(&out, '\0'), 0);
    assert_string_equal(out.p,
                        "{\"results\":[{\"metric\":{ \"a\" : \"\\u00e9\" },\"score\":10.0},"
                        "{\"metric\":{\"b\":\"c\",\"meta\":\"m\\\"\\n\",\"kind\":\"\"},\"score\":-0.25,"
                        "\"error\":1},{\"metric\":{\"meta\":\"m\\\"\\n\"},\"score\":1e+300}]}");
}

static void writes_an_empty_list(void **state)
{
    BUF_AUTO(out, 100);
    struct results rs;

    (void)state;
    results_begin(&rs, &out);
    assert_int_equal(results_end(&rs), 0);
    assert_true(str_eq(buf_str(&out), STR("{\"results\":[]}")));
}

static void keeps_the_first_error(void **state)
{
    (void)state;
    for (size_t max = 0; max < 150; max++) {
        BUF_AUTO(out, max);
        assert_int_equal(write_results(&out), -EFBIG);
    }
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        BUF_AUTO(out, 1000);
        int r = write_results(&out);
        assert_int_equal(r, oom_happened() ? -ENOMEM : 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_labels_as_they_came),
        cmocka_unit_test(writes_an_empty_list),
        cmocka_unit_test(keeps_the_first_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
