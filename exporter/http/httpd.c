/* Owns a server: its listening sockets, a libmicrohttpd daemon for each, and its end. Loop thread. */
#include "exporter/http/httpd_internal.h"

#include "exporter/base/alloc.h"
#include "exporter/base/lock.h"

#include <errno.h>
#include <gnutls/abstract.h>
#include <stdio.h>
#include <time.h>

enum {
    CONNECTION_MEMORY = 32 << 10,
    /* Connections over the limit, while those that make room for them are being closed. */
    SPARE_CONNECTIONS = 16,
    SWEEP_MS = 1000,
    STOP_POLL_NS = 5 * 1000 * 1000,
};

static void httpd_on_sweep(struct timer *t)
{
    struct httpd *h = CONTAINER_OF(t, struct httpd, sweep);

    httpd_count_cut(h, httpd_conns_sweep(h));
    httpd_guard_expire(h);
    loop_timer_set(h->loop, t, mono_add(loop_now(h->loop), SWEEP_MS));
}

/* Sessions get their certificates from httpd_tls_begin(). */
static int no_certificate(gnutls_session_t session, const struct gnutls_cert_retr_st *info,
                          gnutls_pcert_st **certs, unsigned *n, gnutls_ocsp_data_st **ocsp, unsigned *n_ocsp,
                          gnutls_privkey_t *key, unsigned *flags)
{
    (void)session, (void)info, (void)certs, (void)n, (void)ocsp, (void)n_ocsp, (void)key, (void)flags;
    return -1;
}

/* Not epoll, which stalls with 128 or more keep-alive connections that POST (0.9.75). The daemon's thread
 * inherits the mask of thread_block_signals(), so that the main thread receives signals. Its own limit of
 * connections is only reached while all of them are answered. */
static int listener_start(struct listener *l)
{
    const struct httpd_options *o = &l->server->options;
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME |
                     MHD_USE_PEDANTIC_CHECKS | (o->tls ? MHD_USE_TLS : 0);
    enum MHD_OPTION tls = o->tls ? MHD_OPTION_HTTPS_CERT_CALLBACK2 : MHD_OPTION_END;
    sigset_t was;

    thread_block_signals(&was);
    errno = 0;
    l->daemon = MHD_start_daemon(flags, 0, NULL, NULL, httpd_on_request, l,                           //
                                 MHD_OPTION_LISTEN_SOCKET, l->fd,                                     //
                                 MHD_OPTION_CONNECTION_LIMIT, o->max_connections + SPARE_CONNECTIONS, //
                                 MHD_OPTION_CONNECTION_TIMEOUT, o->idle_seconds,                      //
                                 MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,       //
                                 MHD_OPTION_UNESCAPE_CALLBACK, httpd_unescape, NULL,                  //
                                 MHD_OPTION_URI_LOG_CALLBACK, httpd_on_target, l,                     //
                                 MHD_OPTION_NOTIFY_COMPLETED, httpd_on_completed, l,                  //
                                 MHD_OPTION_NOTIFY_CONNECTION, httpd_on_connection, l,                //
                                 tls, no_certificate, MHD_OPTION_END);
    (void)pthread_sigmask(SIG_SETMASK, &was, NULL);
    if (l->daemon)
        return 0;
    return errno ? -errno : -ENOMEM;
}

int httpd_new(struct httpd **ret, struct loop *loop, const struct httpd_options *o, char **ret_why)
{
    struct httpd *h = xcalloc(1, sizeof(*h));
    char *why = NULL;
    int r = 0;

    *h = (struct httpd){.loop = loop,
                        .options = *o,
                        .listeners = xcalloc(o->n_listen, sizeof(*h->listeners)),
                        .checks_heads = strverscmp(MHD_get_version(), "0.9.77") >= 0,
                        .post = {.fn = httpd_on_queue},
                        .sweep = {.fn = httpd_on_sweep},
                        .spacing = {.fn = httpd_on_spacing}};
    STAILQ_INIT(&h->spaced);
    STAILQ_INIT(&h->queue);
    STAILQ_INIT(&h->guarded);
    lock_init(&h->lock);
    httpd_conns_init(h);
    loop_timer_set(loop, &h->sweep, mono_add(loop_now(loop), SWEEP_MS));
    for (size_t i = 0; r == 0 && i < o->n_listen; i++) {
        struct listener *l = &h->listeners[h->n_listeners++];

        *l = (struct listener){.server = h, .fd = -1};
        r = httpd_listener_open(l, o->listen[i], &why);
    }
    for (size_t i = 0; r == 0 && i < o->n_listen; i++)
        r = listener_start(&h->listeners[i]);
    if (r == 0) {
        *ret = h;
        return 0;
    }
    (void)httpd_stop(h, 0);
    *ret_why = why;
    return why ? r : httpd_explain(ret_why, r, "could not start the server: %s", strerror(-r));
}

struct httpd *httpd_stop(struct httpd *h, int grace_ms)
{
    mono_ms end = mono_add(clock_system.mono(&clock_system), grace_ms);

    if (!h)
        return NULL;
    lock_take(&h->lock);
    atomic_store(&h->stopping, true);
    lock_release(&h->lock);
    /* After this no exchange waits for the loop or the guard: a daemon must not be stopped while it has
     * suspended connections. */
    loop_unpost(h->loop, &h->post);
    httpd_guard_expire(h);
    httpd_on_queue(&h->post);
    loop_timer_clear(h->loop, &h->sweep);
    loop_timer_clear(h->loop, &h->spacing);
    for (struct listener *l = h->listeners; l < h->listeners + h->n_listeners; l++) {
        if (l->daemon)
            (void)MHD_quiesce_daemon(l->daemon);
        (void)shutdown(l->fd, SHUT_RDWR); /* refuses connections; it may be closed only later */
    }
    while (atomic_load(&h->under_way) && mono_before(clock_system.mono(&clock_system), end))
        (void)nanosleep(&(struct timespec){.tv_nsec = STOP_POLL_NS}, NULL);
    for (struct listener *l = h->listeners; l < h->listeners + h->n_listeners; l++) {
        if (l->daemon)
            MHD_stop_daemon(l->daemon);
        cleanup_close(&l->fd);
        free(l->host);
    }
    lock_done(&h->lock);
    (void)httpd_tls_unref(h->options.tls);
    free(h->listeners);
    free(h);
    return NULL;
}

void httpd_set(struct httpd *h, const struct httpd_header *headers, size_t n, struct httpd_tls *tls)
{
    struct httpd_tls *was = h->options.tls;

    lock_take(&h->lock);
    h->options.headers = headers;
    h->options.n_headers = n;
    h->options.tls = tls;
    lock_release(&h->lock);
    (void)httpd_tls_unref(was);
}

unsigned httpd_port(const struct httpd *h, size_t i)
{
    return i < h->n_listeners ? h->listeners[i].port : 0;
}

bool httpd_is_loopback(const struct httpd *h, size_t i)
{
    return i < h->n_listeners && h->listeners[i].loopback;
}
