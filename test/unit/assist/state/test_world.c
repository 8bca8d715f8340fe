#include "controller/assist/state/world.h"
#include "controller/kube/json.h"
#include "exporter/base/loop.h"
#include "exporter/metric/metrics.h"
#include "test/fakes/fake_kube.h"
#include "test/fakes/fake_server.h"
#include "test/oom.h"
#include "test/unit/assist/known_world.h"

#include <errno.h>
#include <stdio.h>

static int setup(void **state)
{
    struct known *k = calloc(1, sizeof(*k));

    known_init(k);
    *state = k;
    return 0;
}

static int teardown(void **state)
{
    known_end(*state);
    free(*state);
    return 0;
}

static const char *object(struct known *k, const char *namespace, const char *name, const char *version)
{
    return fake_kube_object(k->f, namespace, name, version);
}

static void expect(struct known *k, enum world_kind kind, const char *namespace, const char *want)
{
    char all[256] = "";
    size_t at = 0, n = 0;
    json_t *o;

    while ((o = world_next(k->w, kind, namespace, &at)))
        n += (size_t)snprintf(all + n, sizeof(all) - n, "%s/%s@%s ", kube_namespace(o), kube_name(o),
                              kube_version(o));
    assert_string_equal(all, want);
}

/* Turns the loop until the world is so, or fails the test. */
#define UNTIL(k, condition)                                   \
    do {                                                      \
        for (unsigned i = 0; i < 4000 && !(condition); i++) { \
            (k)->f->clock.mono.ms += 20;                      \
            assert_int_equal(loop_turn((k)->f->loop, 5), 0);  \
        }                                                     \
        assert_true(condition);                               \
    } while (0)

static void follows_objects(void **state)
{
    struct known *k = *state;

    k->items[WORLD_PLACEMENTS] =
        fake_kube_text(k->f, "%s,%s", object(k, "b", "x", "1"), object(k, "a", "y", "2"));
    k->lines[WORLD_PLACEMENTS] =
        fake_kube_text(k->f, "%s%s%s", fake_kube_event(k->f, "ADDED", object(k, "a", "z", "101")),
                       fake_kube_event(k->f, "MODIFIED", object(k, "a", "y", "102")),
                       fake_kube_event(k->f, "DELETED", object(k, "b", "x", "103")));
    known_begin(k);
    assert_true(world_synced(k->w));
    UNTIL(k, world_get(k->w, WORLD_PLACEMENTS, "a", "z") && !world_get(k->w, WORLD_PLACEMENTS, "b", "x"));
    expect(k, WORLD_PLACEMENTS, NULL, "a/y@102 a/z@101 ");
    expect(k, WORLD_PLACEMENTS, "b", "");
    assert_null(world_trouble(k->w, WORLD_PLACEMENTS));
}

static void leaves_replicated_policies_out(void **state)
{
    struct known *k = *state;
    bool asked = false;

    known_begin(k);
    for (size_t i = 0; i < fake_requests(k->f->server); i++)
        asked |=
            strstr(fake_kube_asked(k->f, i),
                   "/policies?labelSelector=%21policy.open-cluster-management.io%2Froot-policy&limit=") !=
            NULL;
    assert_true(asked);
}

static void follows_scores(void **state)
{
    struct known *k = *state;
    const struct world_score *s;
    size_t at = 0;

    k->items[WORLD_SCORES] = "{\"metadata\":{\"namespace\":\"c2\",\"name\":\"s\",\"resourceVersion\":\"1\"},"
                             "\"status\":{\"scores\":["
                             "{\"name\":\"i\",\"value\":5}]}},{\"metadata\":{\"namespace\":\"c1\",\"name\":"
                             "\"s\",\"resourceVersion\":"
                             "\"2\"}}";
    known_begin(k);
    s = world_next_score(k->w, NULL, &at);
    assert_string_equal(s->namespace, "c1");
    s = world_next_score(k->w, NULL, &at);
    assert_string_equal(s->namespace, "c2");
    assert_int_equal(s->items[0].value, 5);
    assert_null(world_next_score(k->w, NULL, &at));
    assert_ptr_equal(world_score(k->w, "c2", "s"), s);
    assert_null(world_score(k->w, "c2", "t"));
    at = 0;
    assert_null(world_next(k->w, WORLD_SCORES, NULL, &at));
    assert_null(world_get(k->w, WORLD_SCORES, "c2", "s"));
}

static void says_which_kinds_are_not_installed(void **state)
{
    struct known *k = *state;
    json_t *notes = json_array();
    struct metrics *m;

    k->items[WORLD_POLICIES] = NOT_INSTALLED;
    k->items[WORLD_SCORERS] = NOT_INSTALLED;
    known_begin(k);
    assert_true(world_synced(k->w));
    assert_true(world_lacks_kind(k->w, WORLD_POLICIES));
    assert_false(world_lacks_kind(k->w, WORLD_PLACEMENTS));
    assert_non_null(world_trouble(k->w, WORLD_POLICIES));
    assert_int_equal(world_note(k->w, WORLD_POLICIES, notes), 0);
    assert_int_equal(world_note(k->w, WORLD_PLACEMENTS, notes), 0);
    assert_int_equal(json_array_size(notes), 1);
    assert_string_equal(json_string_value(json_array_get(notes, 0)),
                        "Policies are not installed on the hub.");
    json_decref(notes);
    /* Hubs without governance are common; without our own CRD nothing works. */
    assert_int_equal(metrics_new(&m, METRIC_OWNER_LOOP), 0);
    metric_set(m, METRIC_KUBE_UP, LV("policies", "hub"), 7);
    world_set_metrics(k->w, m);
    assert_true(metric_get(m, METRIC_KUBE_UP, LV("policies", "hub")) == 0);
    assert_true(metric_get(m, METRIC_KUBE_UP, LV("placements", "hub")) == 1);
    (void)metrics_free(m);
}

