/* The other members of a DynamicScorer's status, and the times of its conditions. */
#include "controller/hub/rules/spec.h"
#include "controller/kube/json.h"
#include "test/unit/hub/state/scorer_states.h"

/* ---- Members ---- */

static const struct {
    void (*arrange)(struct world *w);
    const char *members; /* of a status; null: it has none such */
} members[] = {
    {all_well,
     "{\"healthStatus\":\"Active\",\"observedGeneration\":7,\"scoreName\":\"energy-score\",\"configSource\":"
     "\"API\","
     "\"clusters\":{\"selected\":3,\"upToDate\":3,\"applied\":3,\"scoring\":3,\"failing\":0,\"waiting\":0,"
     "\"silent\":0,\"noRoom\":0},\"failingClusters\":null}"},
    {not_asked, "{\"healthStatus\":\"Unknown\",\"scoreName\":null,\"lastSyncedConfig\":null}"},
    {mode_none, "{\"configSource\":\"Spec\",\"lastSyncedConfig\":null,\"summary\":\"{}\"}"},
    {bad_first_spec, "{\"configSource\":null,\"scoreName\":null,\"summary\":null,\"interval\":null}"},
    {unhealthy, "{\"healthStatus\":\"Inactive\"}"},
    {unchecked, "{\"healthStatus\":\"Unknown\"}"},
    {no_health_reports, "{\"healthStatus\":\"Unknown\"}"},
    {healthy_by_agents, "{\"healthStatus\":\"Active\",\"interval\":\"30s\"}"},
    {degraded_by_agents, "{\"healthStatus\":\"Degraded\"}"},
    {unhealthy_by_agents, "{\"healthStatus\":\"Inactive\"}"},
    {no_room,
     "{\"clusters\":{\"selected\":2,\"upToDate\":2,\"applied\":2,\"scoring\":0,\"failing\":0,\"waiting\":2,"
     "\"silent\":0,\"noRoom\":1}}"},
    {failing, "{\"failingClusters\":[{\"name\":\"c1\",\"state\":\"failing\",\"error\":\"HTTP 503 Service "
              "Unavailable\"},"
              "{\"name\":\"c3\",\"state\":\"stale\",\"error\":\"stale\"}]}"},
    {placement_failing, "{\"failingClusters\":[{\"name\":\"c2\",\"state\":\"notPlaced\","
                        "\"error\":\"AddOnPlacementScore not written: the agent does not say why\"}]}"},
    {unwritten, "{\"failingClusters\":[{\"name\":\"c2\",\"state\":\"notWritten\",\"error\":\"ManifestWork "
                "not written: forbidden\"},"
                "{\"name\":\"c3\",\"state\":\"notWritten\",\"error\":\"ManifestWork not written: namespaces "
                "\\\"c3\\\" not found\"}]}"},
    {refused, "{\"failingClusters\":[{\"name\":\"c2\",\"state\":\"refused\","
              "\"error\":\"the agent rejected its configuration: f:1:2: error: no such field\"}]}"},
    {outdated, "{\"failingClusters\":[{\"name\":\"c2\",\"state\":\"refused\","
               "\"error\":\"the agent rejected its configuration, an older one stays active: "
               "f:1:2: error: no such field\"}]}"},
    {silent_everywhere,
     "{\"failingClusters\":[{\"name\":\"c1\",\"state\":\"silent\",\"error\":\"the cluster is not available: "
     "no "
     "lease\"},{\"name\":\"c2\",\"state\":\"silent\",\"error\":\"the last success was at "
     "2026-11-21T06:23:01Z\"},"
     "{\"name\":\"c3\",\"state\":\"silent\",\"error\":\"the agent's report has no room for all of its "
     "scorers\"}]}"},
    {unapplied, "{\"failingClusters\":[{\"name\":\"c3\",\"state\":\"notApplied\","
                "\"error\":\"ManifestWork not applied: no namespace dynamic-scoring\"}]}"},
    {unconfirmed, "{\"failingClusters\":[{\"name\":\"c2\",\"state\":\"silent\","
                  "\"error\":\"the work agent has not applied the ManifestWork yet\"},"
                  "{\"name\":\"c3\",\"state\":\"silent\","
                  "\"error\":\"the work agent has not applied the ManifestWork yet\"}]}"},
};

