/* Owns the table of a server's connections: who waits for whom, since when, and what a response keeps in
 * memory. The server's lock protects it; any thread.
 *
 * No connection is refused while another one only waits: over the limit, the connection that has been
 * without a complete request for the longest time makes room, so that clients which send a byte now and
 * then, or nothing, only displace each other. There is no limit per address: scrapers behind one NAT, and
 * all that comes through a Service, have the same one.
 *
 * A connection is ended by shutdown(2), upon which libmicrohttpd closes it. Its entry is removed before
 * that, under the lock, so that a descriptor in the table is never one that the kernel has given to
 * someone else. */
#include "exporter/http/httpd_internal.h"

#include "exporter/base/alloc.h"
#include "exporter/base/invariant.h"
#include "exporter/base/lock.h"

#include <sys/resource.h>

enum {
    /* A request must be complete this long after its connection was accepted, or after its head was. */
    READ_MS = 10 * 1000,
    /* Responses that are younger are not cut, whatever they hold: time to be read over a fast link. */
    WRITE_MIN_MS = 2 * 1000,
    /* Without connections that wait, one whose response takes longer makes room. */
    WRITE_CROWDED_MS = 10 * 1000,
    LARGE_BODY = 64 << 10, /* smaller ones fit into the socket's buffer */
    /* What responses may keep from being freed; more if one page is larger. */
    HELD_BYTES = 32 << 20,
};

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

    if (h->options.old_bytes)
        held = h->options.old_bytes(h->options.served_arg, &version, &page);
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

void httpd_count_cut(struct httpd *h, unsigned cut)
{
    if (cut && h->options.cut)
        h->options.cut(h->options.served_arg, cut);
}

void httpd_on_connection(void *cls, struct MHD_Connection *connection, void **context,
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
