/* What a turn of the loop costs beside calls to peers that accept a connection and never answer: scoring APIs
 * that hang until their deadline. */
#include "exporter/base/clock.h"
#include "exporter/base/loop.h"
#include "exporter/http/http.h"
#include "test/bench/gen.h"
#include "test/bench/measure.h"

#include <arpa/inet.h>
#include <sys/socket.h>

enum { REPEATS = 15, TURNS = 100, BACKLOG = 4096, TIMEOUT_MS = 600000, CONNECTED_TURNS = 2000 };

/* Its connections are never accepted, which their clients cannot tell from a server that says nothing. */
static void listen_silently(char *ret_url, size_t size)
{
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(where);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    must(fd >= 0 && bind(fd, (struct sockaddr *)&where, n) == 0 && listen(fd, BACKLOG) == 0);
    must(getsockname(fd, (struct sockaddr *)&where, &n) == 0);
    (void)snprintf(ret_url, size, "http://127.0.0.1:%u/scoring", ntohs(where.sin_port));
}

static void on_done(void *arg, struct http_response *a)
{
    (void)arg;
    (void)a;
    must(!"a peer has answered");
}

static void make_turns(void *loop)
{
    for (int i = 0; i < TURNS; i++)
        must(loop_turn(loop, 0) == 0);
}

static void measure_beside(int calls)
{
    struct str body = STR("{\"data\":[]}");
    struct http_request rq = {
        .body = &body, .body_parts = 1, .content_type = "application/json", .timeout_ms = TIMEOUT_MS};
    struct loop *l;
    struct http *h;
    struct http_call *call;
    char url[64];

    must(loop_new(&l, &clock_system) == 0);
    h = http_new(l, "bench");
    listen_silently(url, sizeof(url));
    rq.url = url;
    for (int i = 0; i < calls; i++)
        must(http_start(&call, h, &rq, on_done, NULL) == 0);
    for (int i = 0; i < CONNECTED_TURNS; i++)
        must(loop_turn(l, 1) == 0);
    measure_print(measure_ms(make_turns, l, REPEATS) * 1e3 / TURNS, "beside_%d_us", calls);
    (void)http_free(h);
    (void)loop_free(l);
}

int main(void)
{
    measure_init();
    measure_beside(0);
    measure_beside(50);
    measure_beside(500);
    return 0;
}
