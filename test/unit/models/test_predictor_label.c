#include "exporter/base/base64.h"
#include "exporter/base/buf.h"
#include "exporter/base/json.h"
#include "exporter/models/predictor_label.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* What the label says, as a string in `json`. */
static void decode(struct str metric, double alpha, double threshold, struct buf *json)
{
    char label[PREDICTOR_LABEL_MAX];
    size_t n = predictor_label(label, metric, alpha, threshold);

    buf_truncate(json, 0);
    assert_true(n <= PREDICTOR_LABEL_MAX);
    assert_int_equal(base64_decode((struct str){label, n}, json), 0);
    assert_int_equal(buf_putc(json, '\0'), 0);
}

/* The example of the documents. */
static void writes_the_label_that_users_know(void **state)
{
    static const char want[] =
        "eyJwcmVkaWN0b3JfbGFiZWwiOiJjbHVzdGVyMS1jb250cm9sLXBsYW5lX3NrdXBwZXItc2l0ZS1jb250cm9sbGVyX3Nr"
        "dXBwZXItc2l0ZS1jb250cm9sbGVyLTZkYzQ1ZmZmNDktbWRydDciLCJhbHBoYSI6MjAuMCwidGhyZXNob2xkIjoxLjB9";
    char label[PREDICTOR_LABEL_MAX];
    size_t n =
        predictor_label(label,
                        STR("{\"__name__\":\"x\",\"pod\":\"skupper-site-controller-6dc45fff49-mdrt7\","
                            "\"node\":\"cluster1-control-plane\",\"namespace\":\"skupper-site-controller\"}"),
                        20, 1);

    (void)state;
    assert_int_equal(n, sizeof(want) - 1);
    assert_memory_equal(label, want, n);
}

static void says_unknown_for_absent_labels(void **state)
{
    BUF_AUTO(json, 1000);

    (void)state;
    decode(STR("{}"), 0.5, -1e300, &json);
    assert_string_equal(
        json.p, "{\"predictor_label\":\"unknown_unknown_unknown\",\"alpha\":0.5,\"threshold\":-1e+300}");
    decode(STR("{\"pod\":\"p\\u00e9\\\"\",\"job\":\"j\"}"), 1e17, 0, &json);
    assert_string_equal(
        json.p, "{\"predictor_label\":\"unknown_unknown_p\\u00e9\\\"\",\"alpha\":1e+17,\"threshold\":0.0}");
}

/* A label that an agent would cut is no base64 any more. */
static void cuts_long_names_between_characters(void **state)
{
    static const char *const parts[] = {"n", "\\u00e9", "\\\"", "\xc3\xa9", "\xf0\x9f\x98\x80"};
    BUF_AUTO(metric, 10000);
    BUF_AUTO(json, 1000);
    struct jr j;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        for (size_t shift = 0; shift < 12; shift++) {
            buf_truncate(&metric, 0);
            assert_int_equal(buf_printf(&metric, "{\"node\":\"%.*s", (int)shift, "abcdefghijkl"), 0);
            for (size_t k = 0; k < 253; k++)
                assert_int_equal(buf_puts(&metric, parts[i]), 0);
            assert_int_equal(buf_puts(&metric, "\",\"pod\":\"p\"}"), 0);
            decode(buf_str(&metric), 20, 1, &json);
            assert_true(json.n > 180);
            jr_init(&j, (struct str){json.p, json.n - 1}, JR_STRICT);
            assert_true(jr_skip(&j, NULL) && jr_end(&j));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_the_label_that_users_know),
        cmocka_unit_test(says_unknown_for_absent_labels),
        cmocka_unit_test(cuts_long_names_between_characters),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
