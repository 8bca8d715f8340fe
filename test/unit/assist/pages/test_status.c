#include "controller/assist/pages/status.h"
#include "controller/assist/state/world.h"
#include "exporter/base/buf.h"
#include "test/oom.h"
#include "test/unit/assist/known_world.h"

#include <errno.h>

static const char *const namespaces[] = {"default", "shop"};

static json_t *text_of(const struct buf *b)
{
    json_t *v = json_loadb(b->p, b->n, 0, NULL);

    assert_non_null(v);
    return v;
}

/* The member as compact JSON. */
static void expect(const json_t *object, const char *key, const char *want)
{
    char *text = json_dumps(json_object_get(object, key), JSON_COMPACT | JSON_ENCODE_ANY | JSON_SORT_KEYS);

    assert_string_equal(text ? text : "absent", want);
    free(text);
}

static json_t *status_of(const struct assist_status *s)
{
    BUF_AUTO(b, 1 << 20);

    assert_int_equal(assist_json_status(s, &b), 0);
    return text_of(&b);
}

static void describes_an_optimizer_without_a_plan(void **state)
{
    struct known k;
    const struct assist_options o = {.deadline_ms = 2500};

    (void)state;
    known_init(&k);
    k.items[WORLD_POLICIES] = NOT_INSTALLED;
    known_begin(&k);
    json_t *s = status_of(&(struct assist_status){.options = &o, .world = k.w, .now = {1700000000000}});

    expect(s, "role", "\"optimizer\"");
    expect(s, "now", "\"2023-11-14T22:13:20.000Z\"");
    expect(s, "writeNamespaces", "[]");
    expect(s, "deadlineSeconds", "2.5");
    expect(s, "solver", "null");
    expect(s, "synced", "true");
    expect(s, "plan", "null");
    expect(s, "webConfig", "null");
    expect(json_object_get(s, "troubles"), "placements", "null");
    assert_non_null(json_string_value(json_object_get(json_object_get(s, "troubles"), "policies")));
    json_decref(s);
    known_end(&k);
}

static void names_the_last_plan(void **state)
{
    struct known k;
    const struct assist_options o = {
        .write_namespaces = namespaces, .n_write_namespaces = 2, .deadline_ms = 10000, .cbc = "/bin/cbc"};
    struct assist_last_plan p = {.at = {1700000000000}, .answer = json_pack("{s:s}", "planHash", "abc")};

    (void)state;
    known_init(&k);
    known_begin(&k);
    json_t *s = status_of(&(struct assist_status){.options = &o, .world = k.w, .plan = &p});

    expect(s, "writeNamespaces", "[\"default\",\"shop\"]");
    expect(s, "solver", "\"/bin/cbc\"");
    expect(s, "plan", "{\"appliedAt\":null,\"at\":\"2023-11-14T22:13:20.000Z\",\"hash\":\"abc\"}");
    json_decref(s);
    json_decref(p.answer);
    known_end(&k);
}

static void shows_a_plan_whole(void **state)
{
    struct assist_last_plan p = {.at = {1700000000000},
                                 .applied_at = {1700000001000},
                                 .seconds = 0.5,
                                 .request = json_pack("{s:s}", "namespace", "default"),
                                 .answer = json_pack("{s:s}", "status", "Optimal")};
    json_t *v = assist_json_plan(&p);

    (void)state;
    assert_non_null(v);
    expect(v, "at", "\"2023-11-14T22:13:20.000Z\"");
    expect(v, "appliedAt", "\"2023-11-14T22:13:21.000Z\"");
    expect(v, "seconds", "0.5");
    expect(v, "request", "{\"namespace\":\"default\"}");
    expect(v, "answer", "{\"status\":\"Optimal\"}");
    json_decref(v);
    json_decref(p.request);
    json_decref(p.answer);
}

static void survives_each_failed_allocation(void **state)
{
    struct assist_last_plan p = {.request = json_pack("{s:s}", "a", "b"), .answer = json_object()};

    (void)state;
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        json_t *v = assist_json_plan(&p);

        assert_true(v || oom_happened());
        json_decref(v);
    }
    json_decref(p.request);
    json_decref(p.answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(describes_an_optimizer_without_a_plan),
        cmocka_unit_test(names_the_last_plan),
        cmocka_unit_test(shows_a_plan_whole),
        cmocka_unit_test(survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
