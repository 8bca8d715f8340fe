#include "controller/hub/state/state.h"

#include <errno.h>

#include "test/unit/hub/state/hub_world.h"

#define ALL "/apis/dynamic-scoring.open-cluster-management.io/v1alpha1/"
#define ELSEWHERE \
    "{\"metadata\":{\"namespace\":\"dev\",\"name\":\"%s\",\"uid\":\"u\",\"resourceVersion\":\"2\"%s}%s}"

static bool both_are_watched(struct world *w)
{
    size_t n = 0;

    for (size_t i = 0; i < fake_requests(w->f->server); i++) {
        const char *target = fake_request(w->f->server, i)->target;
        n += strncmp(target, ALL "dynamic", strlen(ALL "dynamic")) == 0 && strstr(target, "watch=1");
    }
    return n == 2;
}

/* What the list of all namespaces shows once restart() has been called. */
static void show_elsewhere(struct world *w, const char *plural, const char *items)
{
    const char *path = fake_kube_text(w->f, ALL "%s?", plural);
    const char *list = fake_kube_text(
        w->f, "{\"kind\":\"List\",\"metadata\":{\"resourceVersion\":\"9\"},\"items\":[%s]}", items);

    turn_until(w, both_are_watched); /* the answers of setup() are used up */
    fake_push(w->f->server, (struct fake_answer){.body = list, .only_path = path});
    fake_push(w->f->server, (struct fake_answer){.mode = FAKE_HANG_LATE, .body = "    ", .only_path = path});
}

static void restart(struct world *w)
{
    w->hub->strays = hub_strays_free(w->hub->strays);
    assert_int_equal(hub_strays_new(&w->hub->strays, w->hub), 0);
}

static size_t events_in_dev(struct world *w, const char **ret_body)
{
    size_t n = 0;

    for (size_t i = 0; i < fake_requests(w->f->server); i++) {
        const struct fake_request *rq = fake_request(w->f->server, i);
        if (strcmp(rq->method, "POST") != 0 || !strstr(rq->target, "/namespaces/dev/events"))
            continue;
        *ret_body = rq->body;
        n++;
    }
    return n;
}

static void pass(struct world *w, unsigned seconds)
{
    for (unsigned i = 0; i < seconds * 2; i++) {
        fake_kube_advance(w->f, 500);
        fake_kube_idle(w->f);
    }
}

static void says_where_to_put_an_object(void **state)
{
    struct world *w = *state;
    const char *body = "";

    show_elsewhere(w, "dynamicscorers", fake_kube_text(w->f, ELSEWHERE, "s", "", ",\"status\":{}"));
    show_elsewhere(w, "dynamicscoringconfigs", fake_kube_text(w->f, ELSEWHERE, "c", "", ""));
    restart(w);
    pass(w, 5);
    assert_int_equal(events_in_dev(w, &body), 0); /* another controller may come */
    pass(w, 12);
    assert_int_equal(events_in_dev(w, &body), 2);
    assert_non_null(strstr(body, "apply the object to namespace hub-ns, or run the controller with "
                                 "--namespace=dev"));
    assert_non_null(strstr(body, "\"uid\":\"u\""));
    pass(w, 60);
    assert_int_equal(events_in_dev(w, &body), 2); /* once */
}

static void leaves_objects_of_other_controllers_alone(void **state)
{
    struct world *w = *state;
    const char *body = "";

    show_elsewhere(w, "dynamicscorers",
                   fake_kube_text(w->f, ELSEWHERE, "s", "", ",\"status\":{\"healthStatus\":\"Active\"}"));
    show_elsewhere(w, "dynamicscoringconfigs",
                   fake_kube_text(w->f, ELSEWHERE, "c", ",\"finalizers\":[\"a/b\"]", ""));
    restart(w);
    pass(w, 20);
    assert_int_equal(events_in_dev(w, &body), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(says_where_to_put_an_object, setup, teardown),
        cmocka_unit_test_setup_teardown(leaves_objects_of_other_controllers_alone, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
