/* Owns the listening sockets, the thread that accepts connections on them, and the libmicrohttpd daemon that
 * serves all connections.
 *
 * libmicrohttpd 0.9.75 would accept them itself, but its thread then spins while descriptors are used up, and
 * it has no deadline for a request that comes a byte at a time. */
#include "exporter/base/buf.h"
#include "exporter/base/httpd_internal.h"
#include "exporter/base/log.h"
#include "exporter/base/worker.h"

#include <errno.h>
#include <gnutls/abstract.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>

enum {
    BACKLOG = 1024,
    CONNECTION_MEMORY = 32 << 10,
    ACCEPTS_PER_TURN = 16,
    PAUSE_MS = 100,
    LOG_MS = 60 * 1000,
};

int httpd_explain(char **ret_why, int error, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(ret_why, fmt, ap) < 0)
        memory_exhausted(strlen(fmt));
    va_end(ap);
    return error;
}

/* ---- Listen addresses ---- */

static int explain_errno(char **ret_why, const char *address, int error)
{
    const char *text = strerror(error);

    /* strerror() starts with an upper-case letter. */
    return httpd_explain(ret_why, -error, "listen on %s: %c%s", address, text[0] | 0x20, text + 1);
}

static const char *read_port(const char *p, unsigned *ret)
{
    uint64_t port;

    if (*p == '\0')
        return "missing port";
    if (!str_to_u64(str_of(p), &port) || port > 65535)
        return "port must be a number from 0 to 65535";
    *ret = (unsigned)port;
    return NULL;
}

/* Splits the address; *ret_host is empty for all interfaces. Returns an error text, or NULL. */
static const char *listen_split(const char *address, struct str *ret_host, unsigned *ret_port)
{
    const char *colon = strrchr(address, ':'), *close;
    struct str host;

    if (!colon)
        return "expected host:port or :port";
    host = (struct str){address, (size_t)(colon - address)};
    if (address[0] == '[') {
        close = strchr(address, ']');
        if (!close || close + 1 != colon || close == address + 1)
            return "expected [IPv6 address]:port";
        host = (struct str){address + 1, (size_t)(close - address) - 1};
    } else if (host.n && memchr(host.p, ':', host.n)) {
        return "enclose an IPv6 address in brackets, as in [::1]:8080";
    }
    if (host.n >= NI_MAXHOST)
        return "host name too long";
    *ret_host = host;
    return read_port(colon + 1, ret_port);
}

bool httpd_is_address(const char *address)
{
    struct str host;
    unsigned port;

    return !listen_split(address, &host, &port);
}

/* 0 and *ret_fd, or a negative errno. */
static int open_socket(const struct sockaddr *a, socklen_t n, int *ret_fd)
{
    int fd CLEANUP(cleanup_close) = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int one = 1, only_v6 = 0;

    if (fd < 0)
        return -errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (a->sa_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, sizeof(only_v6));
    if (bind(fd, a, n) < 0 || listen(fd, BACKLOG) < 0)
        return -errno;
    *ret_fd = fd;
    fd = -1;
    return 0;
}

/* A dual-stack socket, or IPv4 only if the kernel lacks IPv6. */
static int open_everywhere(unsigned port, int *ret_fd)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int r = open_socket((struct sockaddr *)&six, sizeof(six), ret_fd);

    if (r == -EAFNOSUPPORT || r == -EADDRNOTAVAIL)
        r = open_socket((struct sockaddr *)&four, sizeof(four), ret_fd);
    return r;
}