static void derives_members_from_states(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
        struct world *w = world_new();
        json_t *wanted = json_of(members[i].members), *status, *value;
        const char *name;

        members[i].arrange(w);
        status = status_at(w, 0);
        json_object_foreach(wanted, name, value)
        {
            if (json_is_null(value))
                assert_null(json_object_get(status, name));
            else
                assert_json_equal(json_object_get(status, name), value);
        }
        json_decref(wanted);
        json_decref(status);
        world_free(w);
    }
}

/* By null in the merge patch. */
static void removes_members_that_no_longer_apply(void **state)
{
    struct world *w = world_new();
    json_t *status;

    (void)state;
    failing(w);
    status = status_at(w, 0);
    merge_status(w->scorer.object, status);
    json_decref(status);
    not_asked(w);
    status = status_at(w, 1);
    assert_true(json_is_null(json_object_get(status, "lastSyncedConfig")));
    assert_true(json_is_null(json_object_get(status, "failingClusters")));
    assert_true(json_is_null(json_object_get(status, "scoreName")));
    merge_status(w->scorer.object, status);
    assert_null(kube_get(w->scorer.object, "status", "lastSyncedConfig", NULL));
    json_decref(status);
    world_free(w);
}

/* A merge alone would mix both configurations. */
static void replaces_the_synced_config(void **state)
{
    struct world *w = world_new();
    json_t *status, *wanted = api_config_value(&w->probe.status.synced);

    (void)state;
    assert_non_null(wanted);
    json_object_set_new(w->scorer.object, "status",
                        json_of("{\"lastSyncedConfig\":{\"old\":1,\"none\":null,\"source\":{\"old\":{\"x\":1}"
                                ",\"params\":{\"old\":\"y\"}},"
                                "\"scoring\":\"no object\"}}"));
    status = status_at(w, 0);
    assert_true(json_is_null(json_object_get(kube_map(status, "lastSyncedConfig", NULL), "old")));
    json_object_del(kube_map(w->scorer.object, "status", "lastSyncedConfig", NULL), "none");
    merge_status(w->scorer.object, status);
    assert_json_equal(kube_get(w->scorer.object, "status", "lastSyncedConfig", NULL), wanted);
    json_decref(status);
    json_decref(wanted);
    world_free(w);
}

/* ---- Times ---- */

static const char *since(const json_t *status, const char *type)
{
    return cstr(kube_str(kube_condition(status, type), "lastTransitionTime", NULL));
}

static void changes_the_transition_time_with_the_status_only(void **state)
{
    struct world *w = world_new();
    json_t *status = status_at(w, 0);

    (void)state;
    assert_string_equal(since(status, "Healthy"), NOON);
    merge_status(w->scorer.object, status);
    json_decref(status);

    failed_once(w);
    status = status_at(w, 30);
    assert_string_equal(since(status, "Healthy"), NOON);
    json_decref(status);

    unhealthy(w);
    status = status_at(w, 60);
    assert_string_equal(since(status, "Healthy"), "2026-11-21T12:01:00Z");
    assert_string_equal(since(status, "Ready"), "2026-11-21T12:01:00Z");
    assert_string_equal(since(status, "ConfigSynced"), NOON);
    json_decref(status);
    world_free(w);
}

/* Where a CRD has no conditions, only the status last sent has them. Also before the watch shows the
 * write. */
static void keeps_transition_times_where_conditions_are_pruned(void **state)
{
    struct world *w = world_new();

    (void)state;
    w->scorer.last_status.sent = status_at(w, 0);
    json_object_set_new(w->scorer.object, "status", json_of("{\"healthStatus\":\"Active\"}"));
    json_t *status = status_at(w, 3600);
    assert_json_equal(status, w->scorer.last_status.sent);
    json_decref(status);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(derives_members_from_states),
        cmocka_unit_test(removes_members_that_no_longer_apply),
        cmocka_unit_test(replaces_the_synced_config),
        cmocka_unit_test(changes_the_transition_time_with_the_status_only),
        cmocka_unit_test(keeps_transition_times_where_conditions_are_pruned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
