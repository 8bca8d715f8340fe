/* Owns the listening sockets, the libmicrohttpd daemon that serves all connections, and the queue of
 * requests for the loop. */
#include "exporter/base/buf.h"
#include "exporter/base/httpd_internal.h"

#include <errno.h>
#include <gnutls/abstract.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <time.h>

enum { CONNECTION_MEMORY = 32 << 10 };

static void on_wake(struct watch *w)
{
    struct httpd *h = CONTAINER_OF(w, struct httpd, watch);
    eventfd_t n;

    (void)eventfd_read(h->wake, &n);
    httpd_run_queue(h);
}

static int list_paths(const struct httpd_options *o, char **ret)
{
    BUF_AUTO(b, 64 << 10);
    int r = buf_puts(&b, "404: not found. Available paths:\n");

    for (size_t i = 0; i < o->n_routes && r == 0; i++)
        r = buf_printf(&b, "%s %s\n", o->routes[i].method, o->routes[i].path);
    r = r ?: buf_putc(&b, '\0');
    if (r == 0)
        *ret = buf_take(&b).p;
    return r;
}

static void init_locks(struct httpd *h)
{
    pthread_condattr_t attr;

    (void)pthread_mutex_init(&h->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&h->left, &attr);
    (void)pthread_condattr_destroy(&attr);
}

/* A server that does not listen yet. On failure, *ret must still be passed to httpd_stop(). */
static int httpd_prepare(struct httpd **ret, struct loop *loop, const struct httpd_options *o)
{
    struct httpd *h = calloc(1, sizeof(*h));
    int r;

    if (!h)
        return -ENOMEM;
    h->loop = loop;
    h->options = *o;
    h->queue_end = &h->queue;
    h->spaced_end = &h->spaced;
    h->wake = h->gate_wake = -1;
    h->watch = (struct watch){.fn = on_wake};
    h->spacing = (struct timer){.fn = httpd_on_spacing};
    init_locks(h);
    *ret = h;
    h->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    h->gate_wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (h->wake < 0 || h->gate_wake < 0)
        return -errno;
    r = httpd_conns_init(h);
    if (r < 0)
        return r;
    h->listeners = calloc(o->n_listen ? o->n_listen : 1, sizeof(*h->listeners));
    h->no_memory = httpd_no_memory_response();
    if (!h->listeners || !h->no_memory)
        return -ENOMEM;
    h->watch.fd = h->wake;
    return list_paths(o, &h->known_paths);
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
 * inherits a mask that blocks all signals, so that the main thread receives them. The limits of
 * connections are httpd_conn.c's; the daemon's own is never reached. */
static int start_daemon(struct httpd *h)
{
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME |
                     MHD_USE_NO_LISTEN_SOCKET | (h->options.tls ? MHD_USE_TLS : 0);
    enum MHD_OPTION tls = h->options.tls ? MHD_OPTION_HTTPS_CERT_CALLBACK2 : MHD_OPTION_END;
    sigset_t all, was;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &was);
    errno = 0;
    h->daemon = MHD_start_daemon(flags, 0, NULL, NULL, httpd_on_request, h,                     //
                                 MHD_OPTION_CONNECTION_LIMIT, (unsigned)h->n_conns,             //
                                 MHD_OPTION_CONNECTION_TIMEOUT, h->options.idle_seconds,        //
                                 MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY, //
                                 MHD_OPTION_URI_LOG_CALLBACK, httpd_on_uri, h,                  //
                                 MHD_OPTION_NOTIFY_COMPLETED, httpd_on_completed, h,            //
                                 MHD_OPTION_NOTIFY_CONNECTION, httpd_on_connection, h,          //
                                 tls, no_certificate, MHD_OPTION_END);
    (void)pthread_sigmask(SIG_SETMASK, &was, NULL);
    return h->daemon ? 0 : errno ? -errno : -ENOMEM;
}

int httpd_new(struct httpd **ret, struct loop *loop, const struct httpd_options *o, char **ret_why)
{
    struct httpd *h = NULL;
    char *why = NULL;
    int r = httpd_prepare(&h, loop, o) ?: loop_watch_add(loop, &h->watch);

    for (size_t i = 0; r == 0 && i < o->n_listen; i++) {
        r = httpd_listen(o->listen[i], &h->listeners[i], &why);
        h->n_listeners += r == 0;
    }
    if (r == 0)
        r = start_daemon(h);
    if (r == 0)
        r = httpd_gate_start(h);
    if (r == 0) {
        *ret = h;
        return 0;
    }
    (void)httpd_stop(h, 0);
    if (!why && asprintf(&why, "could not start the server: %s", strerror(-r)) < 0)
        why = NULL;
    *ret_why = why;
    return r;
}

/* After this no exchange waits for the loop or the guard: a daemon must not be stopped while it has suspended
 * connections. */
static void refuse_waiting(struct httpd *h)
{
    (void)pthread_mutex_lock(&h->lock);
    atomic_store(&h->stopping, true);
    (void)pthread_mutex_unlock(&h->lock);
    httpd_guard_expire(h);
    httpd_run_queue(h);
}

static void wait_for_answers(struct httpd *h, int grace_ms)
{
    struct timespec until;
    int r = 0;

    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += grace_ms / 1000;
    until.tv_nsec += grace_ms % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    (void)pthread_mutex_lock(&h->lock);
    while (h->under_way && r == 0)
        r = pthread_cond_timedwait(&h->left, &h->lock, &until);
    (void)pthread_mutex_unlock(&h->lock);
}

struct httpd *httpd_stop(struct httpd *h, int grace_ms)
{
    if (!h)
        return NULL;
    loop_watch_remove(h->loop, &h->watch);
    refuse_waiting(h);
    loop_timer_clear(h->loop, &h->spacing);
    httpd_gate_stop(h);
    for (size_t i = 0; i < h->n_listeners; i++)
        (void)close(h->listeners[i].fd);
    wait_for_answers(h, grace_ms);
    if (h->daemon)
        MHD_stop_daemon(h->daemon);
    if (h->no_memory)
        MHD_destroy_response(h->no_memory);
    if (h->wake >= 0)
        (void)close(h->wake);
    if (h->gate_wake >= 0)
        (void)close(h->gate_wake);
    (void)pthread_cond_destroy(&h->left);
    (void)pthread_mutex_destroy(&h->lock);
    for (size_t i = 0; i < h->n_listeners; i++)
        free(h->listeners[i].host);
    free(h->headers);
    free(h->known_paths);
    free(h->conns);
    free(h->listeners);
    free(h);
    return NULL;
}

unsigned httpd_port(const struct httpd *h, size_t i)
{
    return i < h->n_listeners ? h->listeners[i].port : 0;
}

bool httpd_is_loopback(const struct httpd *h, size_t i)
{
    return i < h->n_listeners && h->listeners[i].loopback;
}