static void keeps_objects_while_the_api_server_is_away(void **state)
{
    struct known *k = *state;
    json_t *notes = json_array();
    const char *note;

    k->items[WORLD_CLUSTERS] = "{\"metadata\":{\"name\":\"c1\",\"resourceVersion\":\"1\"}}";
    /* The stream ends with the list of another hand: an error. */
    k->lines[WORLD_CLUSTERS] = "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":403,\"reason\":"
                               "\"Forbidden\",\"message\":\"no longer\"}}\n";
    known_begin(k);
    UNTIL(k, world_trouble(k->w, WORLD_CLUSTERS));
    k->f->clock.wall.ms += 35000;
    expect(k, WORLD_CLUSTERS, NULL, "/c1@1 ");
    assert_int_equal(world_note(k->w, WORLD_CLUSTERS, notes), 0);
    note = json_string_value(json_array_get(notes, 0));
    assert_string_equal(note, "ManagedClusters are as of 2026-11-21T06:23:01Z (35 s ago): hub: watch "
                              "managedclusters: no longer.");
    json_decref(notes);
}

/* The list comes in two pages; objects of the second are there meanwhile. */
static void shows_no_half_of_a_list(void **state)
{
    struct known *k = *state;
    const char *path = known_path(k, WORLD_PLACEMENTS);

    k->items[WORLD_PLACEMENTS] = fake_kube_text(k->f, "%s,%s,%s", object(k, "a", "x", "1"),
                                                object(k, "a", "y", "2"), object(k, "a", "z", "3"));
    k->lines[WORLD_PLACEMENTS] =
        "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":"
        "\"Expired\",\"message\":\"too old\"}}\n";
    known_begin(k);
    fake_push(k->f->server,
              (struct fake_answer){
                  .only_path = path,
                  .body = fake_kube_text(k->f,
                                         "{\"metadata\":{\"resourceVersion\":\"200\",\"continue\":\"more\"},"
                                         "\"items\":[%s]}",
                                         object(k, "a", "x", "150"))});
    UNTIL(k, strcmp(kube_version(world_get(k->w, WORLD_PLACEMENTS, "a", "x")), "150") == 0);
    expect(k, WORLD_PLACEMENTS, NULL, "a/x@150 a/y@2 a/z@3 ");
    known_push_list(k, WORLD_PLACEMENTS, object(k, "a", "z", "3"));
    known_push_watch(k, WORLD_PLACEMENTS, fake_kube_bookmark(k->f, "201"));
    UNTIL(k, !world_get(k->w, WORLD_PLACEMENTS, "a", "y"));
    expect(k, WORLD_PLACEMENTS, NULL, "a/x@150 a/z@3 ");
}

/* They went with the CRD; the API server may only be starting, and then they are there again. */
static void has_no_objects_of_a_kind_that_is_uninstalled(void **state)
{
    struct known *k = *state;
    const char *scores = "{\"metadata\":{\"namespace\":\"c1\",\"name\":\"s\",\"resourceVersion\":\"1\"}}";
    size_t at = 0;

    k->items[WORLD_SCORES] = scores;
    k->lines[WORLD_SCORES] = "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"reason\":"
                             "\"Expired\",\"message\":\"too old\"}}\n";
    known_begin(k);
    fake_push(k->f->server, (struct fake_answer){.only_path = known_path(k, WORLD_SCORES),
                                                 .status = 404,
                                                 .body = "404 page not found\n"});
    assert_non_null(world_score(k->w, "c1", "s"));
    UNTIL(k, world_lacks_kind(k->w, WORLD_SCORES));
    assert_null(world_score(k->w, "c1", "s"));
    assert_null(world_next_score(k->w, NULL, &at));
    known_push_list(k, WORLD_SCORES, scores);
    known_push_watch(k, WORLD_SCORES, fake_kube_bookmark(k->f, "101"));
    UNTIL(k, world_score(k->w, "c1", "s"));
}

static void survives_each_failed_allocation(void **state)
{
    struct known *k = *state;
    const struct world_options o = {k->f->loop, k->f->kube, known_on_synced, k};
    long runs = 0;

    json_set_alloc_funcs(malloc, free);
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        struct world *w = NULL;
        int r = world_new(&w, &o);

        assert_true(r == 0 || (r == -ENOMEM && oom_happened() && !w));
        (void)world_free(w);
        runs = n;
    }
    assert_true(runs > 20);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(follows_objects),
        CASE(leaves_replicated_policies_out),
        CASE(follows_scores),
        CASE(says_which_kinds_are_not_installed),
        CASE(keeps_objects_while_the_api_server_is_away),
        CASE(shows_no_half_of_a_list),
        CASE(has_no_objects_of_a_kind_that_is_uninstalled),
        CASE(survives_each_failed_allocation),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
