#include "exporter/base/buf.h"
#include "exporter/models/model.h"
#include "exporter/models/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void answers_the_mean_of_the_finite_values(void **state)
{
    BUF_AUTO(out, 1000);
    struct scoring s = {0};

    (void)state;
    results_begin(&s.results, &out);
    request_begin(
        &s.request,
        STR("{\"data\":[{\"metric\":{\"a\":\"b\"},\"values\":[[1,\"5\"],[2,\"10\"],[3,\"15\"]]},"
            "{\"metric\":{},\"values\":[]},{\"metric\":{},\"values\":[[1,\"NaN\"],[2,\"+Inf\"]]},"
            "{\"metric\":{},\"values\":[[1,\"1e308\"],[1,\"1e308\"],[1,\"NaN\"],[1,\"-1e308\"]]}]}"));
    assert_int_equal(model_find("mean")->score(NULL, &s), 0);
    assert_int_equal(request_end(&s.request), 0);
    assert_int_equal(results_end(&s.results), 0);
    assert_int_equal(buf_putc(&out, '\0'), 0);
#define META "\"meta\":\"my_something_meta_by_sample_scorer\"},\"score\":"
    assert_string_equal(out.p, "{\"results\":[{\"metric\":{\"a\":\"b\"," META "10.0},{\"metric\":{" META
                               "0.0},{\"metric\":{" META "3.333333333333333e+307}]}");
    assert_int_equal(s.left_out[LEFT_OUT_NOT_FINITE], 1);
    assert_string_equal(left_out_word(LEFT_OUT_NOT_FINITE), "not_finite");
    assert_null(model_find("none"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_the_mean_of_the_finite_values),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
