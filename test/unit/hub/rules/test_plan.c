/* Plans: which summaries each cluster receives, in which order and how much room; and how clusters are
 * grouped. */
#include "controller/hub/rules/plan.h"
#include "exporter/base/buf.h"
#include "exporter/base/glob.h"
#include "exporter/base/str.h"
#include "exporter/score/feature.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* What plan.c finds with its tables, by looking at every mask. */
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
    return (struct plan_entry){.score_name = name, .text = str_of(text)};
}

static const struct plan_group *group_of(struct plan *p, const char *name)
{
    return plan_group_of(p, &(struct plan_cluster){.name = name});
}

static void assert_text(const struct plan *p, const struct plan_group *g, const char *want)
{
    BUF_AUTO(b, PLENTY);

    plan_text(p, g, false, &b);
    assert_int_equal(buf_failed(&b), 0);
    assert_int_equal(b.n, g->bytes);
    assert_true(plan_hash(buf_str(&b)) == g->hash);
    buf_putc(&b, '\0');
    assert_int_equal(buf_failed(&b), 0);
    assert_string_equal(b.p, want);
}

static void gives_every_cluster_an_empty_list_without_entries(void **state)
{
    CLEANUP(cleanup_plan_free) struct plan *p = NULL;
    const struct plan_group *g;

    (void)state;
    p = plan_new(NULL, 0, NULL, NULL, PLENTY);
    g = group_of(p, "c1");
    assert_non_null(g);
    assert_text(p, g, "[]");
    assert_int_equal(g->scorers, 0);
    assert_true(group_of(p, "c2") == g);
}

static void sorts_entries_by_the_bytes_of_their_names(void **state)
{
    const struct plan_entry entries[] = {entry("b", "{2}"), entry("\xc3\xa4", "{5}"), entry("a.c", "{1}"),
                                         entry("ba", "{3}"), entry("B", "{0}")};
    CLEANUP(cleanup_plan_free) struct plan *p = NULL;
    const struct plan_group *g;

    (void)state;
    p = plan_new(entries, ARRAY_SIZE(entries), NULL, NULL, PLENTY);
    g = group_of(p, "c");
    assert_text(p, g, "[{0},{1},{2},{3},{5}]");
    assert_int_equal(g->scorers, 5);
    assert_int_equal(g->left_out, 0);
}

static void leaves_masked_entries_out(void **state)
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
    p = plan_new(entries, ARRAY_SIZE(entries), &masks, NULL, PLENTY);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct plan_group *g = group_of(p, cases[i].cluster);

        assert_text(p, g, cases[i].text);
        for (size_t k = 0; k < ARRAY_SIZE(entries); k++) {
            bool masked = is_masked(&masks, cases[i].cluster, entries[k].score_name);
            assert_int_equal(plan_group_has(g, k), !masked);
            assert_false(plan_group_lacks(p, g, k));
        }
    }
    assert_true(group_of(p, "c1") == group_of(p, "edge-eu"));
    assert_true(group_of(p, "c10") == group_of(p, "other"));
}

/* More entries than a word has bits, and enough groups for the table to grow. */
static void groups_clusters_as_each_mask_would(void **state)
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
    p = plan_new(entries, ENTRIES, &masks, NULL, PLENTY);
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < CLUSTERS; i++) {
            const struct plan_group *g = group_of(p, clusters[i]);

            assert_non_null(g);
            for (size_t k = 0; k < ENTRIES; k++)
                assert_int_equal(plan_group_has(g, k), !is_masked(&masks, clusters[i], names[k]));
        }
}

/* Counted as a JSON string: `""` and `[]` take 4 bytes, a comma 1. */
static void counts_the_clusters_of_each_mask(void **state)
{
    struct mask list[] = {{"east-*", "a"}, {"c2", "b"},      {"*", "none"},
                          {"east-*", "*"}, {"nowhere", "a"}, {"c2", "no"}};
    const struct masks masks = {.list = list, .n = ARRAY_SIZE(list)};
    const struct plan_entry entries[] = {entry("a", "{}"), entry("b", "{}")};
    static const size_t wanted[] = {2, 1, 3, 2, 0, 1};
    CLEANUP(cleanup_plan_free) struct plan *p = NULL;

    (void)state;
    p = plan_new(entries, ARRAY_SIZE(entries), &masks, NULL, PLENTY);
    assert_text(p, group_of(p, "east-1"), "[]");
    assert_text(p, group_of(p, "c2"), "[{}]");
    assert_non_null(group_of(p, "east-2"));
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
        assert_int_equal(p->of_masks[i].clusters, wanted[i]);
}

/* It is meant for the clusters, but their agents would refuse the whole list; there is room for it. */
static void leaves_out_what_old_agents_refuse(void **state)
{
    const unsigned bit = 1u << FEATURE_REVERSED_RANGE;
    struct plan_entry entries[] = {entry("a", "{1}"), entry("b", "{2}")};
    CLEANUP(cleanup_plan_free) struct plan *p = NULL;
    const struct plan_group *old, *new;

    (void)state;
    entries[1].needs = bit;
    p = plan_new(entries, ARRAY_SIZE(entries), NULL, NULL, PLENTY);
    new = group_of(p, "new");
    old = plan_group_of(p, &(struct plan_cluster){.name = "old", .lacks = bit});
    assert_text(p, new, "[{1},{2}]");
    assert_text(p, old, "[{1}]");
    assert_false(plan_group_outdates(p, new, 1));
    assert_false(plan_group_outdates(p, old, 0));
    assert_true(plan_group_outdates(p, old, 1));
    assert_false(plan_group_lacks(p, old, 1));
    assert_int_equal(old->left_out, 0);
}

