/* Owns the table of connections: who waits for whom, since when, and what a response keeps in memory.
 *
 * No connection is refused while another one only waits: over the limit, the connection that has been without
 * a complete request for the longest time makes room, so that clients which send a byte now and then, or
 * nothing, only displace each other. There is no limit per address: scrapers behind one NAT, and all that
 * comes through a Service, have the same one.
 *
 * A connection is ended by shutdown(2), upon which libmicrohttpd closes it. Its entry is removed before
 * that, under the lock, so that a descriptor in the table is never one that the kernel has given to
 * someone else. */
#include "exporter/base/httpd_internal.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>

enum {
    /* A request must be complete this long after its connection was accepted, or after its head was. */
    READ_MS = 10 * 1000,
    /* A response must be read within this time if it holds memory that nothing else needs. */
    WRITE_MS = 5 * 60 * 1000,
    /* Responses that are younger are not cut, whatever they hold: time to be read over a fast link. */
    WRITE_MIN_MS = 2 * 1000,
    /* Without connections that wait, one whose response takes longer makes room. */
    WRITE_CROWDED_MS = 10 * 1000,
    LARGE_BODY = 64 << 10, /* smaller ones fit into the socket's buffer */
    /* What responses may keep from being freed; more if one page is larger. */
    HELD_BYTES = 32 << 20,
    /* Connections over the limit, while those that make room for them are being closed. */
    SPARE_CONNECTIONS = 16,
    MAX_DESCRIPTORS = 1 << 16,
    BUSY_SWEEP_MS = 250,
    SWEEP_MS = 1000,
};

void httpd_conns_init(struct httpd *h)
{
    struct rlimit files = {.rlim_cur = MAX_DESCRIPTORS};
    unsigned half;

    (void)getrlimit(RLIMIT_NOFILE, &files);
    h->n_conns = files.rlim_cur < MAX_DESCRIPTORS ? (int)files.rlim_cur : MAX_DESCRIPTORS;
    half = (unsigned)h->n_conns / 2; /* the others are for rounds, watches and files */
    if (h->options.max_connections > half)
        h->options.max_connections = half;
    h->conns = xcalloc((size_t)h->n_conns, sizeof(*h->conns)); /* only what is used becomes resident */
}

/* The lock is held. */
static void conn_leave(struct httpd *h, const struct conn *c)
{
    if (c->state != CONN_ANSWERING)
        return;
    h->answering--;
    if (!c->version)
        h->own_bytes -= c->bytes;
}

static void conn_enter(struct httpd *h, struct conn *c, enum conn_state state)
{
    conn_leave(h, c);
    c->state = state;
    c->since = clock_system.mono(&clock_system);
}

bool httpd_conn_accepted(struct httpd *h, int fd, size_t listener)
{
    struct conn *c = fd < h->n_conns ? &h->conns[fd] : NULL;

    if (!c)
        return false;
    (void)pthread_mutex_lock(&h->lock);
    if (c->state == CONN_NONE) /* else libmicrohttpd closed it without a word, out of memory */
        h->connections++;
    *c = (struct conn){.listener = (uint8_t)listener};
    conn_enter(h, c, CONN_ACCEPTED);
    if (fd >= h->top)
        h->top = fd + 1;
    (void)pthread_mutex_unlock(&h->lock);
    return true;
}

void httpd_conn_closed(struct httpd *h, int fd)
{
    bool full;

    (void)pthread_mutex_lock(&h->lock);
    full = h->connections >= h->options.max_connections;
    conn_leave(h, &h->conns[fd]);
    h->closing -= h->conns[fd].closing;
    h->connections--;
    h->conns[fd] = (struct conn){0};
    (void)pthread_mutex_unlock(&h->lock);
    if (full)
        (void)eventfd_write(h->gate_wake, 1);
}

void httpd_conn_set(struct httpd *h, int fd, enum conn_state state)
{
    (void)pthread_mutex_lock(&h->lock);
    conn_enter(h, &h->conns[fd], state);
    (void)pthread_mutex_unlock(&h->lock);
}

/* A quarter of the connections is kept for small responses, such as those to probes. */
bool httpd_conn_answer(struct httpd *h, int fd, uint64_t bytes, uint64_t version)
{
    struct conn *c = &h->conns[fd];
    bool ok;

    (void)pthread_mutex_lock(&h->lock);
    ok = bytes <= LARGE_BODY || (h->answering < h->options.max_connections - h->options.max_connections / 4 &&
                                 (version || !h->own_bytes || h->own_bytes + bytes <= 2 * HELD_BYTES));
    if (ok) {
        conn_enter(h, c, CONN_ANSWERING);
        c->bytes = bytes;
        c->version = version;
        h->answering++;
        if (!version)
            h->own_bytes += bytes;
    }
    (void)pthread_mutex_unlock(&h->lock);
    return ok;
}

