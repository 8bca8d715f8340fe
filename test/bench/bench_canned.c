/* A Prometheus and a scoring API that answer from memory, so that their cost is not measured.
 *
 *     bench_canned SERIES POINTS RESULTS [FRESH]
 *
 * GET returns a range query's response, POST accepts anything and returns a scoring response, in which FRESH
 * of the results are of other series than in the one before. POST /write is an endpoint of remote write, and
 * GET /rounds returns the number of other POSTs. The first line of stdout is the port on 127.0.0.1. Exits at
 * the end of stdin. */
#include "test/bench/gen.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <stdatomic.h>
#include <stdio.h>

enum { CONNECTION_MEMORY = 1 << 20, CONNECTIONS = 1024 };

struct canned {
    struct MHD_Response *series, *scores, *written;
    int results, fresh;
    atomic_ulong rounds;
};

static struct MHD_Response *response_of(struct buf *body)
{
    struct MHD_Response *r = MHD_create_response_from_buffer(body->n, body->p, MHD_RESPMEM_PERSISTENT);

    must(r && MHD_add_response_header(r, "Content-Type", "application/json") == MHD_YES);
    return r;
}

static enum MHD_Result say_rounds(const struct canned *c, struct MHD_Connection *connection)
{
    char text[32];
    int n = snprintf(text, sizeof(text), "%lu", atomic_load(&c->rounds));
    struct MHD_Response *r = MHD_create_response_from_buffer((size_t)n, text, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result queued;

    must(r != NULL);
    queued = MHD_queue_response(connection, MHD_HTTP_OK, r);
    MHD_destroy_response(r);
    return queued;
}

/* Made for this round. */
static enum MHD_Result say_scores(const struct canned *c, struct MHD_Connection *connection,
                                  unsigned long round)
{
    BUF_AUTO(body, SIZE_MAX / 2);
    struct MHD_Response *r;
    enum MHD_Result queued;

    gen_churned_answer(&body, c->results, (int)round, c->fresh);
    r = MHD_create_response_from_buffer(body.n, body.p, MHD_RESPMEM_MUST_COPY);
    must(r && MHD_add_response_header(r, "Content-Type", "application/json") == MHD_YES);
    queued = MHD_queue_response(connection, MHD_HTTP_OK, r);
    MHD_destroy_response(r);
    return queued;
}

static enum MHD_Result answer(void *arg, struct MHD_Connection *connection, const char *url,
                              const char *method, const char *version, const char *data, size_t *data_bytes,
                              void **state)
{
    struct canned *c = arg;

    (void)version;
    (void)data;
    if (!*state || *data_bytes) {
        *state = c; /* the headers are in; the body is thrown away as it comes */
        *data_bytes = 0;
        return MHD_YES;
    }
    if (strcmp(url, "/write") == 0)
        return MHD_queue_response(connection, MHD_HTTP_NO_CONTENT, c->written);
    if (strcmp(method, "POST") == 0) {
        unsigned long round = atomic_fetch_add(&c->rounds, 1);

        if (c->fresh)
            return say_scores(c, connection, round);
        return MHD_queue_response(connection, MHD_HTTP_OK, c->scores);
    }
    if (strcmp(url, "/rounds") == 0)
        return say_rounds(c, connection);
    return MHD_queue_response(connection, MHD_HTTP_OK, c->series);
}

int main(int argc, char **argv)
{
    struct sockaddr_in where = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL;
    BUF_AUTO(series, SIZE_MAX / 2);
    BUF_AUTO(scores, SIZE_MAX / 2);
    struct canned c = {.rounds = 0};
    struct MHD_Daemon *d;

    must(argc == 4 || argc == 5);
    c.results = atoi(argv[3]);
    c.fresh = argc > 4 ? atoi(argv[4]) : 0;
    gen_query_answer(&series, atoi(argv[1]), atoi(argv[2]));
    gen_scoring_answer(&scores, c.results, 0, 0);
    c.series = response_of(&series);
    c.scores = response_of(&scores);
    c.written = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    must(c.written != NULL);
    d = MHD_start_daemon(flags, 0, NULL, NULL, answer, &c,                                       //
                         MHD_OPTION_SOCK_ADDR, &where, MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS, //
                         MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY, MHD_OPTION_END);
    must(d != NULL);
    (void)printf("%u\n", MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT)->port);
    (void)fflush(stdout);
    while (getchar() != EOF)
        continue;
    MHD_stop_daemon(d);
    MHD_destroy_response(c.series);
    MHD_destroy_response(c.scores);
    MHD_destroy_response(c.written);
    return 0;
}
