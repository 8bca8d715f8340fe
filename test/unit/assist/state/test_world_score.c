#include "controller/assist/state/world.h"
#include "controller/assist/state/world_score.h"
#include "exporter/base/clock.h"
#include "test/oom.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SCORE(version, scores)                                                                    \
    "{\"metadata\":{\"namespace\":\"c1\",\"name\":\"s\",\"resourceVersion\":\"" version "\"},"    \
    "\"status\":{\"validUntil\":\"2026-11-21T06:23:01Z\",\"conditions\":[{\"type\":\"Scored\"}]," \
    "\"scores\":" scores "}}"

static struct world_shared shared;

static struct world_score *score_of(const char *text)
{
    json_t *o = json_loads(text, 0, NULL);
    struct world_score *s;

    assert_non_null(o);
    assert_int_equal(world_score_new(&s, o, &shared), 0);
    json_decref(o);
    return s;
}

static void reads_an_object(void **state)
{
    struct world_score *s = score_of(SCORE(
        "1", "[{\"name\":\"b\",\"value\":-7},{\"name\":\"a;x\",\"value\":100},{\"name\":\"\",\"value\":3}]"));

    (void)state;
    assert_string_equal(s->namespace, "c1");
    assert_string_equal(s->name, "s");
    assert_int_equal(s->valid_until.ms, 1795242181000);
    assert_int_equal(json_array_size(s->conditions), 1);
    assert_int_equal(s->n_items, 3);
    assert_true(str_eq(s->items[0].name, STR("")) && s->items[0].value == 3);
    assert_true(str_eq(s->items[1].name, STR("a;x")) && s->items[1].value == 100);
    assert_true(str_eq(s->items[2].name, STR("b")) && s->items[2].value == -7);
    (void)world_score_free(s);
}

static void leaves_out_items_that_cannot_be_used(void **state)
{
    struct world_score *s = score_of(
        SCORE("1", "[{\"name\":\"a\"},{\"value\":1},{\"name\":1,\"value\":1},{\"name\":\"b\",\"value\":1.5},"
                   "{\"name\":\"c\",\"value\":99999999999},{\"name\":\"d\",\"value\":12.0},7]"));
    struct world_score *empty = score_of("{\"metadata\":{\"name\":\"s\"}}");

    (void)state;
    assert_int_equal(s->n_items, 1);
    assert_int_equal(s->items[0].value, 12);
    assert_int_equal(empty->n_items, 0);
    assert_int_equal(empty->valid_until.ms, 0);
    assert_null(empty->conditions);
    (void)world_score_free(s);
    (void)world_score_free(empty);
}

static void hashes_the_items_alone(void **state)
{
    struct world_score *a =
        score_of(SCORE("1", "[{\"name\":\"a\",\"value\":1},{\"name\":\"b\",\"value\":2}]"));
    struct world_score *same =
        score_of(SCORE("2", "[{\"name\":\"b\",\"value\":2},{\"name\":\"a\",\"value\":1}]"));
    struct world_score *other =
        score_of(SCORE("1", "[{\"name\":\"a\",\"value\":2},{\"name\":\"b\",\"value\":1}]"));

    (void)state;
    assert_true(a->hash == same->hash);
    assert_true(a->hash != other->hash);
    (void)world_score_free(a);
    (void)world_score_free(same);
    (void)world_score_free(other);
}

static void expires_after_its_last_second(void **state)
{
    const struct world_score s = {.valid_until = {5000}}, endless = {.valid_until = {0}};

    (void)state;
    assert_false(world_score_is_expired(&s, (unix_ms){5000}));
    assert_true(world_score_is_expired(&s, (unix_ms){5001}));
    assert_false(world_score_is_expired(&endless, (unix_ms){INT64_MAX}));
}

static void survives_each_failed_allocation(void **state)
{
    json_t *o = json_loads(SCORE("1", "[{\"name\":\"a\",\"value\":1}]"), 0, NULL);

    (void)state;
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        struct world_score *s = NULL;
        int r = world_score_new(&s, o, &shared);

        assert_true(r == 0 || (r == -ENOMEM && oom_happened() && !s));
        (void)world_score_free(s);
    }
    json_decref(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_an_object),
        cmocka_unit_test(leaves_out_items_that_cannot_be_used),
        cmocka_unit_test(hashes_the_items_alone),
        cmocka_unit_test(expires_after_its_last_second),
        cmocka_unit_test(survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
