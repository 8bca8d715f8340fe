#include "controller/hub/pages/web.h"
#include "exporter/base/buf.h"
#include "exporter/base/loop.h"
#include "exporter/metric/metrics.h"
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
    const struct hub_web_options o = {
        .loop = s->world->hub.o.loop,
        .hub = &s->world->hub,
        .metrics = s->metrics,
        .metrics_address = metrics,
        .health_address = health,
    };

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
    s->metrics = metrics_new(METRIC_OWNER_LOOP);
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

    n = snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
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

static void serves_each_address_its_own_paths(void **state)
{
    static const struct {
        bool health;
        const char *path, *status, *has;
    } cases[] = {
        {false, "/metrics", "HTTP/1.1 200", "\ndynamic_scoring_scorers "},
        {false, "/metrics", "HTTP/1.1 200", "\nprocess_resident_memory_bytes "},
        {false, "/", "HTTP/1.1 200", "<script type=\"module\" src=\"ui/app.js\">"},
        {false, "/", "HTTP/1.1 200", "Content-Security-Policy: default-src 'none'"},
        {false, "/", "HTTP/1.1 200", "ETag: \""},
        {false, "/", "HTTP/1.1 200", "Cache-Control: no-cache"},
        {false, "/", "HTTP/1.1 200", "Referrer-Policy: no-referrer"},
        {false, "/", "HTTP/1.1 200", "X-Content-Type-Options: nosniff"},
        {false, "/ui/app.js", "HTTP/1.1 200", "Content-Type: text/javascript"},
        {false, "/ui/style.css", "HTTP/1.1 200", "Content-Type: text/css"},
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

static void serves_everything_at_one_address(void **state)
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
static void answers_about_what_the_query_names(void **state)
{
    static const struct {
        const char *path, *status, *has;
    } cases[] = {
        {"/scorer?name=cpu", "HTTP/1.1 200", "Content-Type: text/html"},
        {"/cluster", "HTTP/1.1 200", "Content-Security-Policy: default-src 'none'"},
        {"/api/v1/scorer?name=cpu", "HTTP/1.1 200", "\"pairs\":[{\"cluster\":\"a&b +%\","},
        {"/api/v1/scorer?name=cpu", "HTTP/1.1 200", "Content-Type: application/json"},
        {"/api/v1/scorer?x=1&name=%63pu&name=other", "HTTP/1.1 200", "\"name\":\"cpu\""},
        {"/api/v1/cluster?name=a%26b%20%2B%25", "HTTP/1.1 200", "\"pairs\":[{\"scorer\":\"cpu\","},
        {"/api/v1/scorer?name=a%26b%20%2B%25", "HTTP/1.1 404", "\r\n\r\nno scorer named \"a&b +%\"\n"},
        {"/api/v1/cluster?name=%3Cscript%3E", "HTTP/1.1 404", "Content-Type: text/plain"},
        {"/api/v1/scorer?name=CPU", "HTTP/1.1 404", "no scorer named \"CPU\"\n"},
        {"/api/v1/cluster?name=%00%ff", "HTTP/1.1 4", "text/plain"},
        {"/api/v1/scorer", "HTTP/1.1 400", "\r\n\r\nmissing parameter: name\n"},
        {"/api/v1/scorer?name=", "HTTP/1.1 400", "missing parameter: name"},
        {"/api/v1/cluster?names=cpu", "HTTP/1.1 400", "missing parameter: name"},
        {"/api/v1/cluster?name=x&limit=-1", "HTTP/1.1 400",
         "invalid parameter limit: must be a whole number"},
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
    }
}

static void answers_with_the_part_of_a_list_that_is_asked_for(void **state)
{
    static const struct {
        const char *path, *status, *has;
    } cases[] = {
        {"/api/v1/scorers", "HTTP/1.1 200", "\"metadata\":{\"continue\":null,\"remainingItemCount\":0}}"},
        {"/api/v1/scorers?limit=1", "HTTP/1.1 200", "\"remainingItemCount\":1}"},
        {"/api/v1/scorers?limit=1&continue=76312033206370752d61", "HTTP/1.1 200",
         "\"scorers\":[{\"name\":\"cpu-b\""},
        {"/api/v1/scorers?filter=CPU-B", "HTTP/1.1 200", "\"scorers\":[{\"name\":\"cpu-b\""},
        {"/api/v1/scorers?state=notReady", "HTTP/1.1 200", "\"scorers\":[]"},
        {"/api/v1/clusters?sort=state&limit=0", "HTTP/1.1 200", "\"clusters\":[{\"name\":\"c\""},
        {"/api/v1/pairs", "HTTP/1.1 200", "\"clusters\":[{\"name\":\"c\",\"states\":[9,9],"},
        {"/api/v1/scorers?history=true", "HTTP/1.1 200", "\"history\":{\"unixSeconds\":[]"},
        {"/api/v1/scorers?limit=many", "HTTP/1.1 400", "invalid parameter limit"},
        {"/api/v1/clusters?continue=x", "HTTP/1.1 400", "invalid parameter continue"},
        {"/api/v1/clusters?sort=up", "HTTP/1.1 400", "invalid parameter sort: must be name or state"},
        {"/api/v1/status?limit=1", "HTTP/1.1 200", "\"metadata\":{\"scorers\":{\"continue\":\"76"},
        {"/api/v1/status?state=ok", "HTTP/1.1 400", "unsupported parameter"},
    };
    CLEANUP(cleanup_served_free) struct served *s = serve(false);
    BUF_AUTO(b, OUTPUT_MAX);

    (void)state;
    (void)add_scorer(s->world, "cpu-b", "b");
    (void)add_scorer(s->world, "cpu-a", "a");
    (void)add_cluster(s->world, "c", 2);
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        get(s, s->metrics_port, cases[i].path, &b);
        assert_has(&b, cases[i].status);
        assert_has(&b, cases[i].has);
    }
}

static void says_what_it_waits_for_until_ready(void **state)
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

static void renders_metrics_when_asked(void **state)
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

static void serves_without_an_address(void **state)
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

static void rejects_a_bad_address(void **state)
{
    CLEANUP(cleanup_free) char *why = NULL;
    WORLD(w);
    const struct hub_web_options o = {.loop = w->hub.o.loop, .hub = &w->hub, .health_address = "nonsense"};
    struct hub_web *web = NULL;

    (void)state;
    assert_int_equal(hub_web_start(&web, &o, &why), -EINVAL);
    assert_non_null(strstr(why, "nonsense"));
    assert_null(web);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(serves_each_address_its_own_paths),
        cmocka_unit_test(serves_everything_at_one_address),
        cmocka_unit_test(answers_about_what_the_query_names),
        cmocka_unit_test(answers_with_the_part_of_a_list_that_is_asked_for),
        cmocka_unit_test(says_what_it_waits_for_until_ready),
        cmocka_unit_test(renders_metrics_when_asked),
        cmocka_unit_test(serves_without_an_address),
        cmocka_unit_test(rejects_a_bad_address),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
