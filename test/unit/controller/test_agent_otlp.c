/* The receiver's own thread beside the loop, and the saves of what it received. The agent is a stand-in. */
#include "controller/agent_otlp.c"
#include "controller/agent_otlp.h"
#include "exporter/agent/agent.h"
#include "exporter/agent/config.h"
#include "exporter/base/clock.h"
#include "exporter/base/httpd.h"
#include "exporter/base/loop.h"
#include "exporter/metric/metrics.h"
#include "exporter/metric/page.h"
#include "exporter/otlp/ingest.h"
#include "exporter/otlp/otlp.c"
#include "exporter/tsdb/snapshot.h"
#include "exporter/tsdb/tsdb.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATIENCE_MS = 60000, REQUESTS = 300, SERIES = 40 };

static struct agent_state agent;

const struct agent_state *agent_state(const struct agent *a)
{
    (void)a;
    return &agent;
}

void agent_touch(struct agent *a)
{
    (void)a;
}

bool flag_switch(void *field, const char *value, const struct flag *f)
{
    (void)f;
    *(bool *)field = value;
    return value;
}

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
    struct agent_otlp *x;
    struct config config;
    char folder[32];
    atomic_bool done;
};

static int setup(void **state)
{
    const struct agent_otlp_flags flags = {.listen = "127.0.0.1:0"};
    struct world *w = calloc(1, sizeof(*w));
    char *why = NULL;

    assert_non_null(w);
    mono_now = 1000;
    (void)snprintf(w->folder, sizeof(w->folder), "/tmp/test_agent_otlp.XXXXXX");
    assert_non_null(mkdtemp(w->folder));
    w->config.limits = limits_default;
    w->config.storage_path = w->folder;
    assert_int_equal(metrics_new(&agent.metrics, METRIC_OWNER_LOOP), 0);
    assert_int_equal(page_new(&agent.page), 0);
    assert_int_equal(loop_new(&w->loop, &fake_clock), 0);
    assert_int_equal(agent_otlp_new(&w->x, w->loop, &flags), 0);
    agent_otlp_apply(w->x, &w->config);
    assert_int_equal(agent_otlp_start(w->x, NULL, NULL, &why), 0);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    char file[64];

    w->x = agent_otlp_free(w->x);
    w->loop = loop_free(w->loop);
    agent.page = page_free(agent.page);
    agent.metrics = metrics_free(agent.metrics);
    (void)snprintf(file, sizeof(file), "%s/otlp-series", w->folder);
    (void)unlink(file);
    assert_int_equal(rmdir(w->folder), 0);
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
    to.sin_port = htons((uint16_t)httpd_port(w->x->receiver->httpd, 0));
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
    assert_int_equal(send(fd, request, (size_t)n, MSG_NOSIGNAL), n);
    for (size_t got = 0; got < sizeof(answer) - 1; got += (size_t)n)
        if ((n = (int)recv(fd, answer + got, sizeof(answer) - 1 - got, 0)) <= 0)
            break;
    return answer[0] ? atoi(answer + 9) : 0;
}

/* Lets time pass, and turns the loop until so many saves have succeeded. */
static void pass_until_saved(struct world *w, int64_t ms, unsigned saves)
{
    int64_t end = clock_system.mono(&clock_system).ms + PATIENCE_MS;

    mono_now += ms;
    do {
        assert_int_equal(loop_turn(w->loop, 1), 0);
    } while (metric_get(agent.metrics, METRIC_OTLP_SAVES, LV("success")) < saves &&
             clock_system.mono(&clock_system).ms < end);
    assert_true(metric_get(agent.metrics, METRIC_OTLP_SAVES, LV("success")) == saves);
}

/* The series that another process would load now. */
static uint64_t saved_series(const struct world *w)
{
    const struct tsdb_options options = {&clock_system, 64u << 20, 1000};
    struct snapshot_loaded loaded;
    struct tsdb *t = NULL;

    assert_int_equal(tsdb_new(&t, &options), 0);
    assert_int_equal(snapshot_load(t, w->folder, &loaded), 0);
    (void)tsdb_free(t);
    return loaded.series;
}

/* A process that is killed saves nothing more. */
static void keeps_for_the_next_process_what_it_saved_last(void **state)
{
    struct world *w = *state;

    assert_int_equal(send_point(w, 1), 200);
    pass_until_saved(w, SAVE_EVERY_MS - 1, 0);
    assert_int_equal(saved_series(w), 0);
    pass_until_saved(w, TURN_MS, 1);
    assert_int_equal(saved_series(w), 1);
    assert_int_equal(send_point(w, 2), 200);
    pass_until_saved(w, TURN_MS, 1);
    assert_int_equal(saved_series(w), 1);
    pass_until_saved(w, SAVE_EVERY_MS, 2);
    assert_int_equal(saved_series(w), 2);
}

static void *send_points(void *arg)
{
    struct world *w = arg;

    for (unsigned i = 0; i < REQUESTS; i++)
        assert_int_equal(send_point(w, i % SERIES), 200);
    atomic_store(&w->done, true);
    return NULL;
}

static void select_all(struct tsdb *t)
{
    CLEANUP(cleanup_tsdb_view_free) struct tsdb_view *v = NULL;
    char why[TSDB_WHY_BYTES];

    assert_int_equal(tsdb_select(t, NULL, 0, 0, INT64_MAX, UINT64_MAX, &v, why), 0);
    assert_in_range(tsdb_view_count(v), 0, SERIES);
}

static void receives_while_the_loop_queries_and_reconfigures(void **state)
{
    struct world *w = *state;
    struct otlp_status s;
    uint64_t points = 0;
    pthread_t sender;

    assert_int_equal(pthread_create(&sender, NULL, send_points, w), 0);
    for (unsigned i = 0; !atomic_load(&w->done); i++) {
        w->config.limits.otlp_series = i % 2 ? SERIES / 2 : SERIES;
        w->config.limits.otlp_bytes = i % 3 ? 64u << 20 : 32u << 20;
        agent_otlp_apply(w->x, &w->config);
        tsdb_set_age(agent_otlp_tsdb(w->x), (1 + i % 2) * INT64_C(3600000));
        mono_now += SAVE_EVERY_MS;
        assert_int_equal(loop_turn(w->loop, 1), 0);
        agent_otlp_render(w->x);
        select_all(agent_otlp_tsdb(w->x));
    }
    assert_int_equal(pthread_join(sender, NULL), 0);
    assert_true(agent_otlp_status(w->x, &s));
    for (unsigned i = 0; i < OTLP_RESULTS; i++)
        points += s.points[i];
    assert_int_equal(points, REQUESTS);
    assert_in_range(s.points[TSDB_OK], 1, REQUESTS);
    assert_in_range(s.store.series, 1, SERIES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keeps_for_the_next_process_what_it_saved_last, setup, teardown),
        cmocka_unit_test_setup_teardown(receives_while_the_loop_queries_and_reconfigures, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
