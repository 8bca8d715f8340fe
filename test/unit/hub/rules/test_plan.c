/* Plans: which cluster gets which summaries, in which order, with how much room; and that groups are told apart. */
#include "controller/hub/rules/masks.h"
#include "controller/hub/rules/plan.h"
#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "test/oom.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* What plan_masks.c finds with its tables, by looking at every mask. */
static bool is_masked(const struct masks *m, const char *cluster, const char *score)
{
    for (size_t i = 0; i < m->n; i++)
        if (glob_match(m->list[i].cluster, cluster) && glob_match(m->list[i].score, score))
            return true;
    return false;
}

enum { PLENTY = 1 << 20 };

static struct plan_entry entry(const char *name, const char *text)
{
    return (struct plan_entry){name, str_of(text)};
}

static void assert_text(const struct plan *p, const struct plan_group *g, const char *want)
{
    BUF_AUTO(b, PLENTY);

    assert_int_equal(plan_text(p, g, &b), 0);
    assert_int_equal(b.n, g->bytes);
    assert_true(plan_hash(buf_str(&b)) == g->hash);
    assert_int_equal(buf_putc(&b, '\0'), 0);
    assert_string_equal(b.p, want);
}

static void test_no_entries(void **state)
{
    CLEANUP(cleanup_plan_free) struct plan *p = NULL;
    const struct plan_group *g;

    (void)state;
    assert_int_equal(plan_new(&p, NULL, 0, NULL, PLENTY), 0);
    g = plan_group_of(p, "c1");
    assert_non_null(g);
    assert_text(p, g, "[]");
    assert_int_equal(g->scorers, 0);
    assert_true(plan_group_of(p, "c2") == g);
    assert_int_equal(g->clusters, 2);
}

static void test_order(void **state)
{
    const struct plan_entry entries[] = {entry("b", "{2}"), entry("\xc3\xa4", "{5}"), entry("a.c", "{1}"),
                                         entry("ba", "{3}"), entry("B", "{0}")};
    CLEANUP(cleanup_plan_free) struct plan *p = NULL;
    const struct plan_group *g;

    (void)state;
    assert_int_equal(plan_new(&p, entries, ARRAY_SIZE(entries), NULL, PLENTY), 0);
    g = plan_group_of(p, "c");
    assert_text(p, g, "[{0},{1},{2},{3},{5}]");
    assert_int_equal(g->scorers, 5);
    assert_int_equal(g->left_out, 0);
}

static void test_masks(void **state)
{
    const struct plan_entry entries[] = {entry("cpu", "1"), entry("gpu", "2"), entry("gpu-2", "3")};
    struct mask list[] = {
        {"edge-*", "gpu*"}, {"c1", "*"},     {"c2", "cpu"},  {"c2", "gpu-?"}, {"*", "no-such-score"},
        {"c3", "gpu"},      {"*-eu", "cpu"}, {"c3", "no-*"}, {"c2", "cpu"},   {"c", "*"},
    };
    static const struct {
        const char *cluster, *text;
    } cases[] = {
        {"other", "[1,2,3]"}, {"edge-1", "[1]"}, {"c1", "[]"},       {"c2", "[2]"}, {"c3", "[1,3]"},
        {"edge-eu", "[]"},    {"eu", "[1,2,3]"}, {"c10", "[1,2,3]"}, {"c", "[]"},   {"", "[1,2,3]"},
    };
    const struct masks masks = {.list = list, .n = ARRAY_SIZE(list)};
    CLEANUP(cleanup_plan_free) struct plan *p = NULL;

    (void)state;
    assert_int_equal(plan_new(&p, entries, ARRAY_SIZE(entries), &masks, PLENTY), 0);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct plan_group *g = plan_group_of(p, cases[i].cluster);

        assert_text(p, g, cases[i].text);
        for (size_t k = 0; k < ARRAY_SIZE(entries); k++) {
            bool masked = is_masked(&masks, cases[i].cluster, entries[k].score_name);
            assert_int_equal(plan_group_has(g, k), !masked);
            assert_false(plan_group_lacks(p, g, k));
        }
    }
    assert_true(plan_group_of(p, "c1") == plan_group_of(p, "edge-eu"));
    assert_true(plan_group_of(p, "c10") == plan_group_of(p, "other"));
}

