/* The receiver's own thread beside the loop. */
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/http/httpd.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/page.h"
#include "exporter/otlp/receiver.c" /* its port */
#include "exporter/otlp/receiver.h"
#include "exporter/otlp/series.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATIENCE_MS = 60000, REQUESTS = 300, SERIES = 40 };

static int64_t mono_now;

static mono_ms fake_mono(const struct clock *c)
{
    (void)c;
    return (mono_ms){mono_now};
}

static unix_ms real_wall(const struct clock *c)
{
    (void)c;
    return clock_system.wall(&clock_system);
}

static const struct clock fake_clock = {.mono = fake_mono, .wall = real_wall};

struct world {
    struct loop *loop;
    struct metrics *metrics;
    struct page *page;
    struct store *store;
    struct otlp *x;
    atomic_bool done;
};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof(*w));
    struct otlp_options o = {.listen = "127.0.0.1:0"};
    char *why = NULL;

    assert_non_null(w);
    mono_now = 1000;
    o.metrics = w->metrics = metrics_new(METRIC_OWNER_LOOP);
    w->page = page_new(true);
    assert_int_equal(loop_new(&w->loop, &fake_clock), 0);
    o.store = w->store = store_new(&clock_system);
    o.page = w->page;
    o.loop = w->loop;
    assert_int_equal(otlp_start(&w->x, &o, &why), 0);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;

    w->x = otlp_stop(w->x, 0);
    w->store = store_free(w->store);
    w->loop = loop_free(w->loop);
    w->page = page_free(w->page);
    w->metrics = metrics_free(w->metrics);
    free(w);
    return 0;
}

/* Sends a point of this series; the status of the answer. Any thread. */
static int send_point(const struct world *w, unsigned series)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    CLEANUP(cleanup_close) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char request[1024], body[512], answer[1024] = "";
    int n, all;

    all = snprintf(body, sizeof(body),
                   "{\"resourceMetrics\":[{\"scopeMetrics\":[{\"metrics\":[{\"name\":\"m\",\"gauge\":"
                   "{\"dataPoints\":[{\"timeUnixNano\":\"%lld000000\",\"asInt\":\"1\",\"attributes\":"
                   "[{\"key\":\"pod\",\"value\":{\"stringValue\":\"p%u\"}}]}]}}]}]}]}",
                   (long long)clock_system.wall(&clock_system).ms, series);
    n = snprintf(request, sizeof(request),
                 "POST /v1/metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                 "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
                 all, body);
    to.sin_port = htons((uint16_t)httpd_port(w->x->httpd, 0));
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    assert_int_equal(send(fd, request, (size_t)n, MSG_NOSIGNAL), n);
    for (size_t got = 0; got < sizeof(answer) - 1; got += (size_t)n)
        if ((n = (int)recv(fd, answer + got, sizeof(answer) - 1 - got, 0)) <= 0)
            break;
    return answer[0] ? atoi(answer + 9) : 0;
}

static void *send_points(void *arg)
{
    struct world *w = arg;

    for (unsigned i = 0; i < REQUESTS; i++)
        assert_int_equal(send_point(w, i % SERIES), 200);
    atomic_store(&w->done, true);
    return NULL;
}

static void read_all(struct store *store)
{
    CLEANUP(series_reader_done) struct series_reader in = {.store = store, .to_ms = INT64_MAX};
    int n = 0, r;

    while ((r = series_next(&in)) > 0)
        n++;
    assert_int_equal(r, 0);
    assert_in_range(n, 0, SERIES);
}

static void receives_while_the_loop_queries_and_reconfigures(void **state)
{
    struct world *w = *state;
    struct otlp_status s;
    uint64_t points = 0;
    pthread_t sender;

    assert_int_equal(pthread_create(&sender, NULL, send_points, w), 0);
    for (unsigned i = 0; !atomic_load(&w->done); i++) {
        store_set_limits(w->store, i % 3 ? 64u << 20 : 32u << 20, i % 2 ? SERIES / 2 : SERIES);
        store_set_age(w->store, (1 + i % 2) * INT64_C(3600000));
        store_prune(w->store);
        mono_now += 1000;
        assert_int_equal(loop_turn(w->loop, 1), 0);
        otlp_render(w->x);
        read_all(w->store);
    }
    assert_int_equal(pthread_join(sender, NULL), 0);
    otlp_status(w->x, &s);
    for (unsigned i = 0; i < OTLP_RESULTS; i++)
        points += s.points[i];
    assert_int_equal(points, REQUESTS);
    assert_in_range(s.points[STORE_OK], 1, REQUESTS);
    assert_in_range(s.store.series, 1, SERIES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(receives_while_the_loop_queries_and_reconfigures, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