/* Prefers IPv4 if a name has both kinds of address, as Go programs do. */
static int open_host(struct str host, unsigned port, int *ret_fd, const char **ret_why)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV}, *all,
                    *best;
    char name[NI_MAXHOST], service[8];
    int r;

    (void)snprintf(name, sizeof(name), "%.*s", STR_ARG(host));
    (void)snprintf(service, sizeof(service), "%u", port);
    r = getaddrinfo(name, service, &hints, &all);
    if (r != 0) {
        *ret_why = gai_strerror(r);
        return -EINVAL;
    }
    for (best = all; best && best->ai_family != AF_INET; best = best->ai_next)
        continue;
    if (!best)
        best = all;
    r = open_socket(best->ai_addr, best->ai_addrlen, ret_fd);
    freeaddrinfo(all);
    return r;
}

static void listener_read_bound(struct listener *l)
{
    struct sockaddr_storage a;
    const struct sockaddr_in *four = (const void *)&a;
    const struct sockaddr_in6 *six = (const void *)&a;
    socklen_t n = sizeof(a);

    if (getsockname(l->fd, (struct sockaddr *)&a, &n) < 0)
        return;
    if (a.ss_family == AF_INET6) {
        l->port = ntohs(six->sin6_port);
        l->loopback = IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
    } else {
        l->port = ntohs(four->sin_port);
        l->loopback = ntohl(four->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
}

/* Opens a socket that listens on "host:port". On failure a negative errno and *ret_why. */
static int httpd_listen(const char *address, struct listener *ret, char **ret_why)
{
    struct listener l = {.fd = -1};
    struct str host = {0};
    const char *wrong = listen_split(address, &host, &l.port);
    int r;

    if (wrong)
        return httpd_explain(ret_why, -EINVAL, "listen on %s: %s", address, wrong);
    r = host.n ? open_host(host, l.port, &l.fd, &wrong) : open_everywhere(l.port, &l.fd);
    if (wrong)
        return httpd_explain(ret_why, r, "listen on %s: could not resolve host: %s", address, wrong);
    if (r < 0)
        return explain_errno(ret_why, address, -r);
    listener_read_bound(&l);
    l.host = str_dup(host);
    *ret = l;
    return 0;
}

/* ---- The thread that accepts connections ---- */

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

/* Starts the thread that accepts. A negative errno. */
static int httpd_gate_start(struct httpd *h)
{
    struct gate *g = xcalloc(1, sizeof(*g));
    struct pollfd *polled = xcalloc(1 + h->n_listeners, sizeof(*polled));
    int r;

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

/* Ends it. Only once, after `stopping` was set. */
static void httpd_gate_stop(struct httpd *h)
{
    if (!h->has_gate)
        return;
    (void)eventfd_write(h->gate_wake, 1);
    (void)pthread_join(h->gate, NULL);
    h->has_gate = false;
}

/* ---- The server ---- */

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
    struct httpd *h = xcalloc(1, sizeof(*h));

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
    httpd_conns_init(h);
    h->listeners = xcalloc(o->n_listen ? o->n_listen : 1, sizeof(*h->listeners));
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
                     MHD_USE_NO_LISTEN_SOCKET | MHD_USE_PEDANTIC_CHECKS | (h->options.tls ? MHD_USE_TLS : 0);
    enum MHD_OPTION tls = h->options.tls ? MHD_OPTION_HTTPS_CERT_CALLBACK2 : MHD_OPTION_END;
    sigset_t all, was;

    h->checks_heads = strverscmp(MHD_get_version(), "0.9.77") >= 0;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &was);
    errno = 0;
    h->daemon = MHD_start_daemon(flags, 0, NULL, NULL, httpd_on_request, h,                     //
                                 MHD_OPTION_CONNECTION_LIMIT, (unsigned)h->n_conns,             //
                                 MHD_OPTION_CONNECTION_TIMEOUT, h->options.idle_seconds,        //
                                 MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY, //
                                 MHD_OPTION_URI_LOG_CALLBACK, httpd_on_target, h,               //
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
    int r = httpd_prepare(&h, loop, o);

    if (r == 0)
        loop_watch_add(loop, &h->watch);
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
    *ret_why = why;
    return why ? r : httpd_explain(ret_why, r, "could not start the server: %s", strerror(-r));
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