/* The same as asking every mask for every pair, for more entries than a word has bits and for groups that make the table grow. */
static void test_many_groups(void **state)
{
    enum { ENTRIES = 130, CLUSTERS = 200, MASKS = 3 * CLUSTERS };
    static char names[ENTRIES][16], clusters[CLUSTERS][16], patterns[MASKS][2][16];
    struct plan_entry entries[ENTRIES];
    struct mask list[MASKS];
    const struct masks masks = {.list = list, .n = MASKS};
    CLEANUP(cleanup_plan_free) struct plan *p = NULL;
    unsigned random = 7;

    (void)state;
    for (unsigned i = 0; i < ENTRIES; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "s%u", i * 37 % ENTRIES);
        entries[i] = entry(names[i], names[i]);
    }
    for (unsigned i = 0; i < CLUSTERS; i++)
        (void)snprintf(clusters[i], sizeof(clusters[i]), "c%u", i);
    for (unsigned i = 0; i < MASKS; i++) {
        random = random * 1103515245 + 12345;
        (void)snprintf(patterns[i][0], 16, i % 7 ? "c%u" : "*%u", (random >> 16) % CLUSTERS);
        (void)snprintf(patterns[i][1], 16, i % 5 ? "s%u" : "?%u*", (random >> 8) % ENTRIES);
        list[i] = (struct mask){patterns[i][0], patterns[i][1]};
    }
    assert_int_equal(plan_new(&p, entries, ENTRIES, &masks, PLENTY), 0);
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < CLUSTERS; i++) {
            const struct plan_group *g = plan_group_of(p, clusters[i]);

            assert_non_null(g);
            for (size_t k = 0; k < ENTRIES; k++)
                assert_int_equal(plan_group_has(g, k), !is_masked(&masks, clusters[i], names[k]));
        }
}

/* Room is as a JSON string: `""` and `[]` are 4, a comma between. */
static void test_room(void **state)
{
    static const struct {
        size_t max;
        const char *text;
        size_t left_out;
    } cases[] = {
        {1000, "[{},0123456789,\"\"]", 0},
        {22, "[{},0123456789,\"\"]", 0},
        {21, "[{},0123456789]", 1},
        {17, "[{},0123456789]", 1},
        {16, "[{},\"\"]", 1},
        {11, "[{},\"\"]", 1},
        {10, "[{}]", 2},
        {6, "[{}]", 2},
        {5, "[]", 3},
        {0, "[]", 3},
    };
    const struct plan_entry entries[] = {entry("a", "{}"), entry("b", "0123456789"), entry("c", "\"\"")};

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        CLEANUP(cleanup_plan_free) struct plan *p = NULL;
        const struct plan_group *g;
        size_t lacks = 0;

        assert_int_equal(plan_new(&p, entries, ARRAY_SIZE(entries), NULL, cases[i].max), 0);
        g = plan_group_of(p, "c");
        assert_text(p, g, cases[i].text);
        assert_int_equal(g->left_out, cases[i].left_out);
        assert_int_equal(g->scorers, 3 - cases[i].left_out);
        for (size_t k = 0; k < ARRAY_SIZE(entries); k++) {
            assert_int_equal(plan_group_has(g, k), !plan_group_lacks(p, g, k));
            lacks += plan_group_lacks(p, g, k);
        }
        assert_int_equal(lacks, cases[i].left_out);
    }
}

static void test_masked_is_not_lacking(void **state)
{
    const struct plan_entry entries[] = {entry("z", "{}"), entry("a", "0123456789"),
                                         entry("m", "0123456789")};
    struct mask list[] = {{"masked", "m"}};
    const struct masks masks = {.list = list, .n = 1};
    CLEANUP(cleanup_plan_free) struct plan *p = NULL;
    const struct plan_group *g, *all;

    (void)state;
    assert_int_equal(plan_new(&p, entries, ARRAY_SIZE(entries), &masks, 17), 0);
    all = plan_group_of(p, "other");
    g = plan_group_of(p, "masked");
    /* The same text, and yet not the same group: of one a scorer was left out. */
    assert_text(p, all, "[0123456789,{}]");
    assert_text(p, g, "[0123456789,{}]");
    assert_true(all->hash == g->hash);
    assert_int_equal(all->left_out, 1);
    assert_int_equal(g->left_out, 0);
    assert_true(plan_group_lacks(p, all, 2));
    assert_false(plan_group_lacks(p, g, 2));
}

