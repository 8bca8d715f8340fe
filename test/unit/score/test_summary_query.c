#include "exporter/base/buf.h"
#include "exporter/score/summary.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void splits_queries(void **state)
{
    static const struct {
        const char *joined;
        const char *want[4];
    } cases[] = {
        {"up", {"up"}},
        {" up ; down;", {"up", "down"}},
        {"a;b;c", {"a", "b", "c"}},
        {";; ;\n;", {NULL}},
        {"", {NULL}},
        {"x{a=\"1;2\"};y", {"x{a=\"1;2\"}", "y"}},
        {"x{a='1;\\';2'};y", {"x{a='1;\\';2'}", "y"}},
        {"x{a=`\\`};y", {"x{a=`\\`}", "y"}},
        {"x{a=\"\\\\\"};y", {"x{a=\"\\\\\"}", "y"}},
        {"x{a=\"'\"};y{b='\"'};z", {"x{a=\"'\"}", "y{b='\"'}", "z"}},
        {"x # one; two 'three\n;y", {"x # one; two 'three", "y"}},
        {"x # one; two", {"x # one; two"}},
        {"x{a=\"no end;y", {"x{a=\"no end;y"}},
        {"x{a=\"end\\", {"x{a=\"end\\"}},
        {"\xe2\x82\xac;\xe2\x82\xac", {"\xe2\x82\xac", "\xe2\x82\xac"}},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        size_t at = 0, k = 0;

        do {
            struct str q = summary_next_query(str_of(cases[i].joined), &at);

            if (!str_eq(q, str_of(cases[i].want[k])))
                fail_msg("%s: part %zu is `%.*s`", cases[i].joined, k, STR_ARG(q));
        } while (cases[i].want[k++]);
    }
}

/* One cluster for all: quotes of each kind, a backslash, a line feed, and a placeholder. */
#define ODD "a\"b'c\\d\ne${cluster}"

static void puts_the_cluster_into_string_literals(void **state)
{
    static const struct {
        const char *query, *cluster, *want;
    } cases[] = {
        {"up{cluster=\"${cluster}\"}", "west", "up{cluster=\"west\"}"},
        {"up{cluster='${cluster}'}", "west", "up{cluster='west'}"},
        {"up{cluster=`${cluster}`}", "west", "up{cluster=`west`}"},
        {"up{cluster=\"${cluster}\"}", ODD, "up{cluster=\"a\\\"b'c\\\\d\\ne${cluster}\"}"},
        {"up{cluster='${cluster}'}", ODD, "up{cluster='a\"b\\'c\\\\d\\ne${cluster}'}"},
        {"up{cluster=`${cluster}`}", ODD, "up{cluster=`" ODD "`}"},
        {"up{a=\"${cluster}-${cluster}\",b='x${cluster}'}", "w", "up{a=\"w-w\",b='xw'}"},
        {"up{a=\"\\\\${cluster}\"}", "w", "up{a=\"\\\\w\"}"},
        {"up{a='\\'${cluster}'}", "w", "up{a='\\'w'}"},
        {"up{a=\"${cluster}", "w", "up{a=\"w"},
        {"up{a=\"\\${cluster}\"}", "\"", "up{a=\"\\${cluster}\"}"},
        {"up{a=`\\${cluster}`}", "w", "up{a=`\\w`}"},
        {"${cluster}", "w", "${cluster}"},
        {"up{a=${cluster}} # '${cluster}'", "w", "up{a=${cluster}} # '${cluster}'"},
        {"up{a='${clusters} ${Cluster} $cluster ${cluster ${node}'}", "w",
         "up{a='${clusters} ${Cluster} $cluster ${cluster ${node}'}"},
        {"up{a='${cluster}'}", "", "up{a=''}"},
        {"", "w", ""},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        BUF_AUTO(got, 1024);

        assert_int_equal(summary_put_query(&got, str_of(cases[i].query), str_of(cases[i].cluster)), 0);
        if (!str_eq(buf_str(&got), str_of(cases[i].want)))
            fail_msg("%s: `%.*s`", cases[i].query, STR_ARG(buf_str(&got)));
    }
}

static void rejects_a_backtick_between_backticks(void **state)
{
    BUF_AUTO(got, 1024);
    BUF_AUTO(small, 8);

    (void)state;
    assert_int_equal(summary_put_query(&got, STR("x{a=`${cluster}`}"), STR("a`b")), -EINVAL);
    got.n = 0;
    assert_int_equal(summary_put_query(&got, STR("x{a='${cluster}',b=`c`}"), STR("a`b")), 0);
    assert_true(str_eq(buf_str(&got), STR("x{a='a`b',b=`c`}")));
    assert_int_equal(summary_put_query(&small, STR("x{a='${cluster}'}"), STR("west")), -EFBIG);
}

static void tells_where_the_cluster_is_used(void **state)
{
    static const struct {
        const char *query;
        bool inside, outside;
    } cases[] = {
        {"up", false, false},
        {"up{a='${cluster}'}", true, false},
        {"up{a=${cluster}}", false, true},
        {"up{a=\"${cluster}\"} + ${cluster}", true, true},
        {"up # ${cluster}", false, false},
        {"up; down{a=`${cluster}`}", true, false},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(summary_query_uses_cluster(str_of(cases[i].query), true), cases[i].inside);
        assert_int_equal(summary_query_uses_cluster(str_of(cases[i].query), false), cases[i].outside);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splits_queries),
        cmocka_unit_test(puts_the_cluster_into_string_literals),
        cmocka_unit_test(rejects_a_backtick_between_backticks),
        cmocka_unit_test(tells_where_the_cluster_is_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
