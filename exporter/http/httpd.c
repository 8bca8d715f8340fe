/* Owns the listening sockets, a libmicrohttpd daemon for each, and the table of connections: who waits for
 * whom, since when, and what a response keeps in memory.
 *
 * No connection is refused while another one only waits: over the limit, the connection that has been without
 * a complete request for the longest time makes room, so that clients which send a byte now and then, or
 * nothing, only displace each other. There is no limit per address: scrapers behind one NAT, and all that
 * comes through a Service, have the same one.
 *
 * A connection is ended by shutdown(2), upon which libmicrohttpd closes it. Its entry is removed before
 * that, under the lock, so that a descriptor in the table is never one that the kernel has given to
 * someone else. */
#include "exporter/http/httpd_internal.h"

#include "exporter/base/alloc.h"
#include "exporter/base/invariant.h"
#include "exporter/base/lock.h"

#include <errno.h>
#include <gnutls/abstract.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

enum {
    BACKLOG = 1024,
    CONNECTION_MEMORY = 32 << 10,
    /* Connections over the limit, while those that make room for them are being closed. */
    SPARE_CONNECTIONS = 16,
    /* A request must be complete this long after its connection was accepted, or after its head was. */
    READ_MS = 10 * 1000,
    /* Responses that are younger are not cut, whatever they hold: time to be read over a fast link. */
    WRITE_MIN_MS = 2 * 1000,
    /* Without connections that wait, one whose response takes longer makes room. */
    WRITE_CROWDED_MS = 10 * 1000,
    LARGE_BODY = 64 << 10, /* smaller ones fit into the socket's buffer */
    /* What responses may keep from being freed; more if one page is larger. */
    HELD_BYTES = 32 << 20,
    SWEEP_MS = 1000,
    STOP_POLL_NS = 5 * 1000 * 1000,
};

int httpd_explain(char **ret_why, int error, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    *ret_why = xvasprintf(fmt, ap);
    va_end(ap);
    return error;
}

/* ---- Listen addresses ---- */

/* Splits the address; *ret_host is empty for all interfaces. Returns an error text, or NULL. */
static const char *listen_split(const char *address, struct str *ret_host, const char **ret_port)
{
    const char *colon = strrchr(address, ':'), *close;
    struct str host;
    uint64_t port;

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
    if (!colon[1])
        return "missing port";
    if (!str_to_u64(str_of(colon + 1), &port) || port > 65535)
        return "port must be a number from 0 to 65535";
    *ret_host = host;
    *ret_port = colon + 1;
    return NULL;
}

bool httpd_is_address(const char *address)
{
    struct str host;
    const char *port;

    return !listen_split(address, &host, &port);
}

