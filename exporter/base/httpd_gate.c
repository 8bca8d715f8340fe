/* The thread that accepts connections and hands them over to libmicrohttpd, for all listen addresses.
 *
 * libmicrohttpd 0.9.75 would accept them itself, but its thread then spins while descriptors are used up,
 * and it has no deadline for a request that comes a byte at a time. */
#include "exporter/base/httpd_internal.h"
#include "exporter/base/log.h"
#include "exporter/base/worker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

enum { ACCEPTS_PER_TURN = 16, PAUSE_MS = 100, LOG_MS = 60 * 1000 };

struct gate {
    struct httpd *h;
    struct pollfd *polled; /* the eventfd, then the listeners */
    mono_ms logged;
    bool paused; /* no descriptor was left */
};

/* Closes the connection that has waited longest, and tries again soon. */
static void gate_out_of_descriptors(struct gate *g, int error)
{
    mono_ms now = clock_system.mono(&clock_system);

    g->paused = true;
    httpd_conns_make_room(g->h);
    if (mono_diff(g->logged, now) < LOG_MS)
        return;
    g->logged = now;
    log_warn("cannot accept connections", L_ERR(error));
}

/* False when there is nothing more to accept now. */
static bool gate_accept(struct gate *g, size_t listener)
{
    struct httpd *h = g->h;
    struct sockaddr_storage peer;
    socklen_t n = sizeof(peer);
    int fd = accept4(h->listeners[listener].fd, (struct sockaddr *)&peer, &n, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0) {
        if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
            gate_out_of_descriptors(g, errno);
        return errno == ECONNABORTED || errno == EINTR;
    }
    if (!httpd_conn_accepted(h, fd, listener)) {
        (void)close(fd);
        return true;
    }
    /* On failure libmicrohttpd has closed it. */
    if (MHD_add_connection(h->daemon, fd, (struct sockaddr *)&peer, n) != MHD_YES)
        httpd_conn_closed(h, fd);
    return true;
}

static void gate_turn(struct gate *g)
{
    struct httpd *h = g->h;
    eventfd_t woken;
    unsigned cut = 0;
    bool room;
    int wait = httpd_conns_sweep(h, &room, &cut);
    nfds_t n = room && !g->paused ? 1 + h->n_listeners : 1;

    httpd_guard_expire(h);
    if (cut && h->options.cut)
        h->options.cut(h->options.served_arg, cut);
    if (poll(g->polled, n, g->paused ? PAUSE_MS : wait) < 0)
        return;
    g->paused = false;
    if (g->polled[0].revents)
        (void)eventfd_read(h->gate_wake, &woken);
    for (size_t i = 0; i + 1 < n; i++)
        for (unsigned k = 0; g->polled[i + 1].revents && k < ACCEPTS_PER_TURN && gate_accept(g, i); k++)
            continue;
}

static void *gate_run(void *arg)
{
    struct gate *g = arg;

    while (!atomic_load(&g->h->stopping))
        gate_turn(g);
    free(g->polled);
    free(g);
    return NULL;
}

int httpd_gate_start(struct httpd *h)
{
    struct gate *g = calloc(1, sizeof(*g));
    struct pollfd *polled = calloc(1 + h->n_listeners, sizeof(*polled));
    int r;

    if (!g || !polled) {
        free(g);
        free(polled);
        return -ENOMEM;
    }
    *g = (struct gate){.h = h, .polled = polled, .logged = {.ms = -LOG_MS}};
    polled[0] = (struct pollfd){.fd = h->gate_wake, .events = POLLIN};
    for (size_t i = 0; i < h->n_listeners; i++)
        polled[i + 1] = (struct pollfd){.fd = h->listeners[i].fd, .events = POLLIN};
    r = thread_start(&h->gate, gate_run, g);
    h->has_gate = r == 0;
    if (r < 0) {
        free(polled);
        free(g);
    }
    return r;
}

void httpd_gate_stop(struct httpd *h)
{
    if (!h->has_gate)
        return;
    (void)eventfd_write(h->gate_wake, 1);
    (void)pthread_join(h->gate, NULL);
    h->has_gate = false;
}
