/* Events: how many are sent about one object. */
#include "controller/kube/events.h"
#include "controller/kube/json.h"
#include "test/fakes/fake_kube.h"
#include "test/fakes/fake_server.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void add(struct kube_events *e, int object)
{
    json_auto_t *about = json_object();
    json_t *metadata = kube_set_object(about, "metadata");

    kube_set_str(metadata, "namespace", "ns");
    kube_set_str(metadata, "name", "a");
    kube_set(metadata, "uid", json_sprintf("%d", object));
    kube_events_add(e, &(struct kube_event){about, "v1", "ConfigMap", true, "R", "A", "note"});
}

static void sends_25_about_one_object_and_then_one_every_ten_seconds(void **state)
{
    struct fake_kube *f = fake_kube_new();
    struct kube_events *e = kube_events_new(f->kube, "test", "test");

    (void)state;
    fake_default(f->server, (struct fake_answer){.status = 201, .body = "{}"});
    for (int i = 0; i < 30; i++)
        add(e, 1);
    assert_int_equal(kube_events_dropped(e), 5);
    add(e, 2); /* another one has its own */
    assert_int_equal(kube_events_dropped(e), 5);
    fake_kube_advance(f, 9999);
    add(e, 1);
    assert_int_equal(kube_events_dropped(e), 6);
    fake_kube_advance(f, 1);
    add(e, 1);
    add(e, 1);
    assert_int_equal(kube_events_dropped(e), 7);
    e = kube_events_free(e);
    f = fake_kube_free(f);
}

/* Of more objects than are remembered, those with the most Events are. */
static void remembers_who_has_had_many(void **state)
{
    struct fake_kube *f = fake_kube_new();
    struct kube_events *e = kube_events_new(f->kube, "test", "test");

    (void)state;
    fake_default(f->server, (struct fake_answer){.status = 201, .body = "{}"});
    for (int i = 0; i < 25; i++)
        add(e, 0);
    for (int i = 1; i <= 400; i++)
        add(e, i);
    assert_int_equal(kube_events_dropped(e), 0);
    add(e, 0);
    assert_int_equal(kube_events_dropped(e), 1);
    e = kube_events_free(e);
    f = fake_kube_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sends_25_about_one_object_and_then_one_every_ten_seconds),
        cmocka_unit_test(remembers_who_has_had_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
