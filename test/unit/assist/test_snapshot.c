#include "controller/assist/kind.h"
#include "controller/assist/score.h"
#include "controller/assist/snapshot.h"
#include "exporter/base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define NOW INT64_C(1795242181000) /* 2026-11-21T06:23:01Z */

static void add(struct snapshot *s, enum kind kind, const char *text)
{
    json_auto_t *o = json_loads(text, 0, NULL);

    assert_non_null(o);
    snapshot_add(s, kind, o);
}

static void drops_what_is_large(void **state)
{
    struct snapshot *s = snapshot_new((unix_ms){NOW});
    char *text;

    (void)state;
    add(s, KIND_WORKLOADS,
        "{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"managedFields\":[1],\"annotations\":{"
        "\"kubectl.kubernetes.io/last-applied-configuration\":\"{}\",\"b\":\"c\"}},\"spec\":"
        "{\"placementRefs\":[{\"name\":\"p\"}],\"manifestWorkTemplate\":{\"workload\":{}}},\"status\":[]}");
    text = json_dumps(snapshot_get(s, KIND_WORKLOADS, "", "a"), JSON_COMPACT | JSON_SORT_KEYS);
    assert_string_equal(text, "{\"metadata\":{\"annotations\":{\"b\":\"c\"},\"name\":\"a\",\"uid\":\"u\"},"
                              "\"spec\":{\"placementRefs\":[{\"name\":\"p\"}]},\"status\":[]}");
    free(text);
    (void)snapshot_free(s);
}

static void finds_objects_and_lists_them_in_order(void **state)
{
    struct snapshot *s = snapshot_new((unix_ms){NOW});
    size_t at = 0;

    (void)state;
    add(s, KIND_POLICIES, "{\"metadata\":{\"namespace\":\"a-b\",\"name\":\"p\"}}");
    add(s, KIND_POLICIES, "{\"metadata\":{\"namespace\":\"a\",\"name\":\"q\"}}");
    add(s, KIND_POLICIES, "{\"metadata\":{\"namespace\":\"a\",\"name\":\"p\"}}");
    snapshot_sort(s, KIND_POLICIES);
    assert_ptr_equal(snapshot_next(s, KIND_POLICIES, &at), snapshot_get(s, KIND_POLICIES, "a", "p"));
    assert_ptr_equal(snapshot_next(s, KIND_POLICIES, &at), snapshot_get(s, KIND_POLICIES, "a", "q"));
    assert_ptr_equal(snapshot_next(s, KIND_POLICIES, &at), snapshot_get(s, KIND_POLICIES, "a-b", "p"));
    assert_null(snapshot_next(s, KIND_POLICIES, &at));
    assert_null(snapshot_get(s, KIND_POLICIES, "b", "p"));
    assert_null(snapshot_get(s, KIND_CLUSTERS, "", "p"));
    (void)snapshot_free(s);
}

#define SCORE(name, until, scores)                                                                   \
    "{\"metadata\":{\"namespace\":\"c1\",\"name\":\"" name "\"},\"status\":{\"validUntil\":\"" until \
    "\",\"scores\":" scores "}}"

static void reads_scores_whose_items_are_usable(void **state)
{
    struct snapshot *s = snapshot_new((unix_ms){NOW});
    const struct score *one, *empty;

    (void)state;
    add(s, KIND_SCORES,
        SCORE(
            "s", "2026-11-21T06:23:01Z",
            "[{\"name\":\"b\",\"value\":-7},{\"name\":\"a;x\",\"value\":100},{\"name\":\"\",\"value\":12.0},"
            "{\"name\":\"a\"},{\"value\":1},{\"name\":1,\"value\":1},{\"name\":\"b\",\"value\":1.5},"
            "{\"name\":\"c\",\"value\":99999999999},7]"));
    add(s, KIND_SCORES, "{\"metadata\":{\"name\":\"s\"}}");
    add(s, KIND_SCORES, SCORE("t", "2026-11-21T06:23:00Z", "[]"));
    add(s, KIND_SCORES, SCORE("west", "2026-11-21T01:23:01-05:00", "[]"));
    add(s, KIND_SCORES, SCORE("east", "2026-11-21T15:23:00+09:00", "[]"));
    snapshot_sort(s, KIND_SCORES);
    one = snapshot_get(s, KIND_SCORES, "c1", "s");
    assert_int_equal(one->n_items, 3);
    assert_true(str_eq(one->items[0].name, STR("")) && one->items[0].value == 12);
    assert_true(str_eq(one->items[1].name, STR("a;x")) && one->items[1].value == 100);
    assert_true(str_eq(one->items[2].name, STR("b")) && one->items[2].value == -7);
    assert_false(one->is_expired); /* at the very second it still counts */
    empty = snapshot_get(s, KIND_SCORES, "", "s");
    assert_true(empty->n_items == 0 && !empty->valid_until.ms && !empty->is_expired);
    assert_true(((const struct score *)snapshot_get(s, KIND_SCORES, "c1", "t"))->is_expired);
    assert_false(((const struct score *)snapshot_get(s, KIND_SCORES, "c1", "west"))->is_expired);
    assert_true(((const struct score *)snapshot_get(s, KIND_SCORES, "c1", "east"))->is_expired);
    (void)snapshot_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drops_what_is_large),
        cmocka_unit_test(finds_objects_and_lists_them_in_order),
        cmocka_unit_test(reads_scores_whose_items_are_usable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
