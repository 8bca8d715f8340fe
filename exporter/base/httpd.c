/* Owns a listening socket and a libmicrohttpd daemon for each listen address (a daemon of 0.9.75 has one
 * socket), and the queue of requests for the loop. */
#include "exporter/base/buf.h"
#include "exporter/base/httpd_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>

enum {
    CONNECTION_MEMORY = 32 << 10,
    /* Connections over the limit that are accepted to be answered with 503; further ones wait in the
     * kernel. */
    SPARE_CONNECTIONS = 16,
};

static void on_wake(struct watch *w)
{
    struct httpd *h = CONTAINER_OF(w, struct httpd, watch);
    eventfd_t n;

    (void)eventfd_read(h->wake, &n);
    httpd_run_queue(h);
}

static int list_paths(const struct httpd_options *o, char **ret)
{
    struct buf b = {.max = 64 << 10};
    int r = buf_puts(&b, "404: not found. Available paths:\n");

    for (size_t i = 0; i < o->n_routes && r == 0; i++)
        r = buf_printf(&b, "%s %s\n", o->routes[i].method, o->routes[i].path);
    if (r == 0)
        r = buf_putc(&b, '\0');
    if (r < 0) {
        buf_done(&b);
        return r;
    }
    *ret = b.p;
    return 0;
}

static void init_locks(struct httpd *h)
{
    pthread_condattr_t attr;

    (void)pthread_mutex_init(&h->lock, NULL);
    (void)pthread_mutex_init(&h->served_lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&h->left, &attr);
    (void)pthread_condattr_destroy(&attr);
}

/* A server that does not listen yet. On failure, *ret must still be passed to httpd_stop(). */
static int httpd_prepare(struct httpd **ret, struct loop *loop, const struct httpd_options *o)
{
    struct httpd *h = calloc(1, sizeof(*h));

    if (!h)
        return -ENOMEM;
    h->loop = loop;
    h->options = *o;
    h->queue_end = &h->queue;
    h->wake = -1;
    h->watch = (struct watch){.fn = on_wake};
    init_locks(h);
    *ret = h;
    h->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (h->wake < 0)
        return -errno;
    h->listeners = calloc(o->n_listen ? o->n_listen : 1, sizeof(*h->listeners));
    h->no_memory = httpd_no_memory_response();
    if (!h->listeners || !h->no_memory)
        return -ENOMEM;
    h->watch.fd = h->wake;
    return list_paths(o, &h->known_paths);
}

/* Not epoll, which stalls with 128 or more keep-alive connections that POST (0.9.75). The daemon's thread
 * inherits a mask that blocks all signals, so that the main thread receives them. */
static struct MHD_Daemon *start_daemon(struct httpd *h, int fd)
{
    unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME;
    struct MHD_Daemon *d;
    sigset_t all, was;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &was);
    d = MHD_start_daemon(flags, 0, NULL, NULL, httpd_on_request, h,                                   //
                         MHD_OPTION_LISTEN_SOCKET, fd,                                                //
                         MHD_OPTION_CONNECTION_LIMIT, h->options.max_connections + SPARE_CONNECTIONS, //
                         MHD_OPTION_CONNECTION_TIMEOUT, h->options.idle_seconds,                      //
                         MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,               //
                         MHD_OPTION_NOTIFY_COMPLETED, httpd_on_completed, h,                          //
                         MHD_OPTION_NOTIFY_CONNECTION, httpd_on_connection, h,                        //
                         MHD_OPTION_END);
    (void)pthread_sigmask(SIG_SETMASK, &was, NULL);
    return d;
}

static int start_listener(struct httpd *h, const char *address, char **ret_why)
{
    struct listener l = {.fd = -1};
    int r = httpd_listen(address, &l.fd, &l.port, ret_why);

    if (r < 0)
        return r;
    errno = 0;
    l.daemon = start_daemon(h, l.fd);
    if (!l.daemon) {
        r = errno ? -errno : -ENOMEM;
        /* libmicrohttpd closes the socket on some failures only. */
        if (fcntl(l.fd, F_GETFD) != -1)
            (void)close(l.fd);
        if (asprintf(ret_why, "listen on %s: could not start the server: %s", address, strerror(-r)) < 0)
            *ret_why = NULL;
        return r;
    }
    h->listeners[h->n_listeners++] = l;
    return 0;
}

int httpd_new(struct httpd **ret, struct loop *loop, const struct httpd_options *o, char **ret_why)
{
    struct httpd *h = NULL;
    char *why = NULL;
    int r = httpd_prepare(&h, loop, o);

    if (r == 0)
        r = loop_watch_add(loop, &h->watch);
    for (size_t i = 0; r == 0 && i < o->n_listen; i++)
        r = start_listener(h, o->listen[i], &why);
    if (r == 0) {
        *ret = h;
        return 0;
    }
    (void)httpd_stop(h, 0);
    *ret_why = why ? why : strdup(strerror(-r));
    return r;
}

/* Refuses new connections. libmicrohttpd may still poll the sockets, so they are closed later. */
static void stop_listening(struct httpd *h)
{
    for (size_t i = 0; i < h->n_listeners; i++) {
        (void)MHD_quiesce_daemon(h->listeners[i].daemon);
        (void)shutdown(h->listeners[i].fd, SHUT_RDWR);
    }
}

/* After this no exchange waits for the loop: a daemon must not be stopped while it has suspended
 * connections. */
static void refuse_waiting(struct httpd *h)
{
    (void)pthread_mutex_lock(&h->lock);
    atomic_store(&h->stopping, true);
    (void)pthread_mutex_unlock(&h->lock);
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
    stop_listening(h);
    refuse_waiting(h);
    wait_for_answers(h, grace_ms);
    for (size_t i = 0; i < h->n_listeners; i++) {
        MHD_stop_daemon(h->listeners[i].daemon);
        (void)close(h->listeners[i].fd);
    }
    if (h->no_memory)
        MHD_destroy_response(h->no_memory);
    if (h->wake >= 0)
        (void)close(h->wake);
    (void)pthread_cond_destroy(&h->left);
    (void)pthread_mutex_destroy(&h->served_lock);
    (void)pthread_mutex_destroy(&h->lock);
    free(h->known_paths);
    free(h->listeners);
    free(h);
    return NULL;
}

unsigned httpd_port(const struct httpd *h, size_t i)
{
    return i < h->n_listeners ? h->listeners[i].port : 0;
}