/* A socket that listens, or a negative errno. IPv4 if a name has both kinds of address, as in Go programs. */
static int open_host(struct str host, const char *port, const char **ret_why)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV}, *all,
                    *best;
    int fd, one = 1, only_v6 = 0, r;
    char name[NI_MAXHOST];

    (void)snprintf(name, sizeof(name), "%.*s", STR_ARG(host));
    r = getaddrinfo(name, port, &hints, &all);
    if (r != 0) {
        *ret_why = gai_strerror(r);
        return -EINVAL;
    }
    for (best = all; best && best->ai_family != AF_INET; best = best->ai_next)
        continue;
    if (!best)
        best = all;
    fd = socket(best->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (fd >= 0 && best->ai_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, sizeof(only_v6));
    if (fd < 0 || bind(fd, best->ai_addr, best->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0) {
        r = -errno;
        cleanup_close(&fd);
    }
    freeaddrinfo(all);
    return r < 0 ? r : fd;
}

/* Opens a socket that listens on "host:port". On failure a negative errno and *ret_why. */
static int listener_open(struct listener *l, const char *address, char **ret_why)
{
    struct sockaddr_storage bound = {0};
    const struct sockaddr_in *four = (const void *)&bound;
    const struct sockaddr_in6 *six = (const void *)&bound;
    socklen_t n = sizeof(bound);
    const char *text, *port = NULL, *wrong;
    struct str host = {0};
    int r;

    wrong = listen_split(address, &host, &port);
    if (wrong)
        return httpd_explain(ret_why, -EINVAL, "listen on %s: %s", address, wrong);
    r = open_host(host.n ? host : STR("::"), port, &wrong); /* dual-stack */
    if (!host.n && (r == -EAFNOSUPPORT || r == -EADDRNOTAVAIL))
        r = open_host(STR("0.0.0.0"), port, &wrong);
    if (wrong)
        return httpd_explain(ret_why, r, "listen on %s: could not resolve host: %s", address, wrong);
    if (r < 0) {
        text = strerror(-r); /* starts with an upper-case letter */
        return httpd_explain(ret_why, r, "listen on %s: %c%s", address, text[0] | 0x20, text + 1);
    }
    l->fd = r;
    (void)getsockname(l->fd, (struct sockaddr *)&bound, &n);
    l->port = ntohs(four->sin_port); /* at the same place in both */
    l->loopback = bound.ss_family == AF_INET6 ? IN6_IS_ADDR_LOOPBACK(&six->sin6_addr)
                                              : ntohl(four->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    l->host = str_dup(host);
    return 0;
}

/* ---- Connections ---- */

void httpd_conns_init(struct httpd *h)
{
    struct rlimit files = {.rlim_cur = UINT32_MAX};

    TAILQ_INIT(&h->conns);
    (void)getrlimit(RLIMIT_NOFILE, &files);
    if (h->options.max_connections > files.rlim_cur / 2) /* the others are for rounds, watches and files */
        h->options.max_connections = (unsigned)(files.rlim_cur / 2);
}

static void conn_enter(struct httpd *h, struct conn *c, enum conn_state state)
{
    invariant(lock_is_held(&h->lock));
    c->state = state;
    c->since = clock_system.mono(&clock_system);
    TAILQ_INSERT_TAIL(&h->conns, c, entry);
}

/* A response is reset, so that the kernel does not keep what was to be sent either. */
static void conn_shut(struct httpd *h, struct conn *c)
{
    const struct linger reset = {.l_onoff = 1};

    invariant(lock_is_held(&h->lock));
    if (c->state == CONN_ANSWERING)
        (void)setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    (void)shutdown(c->fd, SHUT_RDWR);
    c->closing = true;
    h->closing++;
}

/* The first response that is at least `min_ms` old and has another version, unless that is 0. */
static struct conn *conn_oldest_answer(struct httpd *h, uint64_t version, int64_t min_ms)
{
    mono_ms now = clock_system.mono(&clock_system);
    struct conn *c;

    invariant(lock_is_held(&h->lock));
    TAILQ_FOREACH (c, &h->conns, entry)
        if (c->state == CONN_ANSWERING && !c->closing && mono_diff(c->since, now) >= min_ms &&
            (!version || c->version != version))
            return c;
    return NULL;
}

/* Makes room for another connection while there are `max`. Returns the number of responses cut. */
static unsigned conns_make_room(struct httpd *h, unsigned max)
{
    unsigned cut = 0;
    struct conn *c;

    invariant(lock_is_held(&h->lock));
    TAILQ_FOREACH (c, &h->conns, entry) {
        if (h->n_conns - h->closing <= max)
            return cut;
        if ((c->state == CONN_READING || c->state == CONN_IDLE) && !c->closing)
            conn_shut(h, c);
    }
    for (; h->n_conns - h->closing > max && (c = conn_oldest_answer(h, 0, WRITE_CROWDED_MS)); cut++)
        conn_shut(h, c);
    return cut;
}

unsigned httpd_conn_add(struct httpd *h, struct conn *c)
{
    unsigned cut;

    lock_take(&h->lock);
    cut = conns_make_room(h, h->options.max_connections - 1);
    conn_enter(h, c, CONN_READING);
    h->n_conns++;
    lock_release(&h->lock);
    return cut;
}

void httpd_conn_remove(struct httpd *h, struct conn *c)
{
    lock_take(&h->lock);
    TAILQ_REMOVE(&h->conns, c, entry);
    h->closing -= c->closing;
    h->n_conns--;
    lock_release(&h->lock);
}

void httpd_conn_set(struct httpd *h, struct conn *c, enum conn_state state)
{
    lock_take(&h->lock);
    TAILQ_REMOVE(&h->conns, c, entry);
    conn_enter(h, c, state);
    lock_release(&h->lock);
}

/* A quarter of the connections is kept for small responses, such as those to probes. */
bool httpd_conn_answer(struct httpd *h, struct conn *c, uint64_t bytes, uint64_t version)
{
    unsigned max = h->options.max_connections, answering = 0;
    uint64_t own_bytes = 0;
    struct conn *other;
    bool ok;

    lock_take(&h->lock);
    if (bytes > LARGE_BODY)
        TAILQ_FOREACH (other, &h->conns, entry) {
            answering += other->state == CONN_ANSWERING;
            own_bytes += other->state == CONN_ANSWERING && !other->version ? other->bytes : 0;
        }
    ok = bytes <= LARGE_BODY ||
         (answering < max - max / 4 && (version || !own_bytes || own_bytes + bytes <= 2 * HELD_BYTES));
    if (ok) {
        TAILQ_REMOVE(&h->conns, c, entry);
        conn_enter(h, c, CONN_ANSWERING);
        c->bytes = bytes;
        c->version = version;
    }
    lock_release(&h->lock);
    return ok;
}

/* Cuts the oldest responses until `excess` bytes can be freed. A shared body can be freed only if all who
 * read it are cut. Returns their number. */
static unsigned conns_cut_holders(struct httpd *h, uint64_t version, uint64_t excess)
{
    struct conn *oldest, *c;
    unsigned cut = 0;

    invariant(lock_is_held(&h->lock));
    while (excess && (oldest = conn_oldest_answer(h, version, WRITE_MIN_MS))) {
        excess -= oldest->bytes < excess ? oldest->bytes : excess;
        TAILQ_FOREACH (c, &h->conns, entry)
            if (c == oldest || (oldest->version && c->state == CONN_ANSWERING && !c->closing &&
                                c->version == oldest->version)) {
                conn_shut(h, c);
                cut++;
            }
    }
    return cut;
}

unsigned httpd_conns_sweep(struct httpd *h)
{
    uint64_t version = 0, page = 0, held = 0, limit = HELD_BYTES;
    mono_ms now = clock_system.mono(&clock_system);
    struct conn *c;
    unsigned cut;

    if (h->options.held)
        held = h->options.held(h->options.served_arg, &version, &page);
    limit = page > limit ? page : limit;
    lock_take(&h->lock);
    TAILQ_FOREACH (c, &h->conns, entry) {
        int64_t ms = c->state == CONN_READING ? READ_MS : h->options.idle_seconds * INT64_C(1000);

        if (c->closing)
            continue;
        if (c->state == CONN_ANSWERING)
            held += c->version ? 0 : c->bytes;
        else if (c->state != CONN_HANDLING && mono_diff(c->since, now) >= ms)
            conn_shut(h, c);
    }
    cut = held > limit ? conns_cut_holders(h, version, held - limit) : 0;
    cut += conns_make_room(h, h->options.max_connections);
    lock_release(&h->lock);
    return cut;
}

static void httpd_count_cut(struct httpd *h, unsigned cut)
{
    if (cut && h->options.cut)
        h->options.cut(h->options.served_arg, cut);
}

static void httpd_on_sweep(struct timer *t)
{
    struct httpd *h = CONTAINER_OF(t, struct httpd, sweep);

    httpd_count_cut(h, httpd_conns_sweep(h));
    httpd_guard_expire(h);
    loop_timer_set(h->loop, t, mono_add(loop_now(h->loop), SWEEP_MS));
}

/* libmicrohttpd's callback. */
static void httpd_on_connection(void *cls, struct MHD_Connection *connection, void **context,
                                enum MHD_ConnectionNotificationCode what)
{
    struct listener *l = cls;
    struct conn *c = *context;

    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        httpd_conn_remove(l->server, c);
        (void)httpd_tls_unref(c->tls); /* its GnuTLS session has been freed */
        free(c);
        return;
    }
    *context = c = xcalloc(1, sizeof(*c));
    c->listener = l;
    c->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    lock_take(&l->server->lock);
    if (l->server->options.tls)
        httpd_tls_begin(l->server->options.tls,
                        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION)->tls_session,
                        c);
    lock_release(&l->server->lock);
    httpd_count_cut(l->server, httpd_conn_add(l->server, c));
}

/* ---- The server ---- */

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
    return l->daemon ? 0 : errno ? -errno : -ENOMEM;
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
        r = listener_open(l, o->listen[i], &why);
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

const char *httpd_query(const struct httpd_request *rq, const char *name)
{
    struct str all = rq->arguments;

    for (const char *p = all.p; all.n && p < all.p + all.n;) {
        const char *value = p + strlen(p) + 1;

        if (strcmp(p, name) == 0)
            return value;
        p = value + strlen(value) + 1;
    }
    return NULL;
}

void httpd_reply_copy(struct httpd_reply *reply, struct str body)
{
    struct buf bytes = {.p = str_dup(body), .n = body.n};

    httpd_reply_take(reply, &bytes);
}

void httpd_reply_text(struct httpd_reply *reply, unsigned status, struct str body)
{
    httpd_reply_copy(reply, body);
    reply->status = status;
    reply->content_type = "text/plain; charset=utf-8";
}
