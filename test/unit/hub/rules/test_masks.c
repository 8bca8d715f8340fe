/* Masks: both lists, and errors. */
#include "controller/hub/rules/plan.h"
#include "controller/kube/json.h"
#include "controller/kube/list_error.h"
#include "exporter/base/buf.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static json_t *parse(const char *text)
{
    json_t *o = NULL;

    assert_int_equal(kube_json_parse(&o, str_of(text), NULL), 0);
    return o;
}

static void reads_both_lists_or_names_the_first_error(void **state)
{
    static const struct {
        const char *text;
        size_t n;
        const char *why; /* NULL: accepted */
    } cases[] = {
        {"{}", 0, NULL},
        {"{\"spec\":{}}", 0, NULL},
        {"{\"spec\":{\"masks\":null,\"mask\":null}}", 0, NULL},
        {"{\"spec\":{\"masks\":[]}}", 0, NULL},
        {"{\"spec\":{\"masks\":[{\"clusterName\":\"a\",\"scoreName\":\"s\"}]}}", 1, NULL},
        {"{\"spec\":{\"mask\":[{\"clusterName\":\"a\",\"scoreName\":\"s\"}]}}", 1, NULL},
        {"{\"spec\":{\"masks\":[{\"clusterName\":\"a\",\"scoreName\":\"s\"}],"
         "\"mask\":[{\"clusterName\":\"b\",\"scoreName\":\"*\",\"more\":1}]}}",
         2, NULL},
        {"{\"spec\":{\"masks\":{}}}", 0, "spec.masks: expected a list of {clusterName, scoreName}"},
        {"{\"spec\":{\"mask\":\"a\"}}", 0, "spec.mask: expected a list of {clusterName, scoreName}"},
        {"{\"spec\":{\"masks\":[{\"clusterName\":\"a\",\"scoreName\":\"s\"},7]}}", 0,
         "spec.masks[1].clusterName: expected a name or a pattern with * and ?"},
        {"{\"spec\":{\"masks\":[{\"clusterName\":\"a\"}]}}", 0,
         "spec.masks[0].scoreName: expected a name or a pattern with * and ?"},
        {"{\"spec\":{\"masks\":[{\"clusterName\":\"\",\"scoreName\":\"s\"}]}}", 0,
         "spec.masks[0].clusterName: expected a name or a pattern with * and ?"},
        {"{\"spec\":{\"mask\":[{\"clusterName\":\"a\",\"scoreName\":5}]}}", 0,
         "spec.mask[0].scoreName: expected a name or a pattern with * and ?"},
        {"{\"spec\":{\"masks\":[{\"clusterName\":\"a\\u0000b\",\"scoreName\":\"s\"}]}}", 0,
         "spec.masks[0].clusterName: expected a name or a pattern with * and ?"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        json_auto_t *o = parse(cases[i].text);
        CLEANUP(masks_done) struct masks m = {0};
        BUF_AUTO(why, LIST_ERROR_BYTES);
        int r = masks_read(&m, o, &why);

        assert_int_equal(r, cases[i].why ? -EINVAL : 0);
        assert_int_equal(m.n, cases[i].n);
        buf_putc(&why, '\0');
        assert_string_equal(why.p, cstr(cases[i].why));
    }
}

static void keeps_the_document_as_long_as_the_masks(void **state)
{
    json_t *o = parse("{\"spec\":{\"masks\":[{\"clusterName\":\"edge-*\",\"scoreName\":\"gpu\"},"
                      "{\"clusterName\":\"c?\",\"scoreName\":\"*\"}]}}");
    CLEANUP(masks_done) struct masks m = {0};
    BUF_AUTO(why, LIST_ERROR_BYTES);

    (void)state;
    assert_int_equal(masks_read(&m, o, &why), 0);
    json_decref(o);
    assert_int_equal(m.n, 2);
    assert_string_equal(m.list[0].cluster, "edge-*");
    assert_string_equal(m.list[0].score, "gpu");
    assert_string_equal(m.list[1].cluster, "c?");
    assert_string_equal(m.list[1].score, "*");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_both_lists_or_names_the_first_error),
        cmocka_unit_test(keeps_the_document_as_long_as_the_masks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
