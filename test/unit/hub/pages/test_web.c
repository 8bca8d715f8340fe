#include "controller/hub/pages/web.h"
#include "test/oom.h"
#include "test/unit/hub/pages/view_world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>

enum { PATIENCE_TURNS = 6000, TRIES = 20 };

static unsigned metrics_set;

void hub_set_metrics(struct hub *h)
{
    metrics_set++;
    metric_set(h->o.metrics, METRIC_SCORERS, LV_NONE, metrics_set);
}

/* A server of the world's hub, and the addresses that it listens on. */
struct served {
    struct world *world;
    struct metrics *metrics;
    struct hub_web *web;
    unsigned metrics_port, health_port;
};

static unsigned free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &size), 0);
    (void)close(fd);
    return ntohs(a.sin_port);
}

static int start(struct served *s, const char *metrics, const char *health)
{
    CLEANUP(cleanup_free) char *why = NULL;
    const struct hub_web_options o = {s->world->hub.o.loop, &s->world->hub, s->metrics, metrics, health};

    return hub_web_start(&s->web, &o, &why);
}

/* Another process may take a port between its being found and used. */
static struct served *serve(bool one_address)
{
    struct served *s = calloc(1, sizeof(*s));
    char metrics[32], health[32];
    int r = -EADDRINUSE;

    assert_non_null(s);
    s->world = world_new();
    assert_int_equal(metrics_new(&s->metrics, METRIC_OWNER_LOOP), 0);
    s->world->hub.o.metrics = s->metrics;
    for (int i = 0; r == -EADDRINUSE && i < TRIES; i++) {
        s->metrics_port = free_port();
        s->health_port = one_address ? s->metrics_port : free_port();
        (void)snprintf(metrics, sizeof(metrics), "127.0.0.1:%u", s->metrics_port);
        (void)snprintf(health, sizeof(health), "127.0.0.1:%u", s->health_port);
        r = start(s, metrics, health);
    }
    assert_int_equal(r, 0);
    return s;
}

static struct served *served_free(struct served *s)
{
    (void)hub_web_stop(s->web, 0);
    (void)metrics_free(s->metrics);
    (void)world_free(s->world);
    free(s);
    return NULL;
}
DEFINE_CLEANUP(struct served, served_free)

/* The whole answer, headers and all. */
static void get(struct served *s, unsigned port, const char *path, struct buf *into)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), n;
    char text[4096];

    n = snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(send(fd, text, (size_t)n, MSG_NOSIGNAL), n);
    buf_truncate(into, 0);
    for (int i = 0; i < PATIENCE_TURNS; i++) {
        ssize_t got = recv(fd, text, sizeof(text), MSG_DONTWAIT);

        if (got == 0)
            break;
        if (got > 0)
            assert_int_equal(buf_put(into, text, (size_t)got), 0);
        else
            assert_int_equal(loop_turn(s->world->hub.o.loop, 10), 0);
    }
    (void)close(fd);
    assert_int_equal(buf_putc(into, '\0'), 0);
    into->n--;
}

static void each_address_has_its_own(void **state)
{
    static const struct {
        bool health;
        const char *path, *status, *has;
    } cases[] = {
        {false, "/metrics", "HTTP/1.1 200", "\ndynamic_scoring_scorers "},
        {false, "/metrics", "HTTP/1.1 200", "\nprocess_resident_memory_bytes "},
        {false, "/", "HTTP/1.1 200", "<p class=\"over-title\">dynamic-scoring controller</p>"},
        {false, "/", "HTTP/1.1 200", "Content-Security-Policy: default-src 'none'"},
        {false, "/api/v1/status", "HTTP/1.1 200", "\"namespace\":\"open-cluster-management\""},
        {false, "/healthz", "HTTP/1.1 404", "/metrics"},
        {true, "/healthz", "HTTP/1.1 200", "\r\n\r\nok"},
        {true, "/readyz", "HTTP/1.1 200", "\r\n\r\nok"},
        {true, "/metrics", "HTTP/1.1 404", "/healthz"},
        {true, "/", "HTTP/1.1 404", "/healthz"},
    };
    CLEANUP(cleanup_served_free) struct served *s = serve(false);
    BUF_AUTO(b, OUTPUT_MAX);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        get(s, cases[i].health ? s->health_port : s->metrics_port, cases[i].path, &b);
        assert_has(&b, cases[i].status);
        assert_has(&b, cases[i].has);
    }
}

static void one_address_has_all(void **state)
{
    static const char *const paths[] = {"/metrics", "/", "/api/v1/status", "/healthz", "/readyz"};
    CLEANUP(cleanup_served_free) struct served *s = serve(true);
    BUF_AUTO(b, OUTPUT_MAX);

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        get(s, s->metrics_port, paths[i], &b);
        assert_has(&b, "HTTP/1.1 200");
    }
}