/* Bytes that Go's encoder makes more of than others would. */
static void test_escaped_room(void **state)
{
    static const struct {
        const char *text;
        size_t bytes;
    } cases[] = {
        {"a", 1},
        {"\"", 2},
        {"\\", 2},
        {"\n\r\t", 6},
        {"\x01", 6},
        {"\b\f", 12},
        {"<>&", 18},
        {"\x7f", 1},
        {"\xc3\xa4", 2},
        {"\xe2\x80\xa8", 6},
        {"/", 1},
        {"\xe2\x80\xa9x", 7},
        {"\xe2\x80", 2},
        {"\xe2\x82\xac", 3},
        {"\xe2\x80\xaa", 3},
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        for (size_t less = 0; less < 2; less++) {
            const struct plan_entry e = entry("s", cases[i].text);
            CLEANUP(cleanup_plan_free) struct plan *p = NULL;

            assert_int_equal(plan_new(&p, &e, 1, NULL, 4 + cases[i].bytes - less), 0);
            if (plan_group_of(p, "c")->left_out != less)
                fail_msg("case %zu", i);
        }
}

static void test_small_buffer(void **state)
{
    const struct plan_entry e = entry("s", "{\"a\":1}");
    CLEANUP(cleanup_plan_free) struct plan *p = NULL;
    BUF_AUTO(b, 9);

    (void)state;
    assert_int_equal(plan_new(&p, &e, 1, NULL, PLENTY), 0);
    assert_int_equal(buf_putc(&b, 'x'), 0);
    assert_int_equal(plan_text(p, plan_group_of(p, "c"), &b), -EFBIG);
    assert_int_equal(b.n, 1);
}

static void test_hash(void **state)
{
    (void)state;
    assert_true(plan_hash(STR("")) != 0);
    assert_true(plan_hash(STR("[]")) != plan_hash(STR("[1]")));
    assert_true(plan_hash(STR("[]")) == plan_hash(str_of("[]")));
}

static void test_memory(void **state)
{
    enum { CLUSTERS = 20 };
    const struct plan_entry entries[] = {entry("a", "{}"), entry("b", "{}"), entry("c", "{}"),
                                         entry("d", "{}"), entry("e", "{}")};
    static char clusters[CLUSTERS][8];
    struct mask list[3 * CLUSTERS];
    struct masks masks = {.list = list};

    (void)state;
    /* Twenty clusters, each with another set: the table grows. */
    for (unsigned i = 0; i < CLUSTERS; i++) {
        (void)snprintf(clusters[i], sizeof(clusters[i]), "c%u", i);
        for (unsigned k = 0; k < ARRAY_SIZE(entries); k++)
            if (i >> k & 1)
                list[masks.n++] = (struct mask){clusters[i], entries[k].score_name};
    }
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        CLEANUP(cleanup_plan_free) struct plan *p = NULL;
        int r = plan_new(&p, entries, ARRAY_SIZE(entries), &masks, PLENTY);

        for (unsigned i = 0; r == 0 && i < CLUSTERS; i++)
            if (!plan_group_of(p, clusters[i]))
                r = -ENOMEM;
        assert_true(r == 0 || (r == -ENOMEM && oom_happened()));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_entries),   cmocka_unit_test(test_order),
        cmocka_unit_test(test_masks),        cmocka_unit_test(test_many_groups),
        cmocka_unit_test(test_room),         cmocka_unit_test(test_masked_is_not_lacking),
        cmocka_unit_test(test_escaped_room), cmocka_unit_test(test_small_buffer),
        cmocka_unit_test(test_hash),         cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
