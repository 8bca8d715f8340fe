/* Events: what is sent, how many, and what is given up. */
#include "controller/kube/event.h"
#include "controller/kube/json.h"
#include "test/fakes/fake_kube.h"
#include "test/fakes/fake_server.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

struct world {
    struct fake_kube *f;
    struct kube_events *events;
    json_t *about;
};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));

    w->f = fake_kube_new();
    w->about =
        json_pack("{s:{s:s, s:s, s:s}}", "metadata", "namespace", "c1", "name", "energy", "uid", "u-1");
    w->events = kube_events_new(w->f->kube, "example.org/agent", "pod-0");
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    w->events = kube_events_free(w->events);
    json_decref(w->about);
    (void)fake_kube_free(w->f);
    free(w);
    return 0;
}

static void add(struct world *w, const char *note)
{
    const struct kube_event e = {.about = w->about,
                                 .api_version = "v1",
                                 .kind = "ConfigMap",
                                 .warning = true,
                                 .reason = "Broken",
                                 .action = "Reading",
                                 .note = note};

    kube_events_add(w->events, &e);
}

static json_t *sent(struct world *w, size_t i)
{
    json_t *o = NULL;

    fake_kube_requests(w->f, i + 1);
    assert_int_equal(kube_json_parse(&o, str_of(fake_request(w->f->server, i)->body), NULL), 0);
    return o;
}

static void sends_a_complete_event(void **state)
{
    struct world *w = *state;
    json_auto_t *o = NULL;

    fake_default(w->f->server, (struct fake_answer){.status = 201, .body = "{}"});
    add(w, "line 3: no such field");
    o = sent(w, 0);
    assert_string_equal(fake_kube_asked(w->f, 0), "POST /apis/events.k8s.io/v1/namespaces/c1/events");
    assert_string_equal(kube_str(o, "apiVersion", NULL), "events.k8s.io/v1");
    assert_string_equal(kube_str(o, "kind", NULL), "Event");
    assert_string_equal(kube_namespace(o), "c1");
    assert_int_equal(strncmp(kube_name(o), "energy.", 7), 0);
    assert_int_equal(strlen(kube_name(o)), 7 + 16);
    assert_string_equal(kube_str(o, "eventTime", NULL), "2026-11-21T06:23:01.000000Z");
    assert_string_equal(kube_str(o, "type", NULL), "Warning");
    assert_string_equal(kube_str(o, "reason", NULL), "Broken");
    assert_string_equal(kube_str(o, "action", NULL), "Reading");
    assert_string_equal(kube_str(o, "note", NULL), "line 3: no such field");
    assert_string_equal(kube_str(o, "reportingController", NULL), "example.org/agent");
    assert_string_equal(kube_str(o, "reportingInstance", NULL), "pod-0");
    assert_string_equal(kube_str(o, "regarding", "name", NULL), "energy");
    assert_string_equal(kube_str(o, "regarding", "namespace", NULL), "c1");
    assert_string_equal(kube_str(o, "regarding", "uid", NULL), "u-1");
    assert_string_equal(kube_str(o, "regarding", "kind", NULL), "ConfigMap");
}

/* Something that comes and goes says the same each time, and each time is news. */
static void sends_the_same_event_again(void **state)
{
    struct world *w = *state;

    fake_default(w->f->server, (struct fake_answer){.status = 201, .body = "{}"});
    for (unsigned i = 0; i < 3; i++) {
        add(w, "it is down");
        add(w, "it is up");
    }
    for (unsigned i = 0; i < 6; i++) {
        json_auto_t *o = sent(w, i);

        assert_string_equal(kube_str(o, "note", NULL), i % 2 ? "it is up" : "it is down");
    }
}

static void be_about(struct world *w, unsigned object)
{
    json_decref(w->about);
    w->about = json_pack("{s:{s:s, s:s, s:s}}", "metadata", "namespace", "c1", "name", "energy", "uid",
                         fake_kube_text(w->f, "u-%u", object));
}

static void limits_events_about_one_object(void **state)
{
    struct world *w = *state;
    const char *why;

    fake_default(w->f->server, (struct fake_answer){.status = 201, .body = "{}"});
    for (unsigned i = 0; i < 30; i++)
        add(w, "a");
    assert_int_equal(kube_events_dropped(w->events, &why), 5);
    assert_string_equal(why, "too many events about one object");
    be_about(w, 2);
    add(w, "a");
    assert_int_equal(kube_events_dropped(w->events, NULL), 5);
    be_about(w, 1); /* setup()'s */
    fake_kube_advance(w->f, 9000);
    add(w, "a");
    assert_int_equal(kube_events_dropped(w->events, NULL), 6);
    fake_kube_advance(w->f, 1000);
    add(w, "a");
    add(w, "a");
    assert_int_equal(kube_events_dropped(w->events, NULL), 7);
    fake_kube_requests(w->f, 27);
    /* More objects than are known one by one: each has its own. */
    for (unsigned i = 0; i < 400; i++) {
        be_about(w, i + 3);
        add(w, "a");
    }
    assert_int_equal(kube_events_dropped(w->events, NULL), 7);
}

static void cuts_a_long_note_and_defaults_the_namespace(void **state)
{
    struct world *w = *state;
    char note[3001];
    json_auto_t *o = NULL;

    for (size_t i = 0; i < 3000; i += 3)
        memcpy(note + i, "\xe2\x82\xac", 3);
    note[3000] = '\0';
    json_decref(w->about);
    w->about = json_pack("{s:{s:s}}", "metadata", "name", "node");
    fake_default(w->f->server, (struct fake_answer){.status = 201, .body = "{}"});
    add(w, note);
    o = sent(w, 0);
    assert_int_equal(kube_text(o, "note", NULL).n, 1023);
    assert_string_equal(kube_namespace(o), "default");
    assert_string_equal(kube_str(o, "regarding", "namespace", NULL), "default");
}

static void retries_then_drops_an_event(void **state)
{
    struct world *w = *state;
    const char *why;

    add(w, "a");
    fake_kube_requests(w->f, 1);
    for (unsigned i = 0; i < 10 && kube_events_dropped(w->events, &why) == 0; i++) {
        fake_kube_idle(w->f);
        fake_kube_advance(w->f, 30000);
    }
    fake_kube_idle(w->f);
    assert_int_equal(fake_requests(w->f->server), 4);
    assert_int_equal(kube_events_dropped(w->events, &why), 1);
    assert_non_null(strstr(why, "hub: create events c1/energy."));
    /* Without the right: at once, and the next has its turn. */
    fake_kube_status(w->f, 403, "Forbidden", "no");
    fake_push(w->f->server, (struct fake_answer){.status = 201, .body = "{}"});
    add(w, "b");
    add(w, "c");
    fake_kube_requests(w->f, 6);
    fake_kube_idle(w->f);
    assert_int_equal(kube_events_dropped(w->events, NULL), 2);
}

static void limits_waiting_events(void **state)
{
    struct world *w = *state;
    const char *why;

    fake_default(w->f->server, (struct fake_answer){.mode = FAKE_HANG});
    for (unsigned i = 0; i < 518; i++) {
        be_about(w, i);
        add(w, "note");
    }
    assert_int_equal(kube_events_dropped(w->events, &why), 6);
    assert_string_equal(why, "too many events waiting");
    fake_kube_requests(w->f, 1);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(sends_a_complete_event),         CASE(sends_the_same_event_again),
        CASE(limits_events_about_one_object), CASE(cuts_a_long_note_and_defaults_the_namespace),
        CASE(retries_then_drops_an_event),    CASE(limits_waiting_events),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
