/* Which transitions of conditions cause Events. */
#include "controller/hub/state/state.h"
#include "controller/kube/event.h"
#include "test/unit/hub/state/status_world.h"

struct kube_events {
    char told[1024]; /* "Warning Timeout: no answer; " ... */
    const json_t *about;
    char kind[32];
};

void kube_events_add(struct kube_events *e, const struct kube_event *event)
{
    size_t n = strlen(e->told);

    (void)snprintf(e->told + n, sizeof(e->told) - n, "%s %s: %s; ", event->warning ? "Warning" : "Normal",
                   event->reason, event->note);
    e->about = event->about;
    SET_TEXT(e->kind, event->kind);
    assert_string_equal(event->api_version, HUB_API);
    assert_string_equal(event->action, "Reconcile");
}

/* "Healthy=False Timeout, Ready=False Timeout" as a status; NULL for an empty text. */
static json_t *status_read(const char *text)
{
    json_t *list = json_array();
    char type[32], status[16], reason[64];
    int n = 0;

    while (sscanf(text, "%31[^=]=%15s %63[^,]%n", type, status, reason, &n) == 3) {
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "type", type, "status", status,
                                              "reason", reason, "message", "words"));
        text += n;
        text += strspn(text, ", ");
    }
    if (*text)
        fail_msg("what is \"%s\"?", text);
    if (json_array_size(list))
        return json_pack("{s:o}", "conditions", list);
    json_decref(list);
    return NULL;
}

static const struct {
    const char *before, *after, *told;
} cases[] = {
    /* An object seen first causes Events only when something is wrong. */
    {"", "Healthy=True Healthy, Ready=True Ready", ""},
    {"", "Healthy=Unknown NotProbed, Ready=Unknown NotProbed", ""},
    {"", "Healthy=False DNS", "Warning DNS: words; "},
    {"", "Valid=False InvalidSpec, Ready=False InvalidSpec",
     "Warning InvalidSpec: words; "}, /* Ready says the same: once is enough */
    {"Healthy=True Healthy, Ready=True Ready", "Healthy=False Timeout, Ready=False Incomplete",
     "Warning Timeout: words; Warning Incomplete: words; "},
    {"", "UniqueScoreName=False DuplicateScoreName", "Warning DuplicateScoreName: words; "},
    {"", "Ready=False NotUsed", "Warning NotUsed: words; "},
    {"Other=True Ready", "Healthy=True Healthy, Valid=False Incomplete", "Warning Incomplete: words; "},
    /* Transitions. */
    {"Healthy=True Healthy", "Healthy=False Timeout", "Warning Timeout: words; "},
    {"Healthy=Unknown NotProbed", "Healthy=False Timeout", "Warning Timeout: words; "},
    {"Healthy=False Timeout", "Healthy=True Healthy", "Normal Healthy: words; "},
    {"Healthy=Unknown NotProbed", "Healthy=True Healthy", "Normal Healthy: words; "},
    {"ConfigSynced=Unknown NotAsked", "ConfigSynced=True Synced", "Normal Synced: words; "},
    {"ConfigSynced=True Synced", "ConfigSynced=False InvalidConfig", "Warning InvalidConfig: words; "},
    {"Valid=False Incomplete", "Valid=True Valid", "Normal Valid: words; "},
    {"UniqueScoreName=False DuplicateScoreName", "UniqueScoreName=True Unique", "Normal Unique: words; "},
    {"Ready=False ClustersFailing", "Ready=True Ready", "Normal Ready: words; "},
    {"Scoring=True Scoring", "Scoring=False ClustersFailing", "Warning ClustersFailing: words; "},
    {"Scoring=False ClustersFailing", "Scoring=True Scoring", "Normal Scoring: words; "},
    {"Scoring=Unknown Waiting", "Scoring=False ClustersFailing", "Warning ClustersFailing: words; "},
    {"Scoring=Unknown Waiting", "Scoring=True Scoring", ""},
    {"Scoring=True Scoring", "Scoring=Unknown Silent", ""},
    {"Scoring=True Scoring, Ready=True Ready", "Scoring=False ClustersFailing, Ready=False ClustersFailing",
     "Warning ClustersFailing: words; "},
    {"Ready=True Ready", "Ready=False NoConfig", "Warning NoConfig: words; "},
    /* No transitions. */
    {"Healthy=True Healthy", "Healthy=True Healthy", ""},
    {"Healthy=False Timeout", "Healthy=False DNS", ""},
    {"Healthy=True Healthy", "Healthy=Unknown NotProbed", ""},
    {"Healthy=True Healthy", "", ""},
    {"Valid=Unknown Waiting", "Valid=True Valid", ""},
    {"UniqueScoreName=Unknown NoScoreName", "UniqueScoreName=True Unique", ""},
    /* Reasons that come and go with the fleet. */
    {"Distributed=True Distributed", "Distributed=False ClustersFailing", ""},
    {"Ready=True Ready", "Ready=False Progressing", ""},
    {"Ready=False Progressing", "Ready=True Ready", ""},
    {"Ready=True Ready", "Ready=False NotSelected", ""},
    {"Ready=True Ready", "Ready=False Deleting", ""},
    {"ConfigSynced=False Timeout", "ConfigSynced=True NotNeeded", ""},
};

static void sends_an_event_for_each_transition(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct kube_events e = {0};
        json_t *object = json_object(), *before = status_read(cases[i].before),
               *after = status_read(cases[i].after);

        status_events(&e, object, "DynamicScorer", before, after);
        if (strcmp(e.told, cases[i].told) != 0)
            fail_msg("\"%s\" to \"%s\" gave \"%s\"", cases[i].before, cases[i].after, e.told);
        if (*e.told) {
            assert_ptr_equal(e.about, object);
            assert_string_equal(e.kind, "DynamicScorer");
        }
        json_decref(object);
        json_decref(before);
        json_decref(after);
    }
}

/* A status written by another controller, of any shape. */
static void survives_statuses_of_other_writers(void **state)
{
    static const char *const texts[] = {"null",
                                        "[]",
                                        "\"x\"",
                                        "{\"conditions\":{}}",
                                        "{\"conditions\":[null,1,[],{}]}",
                                        "{\"conditions\":[{\"type\":\"Healthy\"}]}",
                                        "{\"conditions\":[{\"type\":1,\"status\":[]}]}"};
    json_t *after = status_read("Healthy=False DNS");

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct kube_events e = {0};
        json_t *before = json_loads(texts[i], JSON_DECODE_ANY, NULL);

        status_events(&e, after, "DynamicScorer", before, after);
        assert_string_equal(e.told, "Warning DNS: words; ");
        e.told[0] = '\0';
        status_events(&e, after, "DynamicScorer", after, before);
        assert_string_equal(e.told, "");
        json_decref(before);
    }
    json_decref(after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sends_an_event_for_each_transition),
        cmocka_unit_test(survives_statuses_of_other_writers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
