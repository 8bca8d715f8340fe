/* Answers that come later, and large ones, through a real server. */
#include "exporter/base/buf.h"
#include "exporter/base/httpd.h"
#include "test/unit/assist/api/api_world.h"
#include "test/unit/base/httpd_world.h"

#include <string.h>

#define POST(path, body, length)                                                                           \
    "POST " path " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n" \
    "Content-Length: " length "\r\n\r\n" body

struct served {
    struct api_world *w;
    struct env e;
    struct httpd_route routes[ARRAY_SIZE(world_operations) + API_OWN_ROUTES];
};

static int served_setup(void **state)
{
    struct served *s = calloc(1, sizeof(*s));
    struct httpd_options o = options_for(&s->e);

    assert_int_equal(world_setup((void **)&s->w), 0);
    s->e.loop = s->w->loop;
    o.routes = s->routes;
    o.n_routes = api_routes(s->w->api, s->routes);
    open_server(&s->e, &o);
    *state = s;
    return 0;
}

static int served_teardown(void **state)
{
    struct served *s = *state;

    s->w->api = api_free(s->w->api); /* prints what is left, before the server is stopped */
    s->e.server = httpd_stop(s->e.server, 1000);
    assert_int_equal(world_teardown((void **)&s->w), 0);
    free(s);
    return 0;
}

static void wait_held(struct served *s)
{
    int64_t end = now() + PATIENCE_MS;

    while (!s->w->held && now() < end)
        assert_int_equal(loop_turn(s->w->loop, 1), 0);
    assert_non_null(s->w->held);
}

static void sends_an_answer_that_comes_later(void **state)
{
    struct served *s = *state;
    int fd = dial(httpd_port(s->e.server, 0), 0);
    BUF_AUTO(answer, 1 << 20);

    say(fd, POST("/hold", "{}", "2"), strlen(POST("/hold", "{}", "2")));
    wait_held(s);
    call_fail(TAKE_PTR(s->w->held), 503, NULL, "shutting down");
    hear_all(&s->e, fd, &answer);
    assert_non_null(strstr(answer.p, " 503 "));
    assert_string_equal(body_of(&answer), "{\"detail\":\"shutting down\",\"retryAfterSeconds\":5}");
    (void)close(fd);
}

/* An answer with so many values that a worker prints it. */
static json_t *make_large(void)
{
    json_t *list = json_array();

    for (int i = 0; i < 50000; i++)
        assert_int_equal(json_array_append_new(list, json_integer(i)), 0);
    return json_pack("{s:o}", "list", list);
}

static void prints_a_large_answer_on_a_worker(void **state)
{
    struct served *s = *state;
    int fd = dial(httpd_port(s->e.server, 0), 0);
    BUF_AUTO(answer, 1 << 20);
    json_auto_t *body = NULL;

    say(fd, POST("/hold", "{}", "2"), strlen(POST("/hold", "{}", "2")));
    wait_held(s);
    call_done(TAKE_PTR(s->w->held), make_large());
    hear_all(&s->e, fd, &answer);
    body = json_loads(body_of(&answer), 0, NULL);
    assert_int_equal(json_array_size(json_object_get(body, "list")), 50000);
    (void)close(fd);
}

static json_t *make_item(void *arg, size_t i)
{
    (void)arg;
    return json_integer((json_int_t)i);
}

static void note_freed(void *arg)
{
    ++*(unsigned *)arg;
}

static void writes_items_that_are_made_later(void **state)
{
    struct served *s = *state;
    int fd = dial(httpd_port(s->e.server, 0), 0);
    BUF_AUTO(answer, 1 << 20);
    unsigned freed = 0;
    struct call *c;

    say(fd, POST("/hold", "{}", "2"), strlen(POST("/hold", "{}", "2")));
    wait_held(s);
    c = TAKE_PTR(s->w->held);
    call_items_later(c, make_item, 3, note_freed, &freed);
    call_done(c, json_pack("{s:i,s:[],s:i}", "a", 1, "items", "total", 3));
    hear_all(&s->e, fd, &answer);
    assert_string_equal(body_of(&answer), "{\"a\":1,\"items\":[0,1,2],\"total\":3}");
    assert_int_equal(freed, 1);
    (void)close(fd);
}

static void answers_what_is_held_when_it_stops(void **state)
{
    struct served *s = *state;
    int fd = dial(httpd_port(s->e.server, 0), 0);

    say(fd, POST("/hold", "{}", "2"), strlen(POST("/hold", "{}", "2")));
    wait_held(s);
    call_done(TAKE_PTR(s->w->held), make_large()); /* the worker may print it after api_free() was called */
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sends_an_answer_that_comes_later, served_setup, served_teardown),
        cmocka_unit_test_setup_teardown(prints_a_large_answer_on_a_worker, served_setup, served_teardown),
        cmocka_unit_test_setup_teardown(writes_items_that_are_made_later, served_setup, served_teardown),
        cmocka_unit_test_setup_teardown(answers_what_is_held_when_it_stops, served_setup, served_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