/* Names come as browsers and people write them. */
static void one_thing_is_named_in_the_query(void **state)
{
    static const struct {
        const char *path, *status, *has;
    } cases[] = {
        {"/scorer?name=cpu", "HTTP/1.1 200", "<h1><bdi>cpu</bdi></h1>"},
        {"/scorer?name=cpu", "HTTP/1.1 200", "Content-Security-Policy: default-src 'none'"},
        {"/scorer?name=cpu", "HTTP/1.1 200", "Content-Type: text/html"},
        {"/scorer?x=1&name=%63pu&name=other", "HTTP/1.1 200", "<h1><bdi>cpu</bdi></h1>"},
        {"/api/v1/scorer?name=cpu", "HTTP/1.1 200", "\"pairs\":[{\"cluster\":\"a&b +%\","},
        {"/api/v1/scorer?name=cpu", "HTTP/1.1 200", "Content-Type: application/json"},
        {"/cluster?name=a%26b%20%2B%25", "HTTP/1.1 200", "<h1><bdi>a&amp;b +%</bdi></h1>"},
        {"/api/v1/cluster?name=a%26b%20%2B%25", "HTTP/1.1 200", "\"pairs\":[{\"scorer\":\"cpu\","},
        {"/scorer?name=a%26b%20%2B%25", "HTTP/1.1 404", "\r\n\r\nThere is none of that name here.\n"},
        {"/cluster?name=%3Cscript%3E", "HTTP/1.1 404", "Content-Type: text/plain"},
        {"/api/v1/scorer?name=CPU", "HTTP/1.1 404", "There is none"},
        {"/api/v1/cluster?name=%00%ff", "HTTP/1.1 4", "text/plain"},
        {"/scorer", "HTTP/1.1 400",
         "\r\n\r\nOf which one? Its name goes at the end of the URL: ?name=NAME\n"},
        {"/cluster?name", "HTTP/1.1 400", "?name=NAME"},
        {"/api/v1/scorer?name=", "HTTP/1.1 400", "?name=NAME"},
        {"/api/v1/cluster?names=cpu", "HTTP/1.1 400", "?name=NAME"},
        {"/scorer/cpu", "HTTP/1.1 404", "/scorer"},
    };
    CLEANUP(cleanup_served_free) struct served *s = serve(false);
    BUF_AUTO(b, OUTPUT_MAX);

    (void)state;
    (void)add_scorer(s->world, "cpu", "cpu");
    (void)add_cluster(s->world, "a&b +%", 1);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        get(s, s->metrics_port, cases[i].path, &b);
        assert_has(&b, cases[i].status);
        assert_has(&b, cases[i].has);
        assert_lacks(&b, "<script");
    }
}

static void not_ready_says_what_is_missing(void **state)
{
    CLEANUP(cleanup_served_free) struct served *s = serve(true);
    BUF_AUTO(b, OUTPUT_MAX);

    (void)state;
    s->world->watches[0].synced = s->world->watches[3].synced = false;
    s->world->watches[3].trouble = "hub: connection refused";
    get(s, s->health_port, "/readyz", &b);
    assert_has(&b, "HTTP/1.1 503");
    assert_has(
        &b,
        "\r\n\r\nDynamicScorers: not listed yet\nManifestWorks: not listed yet: hub: connection refused\n");
    get(s, s->health_port, "/healthz", &b);
    assert_has(&b, "HTTP/1.1 200");
}

static void metrics_are_those_of_the_moment(void **state)
{
    CLEANUP(cleanup_served_free) struct served *s = serve(true);
    BUF_AUTO(b, OUTPUT_MAX);
    unsigned before = metrics_set;

    (void)state;
    for (unsigned i = 1; i <= 3; i++) {
        char line[64];

        /* Nothing is rendered that no one asks for. */
        now_mono += 1000;
        assert_int_equal(loop_turn(s->world->hub.o.loop, 0), 0);
        assert_int_equal(metrics_set, before + i - 1);
        get(s, s->metrics_port, "/metrics", &b);
        assert_int_equal(metrics_set, before + i);
        (void)snprintf(line, sizeof(line), "\ndynamic_scoring_scorers %u\n", before + i);
        assert_has(&b, line);
    }
}

static void an_address_may_be_left_out(void **state)
{
    static const char *const none[] = {NULL, "0"};
    struct served s = {.world = world_new()};
    unsigned before = metrics_set;

    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(none); i++) {
        assert_int_equal(start(&s, none[i], none[i]), 0);
        s.web = hub_web_stop(s.web, 0);
        assert_int_equal(start(&s, none[i], "127.0.0.1:0"), 0);
        s.web = hub_web_stop(s.web, 0);
    }
    assert_int_equal(metrics_set, before);
    assert_null(hub_web_stop(NULL, 0));
    (void)world_free(s.world);
}

static void a_bad_address_is_refused(void **state)
{
    CLEANUP(cleanup_free) char *why = NULL;
    WORLD(w);
    const struct hub_web_options o = {w->hub.o.loop, &w->hub, NULL, NULL, "nonsense"};
    struct hub_web *web = NULL;

    (void)state;
    assert_int_equal(hub_web_start(&web, &o, &why), -EINVAL);
    assert_non_null(strstr(why, "nonsense"));
    assert_null(web);
}

static void memory_may_be_short(void **state)
{
    struct served s = {.world = world_new()};

    (void)state;
    assert_int_equal(metrics_new(&s.metrics, METRIC_OWNER_LOOP), 0);
    s.world->hub.o.metrics = s.metrics;
    FOR_EACH_ALLOCATION_FAILURE(n)
    {
        int r = start(&s, "127.0.0.1:0", ":0");

        assert_true(r == 0 || oom_happened());
        if (r == 0)
            s.web = hub_web_stop(s.web, 0);
        assert_null(s.web);
    }
    (void)metrics_free(s.metrics);
    (void)world_free(s.world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_address_has_its_own),        cmocka_unit_test(one_address_has_all),
        cmocka_unit_test(one_thing_is_named_in_the_query), cmocka_unit_test(not_ready_says_what_is_missing),
        cmocka_unit_test(metrics_are_those_of_the_moment), cmocka_unit_test(an_address_may_be_left_out),
        cmocka_unit_test(a_bad_address_is_refused),        cmocka_unit_test(memory_may_be_short),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