static void leaves_out_what_has_no_room(void **state)
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

        p = plan_new(entries, ARRAY_SIZE(entries), NULL, NULL, cases[i].max);
        g = group_of(p, "c");
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

static void tells_masked_from_left_out(void **state)
{
    const struct plan_entry entries[] = {entry("z", "{}"), entry("a", "0123456789"),
                                         entry("m", "0123456789")};
    struct mask list[] = {{"masked", "m"}};
    const struct masks masks = {.list = list, .n = 1};
    CLEANUP(cleanup_plan_free) struct plan *p = NULL;
    const struct plan_group *g, *all;

    (void)state;
    p = plan_new(entries, ARRAY_SIZE(entries), &masks, NULL, 17);
    all = group_of(p, "other");
    g = group_of(p, "masked");
    /* The same text but another group: a scorer was left out of one. */
    assert_text(p, all, "[0123456789,{}]");
    assert_text(p, g, "[0123456789,{}]");
    assert_true(all->hash == g->hash);
    assert_int_equal(all->left_out, 1);
    assert_int_equal(g->left_out, 0);
    assert_true(plan_group_lacks(p, all, 2));
    assert_false(plan_group_lacks(p, g, 2));
}

/* Characters that only Go's encoder escapes count, too. */
static void counts_bytes_as_go_escapes_them(void **state)
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
            CLEANUP(cleanup_plan_free)
            struct plan *p = plan_new(&e, 1, NULL, NULL, 4 + cases[i].bytes - less);

            if (group_of(p, "c")->left_out != less)
                fail_msg("case %zu", i);
        }
}

static void fails_in_a_small_buffer(void **state)
{
    const struct plan_entry e = entry("s", "{\"a\":1}");
    CLEANUP(cleanup_plan_free) struct plan *p = plan_new(&e, 1, NULL, NULL, PLENTY);
    BUF_AUTO(b, 9);

    (void)state;
    buf_putc(&b, 'x');
    assert_int_equal(buf_failed(&b), 0);
    plan_text(p, group_of(p, "c"), false, &b);
    assert_int_equal(buf_failed(&b), -EFBIG);
}

static void gives_room_to_suspended_ones_last_in_a_list_of_their_own(void **state)
{
    struct plan_entry entries[] = {entry("b", "{1}"), entry("a", "{2}"), entry("c", "{3}")};
    const size_t room[] = {4 + 3 + 4, 4 + 3 + 4 + 4};

    (void)state;
    entries[2].suspended = entries[1].suspended = true;
    for (size_t i = 0; i < ARRAY_SIZE(room); i++) {
        CLEANUP(cleanup_plan_free) struct plan *p = plan_new(entries, 3, NULL, NULL, room[i]);
        const struct plan_group *g = group_of(p, "c1");
        BUF_AUTO(called, PLENTY);
        BUF_AUTO(suspended, PLENTY);

        plan_text(p, g, false, &called);
        assert_int_equal(buf_failed(&called), 0);
        plan_text(p, g, true, &suspended);
        assert_int_equal(buf_failed(&suspended), 0);
        assert_true(str_eq(buf_str(&called), STR("[{1}]")));
        assert_true(str_eq(buf_str(&suspended), i ? STR("[{2},{3}]") : STR("[{2}]")));
        assert_true(g->hash == plan_hash_lists(plan_hash(buf_str(&called)), buf_str(&suspended), STR("")));
        assert_true(g->hash != plan_hash(buf_str(&called)));
    }
}

static void hashes_texts_to_nonzero(void **state)
{
    (void)state;
    assert_true(plan_hash(STR("")) != 0);
    assert_true(plan_hash(STR("[]")) != plan_hash(STR("[1]")));
    assert_true(plan_hash(STR("[]")) == plan_hash(str_of("[]")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gives_every_cluster_an_empty_list_without_entries),
        cmocka_unit_test(sorts_entries_by_the_bytes_of_their_names),
        cmocka_unit_test(leaves_masked_entries_out),
        cmocka_unit_test(groups_clusters_as_each_mask_would),
        cmocka_unit_test(counts_the_clusters_of_each_mask),
        cmocka_unit_test(leaves_out_what_old_agents_refuse),
        cmocka_unit_test(leaves_out_what_has_no_room),
        cmocka_unit_test(tells_masked_from_left_out),
        cmocka_unit_test(counts_bytes_as_go_escapes_them),
        cmocka_unit_test(fails_in_a_small_buffer),
        cmocka_unit_test(gives_room_to_suspended_ones_last_in_a_list_of_their_own),
        cmocka_unit_test(hashes_texts_to_nonzero),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
