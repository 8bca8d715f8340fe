#include "controller/placement/items.h"
#include "exporter/base/buf.h"

#include "test/unit/placement/placement_world.h"

#include <errno.h>

static struct batch *one_series(const char *node, const char *pod)
{
    return batch_of("cpu", &(struct result){node, pod, 1}, 1);
}

static int render(const struct dimension_format *f, const struct batch *b, struct buf *into)
{
    struct str labels[DS_LABELS];

    series_labels(b->set, 0, labels);
    return dimension_format_render(f, labels, into);
}

static void renders_placeholders(void **state)
{
    static const struct {
        const char *format, *want;
        bool per_series;
    } cases[] = {
        {"", "", false},
        {"plain", "plain", false},
        {"${scoreName}", "cpu", false},
        {"${cluster}/${scoreName}", "c1/cpu", false},
        {"${node};${pod}", "n1;p\n\"\\1", true},
        {"${node}${node}", "n1n1", true},
        {"${namespace}${app}${container}${device}${meta}", "", true},
        /* Not known: stays. */
        {"${x}${node}", "${x}n1", true},
        {"${Node}", "${Node}", false},
        {"${ node}", "${ node}", false},
        {"${node", "${node", false},
        {"$node $", "$node $", false},
        {"$${node}}", "$n1}", true},
        {"${${node}}", "${n1}", true},
        {"${}", "${}", false},
    };
    struct batch *b = one_series("n1", "p\n\"\\1");

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct dimension_format f;
        BUF_AUTO(got, 4096);

        dimension_format_parse(&f, str_of(cases[i].format));
        assert_int_equal(render(&f, b, &got), 0);
        assert_int_equal(buf_putc(&got, '\0'), 0);
        assert_string_equal(got.p, cases[i].want);
        assert_int_equal(f.per_series, cases[i].per_series);
        dimension_format_done(&f);
    }
    (void)batch_unref(b);
}

static void never_expands_a_value_again(void **state)
{
    struct batch *b = one_series("${pod}", "${node}${scoreName}");
    struct dimension_format f;
    BUF_AUTO(got, 4096);

    (void)state;
    dimension_format_parse(&f, STR("${node}|${pod}"));
    assert_int_equal(render(&f, b, &got), 0);
    assert_true(str_eq(buf_str(&got), STR("${pod}|${node}${scoreName}")));
    dimension_format_done(&f);
    (void)batch_unref(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(renders_placeholders),
        cmocka_unit_test(never_expands_a_value_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
