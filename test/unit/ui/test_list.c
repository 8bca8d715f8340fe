#include "exporter/base/buf.h"
#include "exporter/http/httpd.h"
#include "exporter/ui/list.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

enum { MANY = 1000 };

static char names[MANY][16];

static int make_names(void **state)
{
    (void)state;
    for (int i = 0; i < MANY; i++)
        (void)snprintf(names[i], sizeof(names[i]), "n%03d", i * 7 % MANY);
    return 0;
}

/* Every tenth item has rank 0. */
static unsigned rank_of(int i)
{
    return i % 10 == 0 ? 0 : 3;
}

static void fill(struct list *l)
{
    for (int i = 0; i < MANY; i++)
        list_add(l, names[i], rank_of(i), names[i]);
    list_sort(l);
}

/* The token of the metadata, empty without. */
static void read_token(const struct list *l, char *ret, size_t size)
{
    BUF_AUTO(b, 1 << 20);
    const char *begin;

    buf_puts(&b, "{");
    list_metadata(&b, "metadata", l);
    buf_put_str(&b, (struct str){"", 1});
    assert_int_equal(buf_failed(&b), 0);
    *ret = '\0';
    begin = strstr(b.p, "\"continue\":\"");
    if (begin)
        (void)snprintf(ret, size, "%.*s", (int)strcspn(begin + 12, "\""), begin + 12);
}

/* As httpd_query() finds it. */
#define ARGUMENT(name, value)                            \
    {                                                    \
        name "\0" value, sizeof(name) + sizeof(value "") \
    }

static struct list_query query_of(struct str arguments)
{
    struct list_query q;
    const char *why = NULL;

    assert_int_equal(list_query_read(&q, &(struct httpd_request){.arguments = arguments}, &why), 0);
    return q;
}

static void walks_through_all_items_once(void **state)
{
    static const char *const sorts[] = {"name", "state"};

    (void)state;
    for (size_t s = 0; s < ARRAY_SIZE(sorts); s++) {
        char token[128] = "", last[20] = "";
        unsigned last_rank = 0;
        size_t seen = 0;

        do {
            char p[256];
            int n =
                snprintf(p, sizeof(p), "limit%c64%csort%c%s%ccontinue%c%s", 0, 0, 0, sorts[s], 0, 0, token);
            CLEANUP(list_query_done) struct list_query q = query_of((struct str){p, (size_t)n + 1});
            CLEANUP(list_done) struct list l = {.query = &q};

            fill(&l);
            assert_int_equal(l.behind, MANY - seen - l.n);
            for (size_t i = 0; i < l.n; i++) {
                assert_true((s && l.items[i].rank > last_rank) || strcmp(l.items[i].name, last) > 0);
                assert_true(!s || l.items[i].rank >= last_rank);
                (void)snprintf(last, sizeof(last), "%s", l.items[i].name);
                last_rank = l.items[i].rank;
                seen++;
            }
            read_token(&l, token, sizeof(token));
        } while (*token);
        assert_int_equal(seen, MANY);
    }
}

static void gives_500_items_unless_told_otherwise(void **state)
{
    const struct str p[] = {{NULL, 0}, ARGUMENT("limit", "0"), ARGUMENT("limit", "7")};
    const size_t want[] = {LIST_DEFAULT_LIMIT, MANY, 7};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(p); i++) {
        CLEANUP(list_query_done) struct list_query q = query_of(p[i]);
        CLEANUP(list_done) struct list l = {.query = &q};

        fill(&l);
        assert_int_equal(l.n, want[i]);
        assert_string_equal(l.items[0].name, "n000");
        assert_int_equal(l.behind, MANY - want[i]);
    }
}

/* The place is a name: an item that goes or comes in between moves no other. */
static void continues_after_a_name_that_has_gone(void **state)
{
    struct list_query q = {.limit = 2, .filter = "", .state = "", .after = (char *)"b"};
    CLEANUP(list_done) struct list l = {.query = &q};

    (void)state;
    list_add(&l, "d", 0, NULL);
    list_add(&l, "a", 0, NULL);
    list_add(&l, "c", 0, NULL);
    list_sort(&l);
    assert_int_equal(l.n, 2);
    assert_string_equal(l.items[0].name, "c");
}

static void rejects_parameters_that_cannot_be_used(void **state)
{
    static const struct {
        struct str p;
        const char *named;
    } cases[] = {
        {ARGUMENT("limit", ""), "limit"},
        {ARGUMENT("limit", "-1"), "limit"},
        {ARGUMENT("limit", "1e3"), "limit"},
        {ARGUMENT("limit", " 5"), "limit"},
        {ARGUMENT("limit", "9999999999"), "limit"},
        {ARGUMENT("continue", "x"), "continue"},
        {ARGUMENT("continue", "7"), "continue"},
        {ARGUMENT("continue", "763120"), "continue"},
        {ARGUMENT("continue", "76312030"), "continue"},
        {ARGUMENT("continue", "00"), "continue"},
        {ARGUMENT("continue", "7631203020zz"), "continue"},
        {ARGUMENT("continue", "7632203020"), "continue"},
        {ARGUMENT("sort", "age"), "sort"},
        {ARGUMENT("sort", ""), "sort"},
        {ARGUMENT("history", "1"), "history"},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct list_query q = {.limit = 77};
        const char *why = "";

        assert_int_equal(list_query_read(&q, &(struct httpd_request){.arguments = cases[i].p}, &why),
                         -EINVAL);
        assert_non_null(strstr(why, cases[i].named));
        assert_int_equal(q.limit, 77);
    }
}

static void filters_by_name_and_state(void **state)
{
    const struct list_query all = list_query_all();
    const struct list_query q = {.filter = "Cpu", .state = "failing,stale"};

    (void)state;
    assert_true(list_matches(&all, "x", NULL) && list_has_state(&all, "x"));
    assert_true(list_matches(&q, "my-CPU-score", NULL) && list_matches(&q, "x", "cpu"));
    assert_false(list_matches(&q, "memory", NULL));
    assert_true(list_has_state(&q, "failing") && list_has_state(&q, "stale"));
    assert_false(list_has_state(&q, "fail") || list_has_state(&q, "failing,stale") || list_has_state(&q, ""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(walks_through_all_items_once),
        cmocka_unit_test(gives_500_items_unless_told_otherwise),
        cmocka_unit_test(continues_after_a_name_that_has_gone),
        cmocka_unit_test(rejects_parameters_that_cannot_be_used),
        cmocka_unit_test(filters_by_name_and_state),
    };

    return cmocka_run_group_tests(tests, make_names, NULL);
}