/* A response is reset, so that the kernel does not keep what was to be sent either. The lock is held. */
static void conn_shut(struct httpd *h, struct conn *c)
{
    const struct linger reset = {.l_onoff = 1};
    int fd = (int)(c - h->conns);

    if (c->state == CONN_ANSWERING)
        (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    (void)shutdown(fd, SHUT_RDWR);
    c->closing = true;
    h->closing++;
}

static bool conn_waits(const struct conn *c)
{
    return c->state == CONN_READING || c->state == CONN_IDLE;
}

static bool conn_is_slow(const struct conn *c)
{
    return c->state == CONN_ANSWERING;
}

/* The one that entered its state first, at least min_ms ago; NULL for none. Leaves out `version` unless it
 * is 0. */
static struct conn *conn_oldest(struct httpd *h, bool (*kind)(const struct conn *), uint64_t version,
                                int64_t min_ms)
{
    mono_ms latest = mono_add(clock_system.mono(&clock_system), -min_ms);
    struct conn *best = NULL;

    for (struct conn *c = h->conns; c < h->conns + h->top; c++)
        if (kind(c) && !c->closing && !mono_before(latest, c->since) && (!version || c->version != version) &&
            (!best || mono_before(c->since, best->since)))
            best = c;
    return best;
}

/* True if it cut a response. */
static bool conn_evict(struct httpd *h, bool *ret_found)
{
    struct conn *c = conn_oldest(h, conn_waits, 0, 0);
    bool slow = !c;

    if (!c)
        c = conn_oldest(h, conn_is_slow, 0, WRITE_CROWDED_MS);
    *ret_found = c;
    if (c)
        conn_shut(h, c);
    return c && slow;
}

void httpd_conns_make_room(struct httpd *h)
{
    bool found;

    (void)pthread_mutex_lock(&h->lock);
    (void)conn_evict(h, &found);
    (void)pthread_mutex_unlock(&h->lock);
}

static int64_t conn_patience(const struct httpd *h, const struct conn *c, uint64_t version)
{
    switch (c->state) {
    case CONN_READING:
        return READ_MS;
    case CONN_IDLE:
        return h->options.idle_seconds * INT64_C(1000);
    case CONN_ANSWERING:
        return c->version == version && version ? INT64_MAX : WRITE_MS;
    default:
        return INT64_MAX;
    }
}

/* Cuts the oldest responses until `excess` bytes can be freed. A shared body can be freed only if all who
 * read it are cut. Returns their number. */
static unsigned conn_cut_holders(struct httpd *h, uint64_t version, uint64_t excess)
{
    unsigned cut = 0;
    struct conn *c;

    while (excess && (c = conn_oldest(h, conn_is_slow, version, WRITE_MIN_MS))) {
        excess -= c->bytes < excess ? c->bytes : excess;
        for (struct conn *o = h->conns; o < h->conns + h->top; o++)
            if (o == c || (c->version && conn_is_slow(o) && !o->closing && o->version == c->version)) {
                conn_shut(h, o);
                cut++;
            }
    }
    return cut;
}

/* Closes what is over its deadline. Returns the responses among them, and adds up what is held. */
static unsigned conn_sweep_deadlines(struct httpd *h, uint64_t version, uint64_t *held)
{
    mono_ms now = clock_system.mono(&clock_system);
    unsigned cut = 0;

    for (struct conn *c = h->conns; c < h->conns + h->top; c++) {
        if (c->state == CONN_NONE || c->closing)
            continue;
        if (mono_diff(c->since, now) >= conn_patience(h, c, version)) {
            cut += conn_is_slow(c);
            conn_shut(h, c);
        } else if (conn_is_slow(c) && !c->version) {
            *held += c->bytes;
        }
    }
    return cut;
}

int httpd_conns_sweep(struct httpd *h, bool *ret_room, unsigned *ret_cut)
{
    uint64_t version = 0, page = 0, held, limit = HELD_BYTES;
    unsigned max = h->options.max_connections;
    bool found = true;
    int wait;

    held = h->options.held ? h->options.held(h->options.served_arg, &version, &page) : 0;
    limit = page > limit ? page : limit;
    (void)pthread_mutex_lock(&h->lock);
    *ret_cut = conn_sweep_deadlines(h, version, &held);
    if (held > limit)
        *ret_cut += conn_cut_holders(h, version, held - limit);
    while (found && h->connections - h->closing > max)
        *ret_cut += conn_evict(h, &found);
    *ret_room = h->connections < max + SPARE_CONNECTIONS;
    wait = !h->connections ? -1 : h->answering || !*ret_room ? BUSY_SWEEP_MS : SWEEP_MS;
    (void)pthread_mutex_unlock(&h->lock);
    return wait;
}
