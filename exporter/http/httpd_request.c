/* The life of a request: its head is judged, the guard asked, its body read; it is handled here or on the
 * loop, and answered.
 *
 * A connection whose request waits for the guard or the loop is suspended: until MHD_resume_connection() the
 * exchange belongs to whoever decides. libmicrohttpd does not poll a suspended connection, so a disconnect is
 * noticed only afterwards. */
#include "exporter/http/httpd_internal.h"

#include "exporter/base/alloc.h"
#include "exporter/base/header.h"
#include "exporter/base/invariant.h"
#include "exporter/base/lock.h"

#include <arpa/inet.h>
#include <stdio.h>

enum {
    ARGUMENTS_MAX = 64 << 10, /* more than the connection's memory */
    /* This part of the connections may wait for the guard. */
    GUARD_SHARE = 4,
    GUARD_RETRY_SECONDS = 5,
    DISCARDED_MAX = 64 << 10, /* bytes of a body, for routes that take none */
    /* So much is read of what exceeds a limit. */
    READ_MAX = 1 << 20,
    /* A body has another ten seconds for each piece of this size. */
    PACE_BYTES = 256 << 10,
    ALL_BODIES_MAX = 64 << 20,
    BODY_RETRY_SECONDS = 1,
    QUEUE_MS = 10,        /* handlers run this long before the loop turns */
    BLOCK = 128 << 10,    /* of a response that is copied */
    PARTS_IN_PLACE = 256, /* see fits_in_place() */
    HEADER_IN_PLACE = 4 << 10,
    FIELDS_IN_PLACE = 64,
};

enum exchange_state { READING, GUARDED, ALLOWED, WAITING, READY, ANSWERED };

/* One request and its answer. Belongs to the listener's thread, but to the loop while WAITING, and to whoever
 * holds the lock while GUARDED. ALLOWED: the guard has decided, which the listener's thread has not seen. */
struct exchange {
    struct httpd *server;
    struct MHD_Connection *connection;
    struct conn *conn;
    const struct httpd_route *route; /* NULL if none matches the path */
    enum exchange_state state;
    bool head, close;
    bool routed;             /* the route's method matches, too */
    unsigned holders;        /* the handler that runs, and httpd_finish() to come. Loop's thread */
    uint64_t body_announced; /* by Content-Length */
    uint64_t body_bytes;     /* of the request's body that have come */
    struct buf body;         /* those that are kept; its bytes count in the server's body_held */
    struct httpd_request request;
    char *authority;      /* of a target in absolute-form; NULL of others */
    struct buf arguments; /* request.arguments */
    const char *allow;    /* the methods of a path that does not have the one asked for */
    uint64_t ticket;      /* while GUARDED */
    bool own_error;       /* the reply is of reply_error(), also before the request has been read */
    uint64_t answer_bytes;
    struct httpd_reply reply;
    STAILQ_ENTRY(exchange) next;
};

/* ---- The head ----
 *
 * A head that another program reads in another way lets a request be smuggled past a proxy (RFC 9112,
 * sections 3.2, 5.1 and 6.3). libmicrohttpd refuses most such heads itself from 0.9.77 on, with
 * MHD_USE_PEDANTIC_CHECKS. Before, it accepts them: it takes an empty name for the end of the head, joins
 * folded lines, and ends the target and values at a NUL. The head is then longer than what it shows of it. */

/* The absolute-form is "http://host:port/path?query" (RFC 9112, section 3.2.2), as proxies are asked. The
 * length of "http://", or 0 for any other form. */
static size_t target_scheme(const char *target)
{
    if (strncasecmp(target, "http://", 7) == 0)
        return 7;
    return strncasecmp(target, "https://", 8) == 0 ? 8 : 0;
}

/* Whether the authority, as it was sent, has no host, a user, or escapes, which could hide where it ends. */
static bool target_is_bad(const char *target)
{
    size_t scheme = target_scheme(target), n;

    if (scheme == 0)
        return false;
    n = strcspn(target + scheme, "/?#");
    return n == 0 || strcspn(target + scheme, "@%\\") < n;
}

/* The request target has been read, nothing else. The request has no context until its head has been read. */
void *httpd_on_target(void *cls, const char *target, struct MHD_Connection *connection)
{
    struct conn *c = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;

    (void)cls;
    c->target_size = target ? strlen(target) : 0;
    c->target_has_nul = target && strstr(target, "%00");
    c->target_is_bad = !target || target_is_bad(target);
    return NULL;
}

/* Leaves what is no escape as it is, in all versions of libmicrohttpd. */
size_t httpd_unescape(void *cls, struct MHD_Connection *connection, char *text)
{
    (void)cls, (void)connection;
    return MHD_http_unescape(text);
}

const char *httpd_header(const struct httpd_request *rq, const char *name)
{
    const struct exchange *x = CONTAINER_OF(rq, const struct exchange, request);

    return MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
}

struct head {
    struct exchange *x;
    unsigned hosts, lengths, codings;
    bool bad_name, chunked;
    size_t size; /* of the fields as clients write them, one space after the colon */
    const char *host;
};

static enum MHD_Result head_on_field(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct head *h = arg;
    struct str n = str_of(name);

    (void)kind;
    value = cstr(value);
    h->size += n.n + strlen(": ") + strlen(value) + strlen("\r\n");
    if (!header_is_name(n)) {
        h->bad_name = true;
    } else if (str_eq_nocase(n, STR("Host"))) {
        h->hosts++;
        h->host = value;
    } else if (str_eq_nocase(n, STR("Content-Length"))) {
        h->lengths++;
        h->x->body_announced = strtoull(value, NULL, 10);
    } else if (str_eq_nocase(n, STR("Transfer-Encoding"))) {
        h->codings++;
        h->chunked = str_eq_nocase(str_of(value), STR("chunked"));
    }
    return MHD_YES;
}

/* The host without port and brackets. */
static struct str head_host(const char *authority)
{
    struct str s = str_of(authority);
    const char *end = s.n && s.p[0] == '[' ? memchr(s.p, ']', s.n) : memchr(s.p, ':', s.n);

    if (end)
        s.n = (size_t)(end - s.p);
    return s.n && s.p[0] == '[' ? (struct str){s.p + 1, s.n - 1} : s;
}

/* A page of another site that had its own name point to this host sends that name (DNS rebinding); an
 * address cannot be made to point elsewhere. */
static bool head_is_local_host(const char *authority, const struct listener *l)
{
    struct str host = head_host(authority);
    char text[INET6_ADDRSTRLEN];
    unsigned char address[16];

    if (host.n >= sizeof(text)) /* cut, it could be an address */
        return false;
    (void)snprintf(text, sizeof(text), "%.*s", STR_ARG(host));
    return str_eq_nocase(host, STR("localhost")) || str_eq_nocase(host, str_of(l->host)) ||
           inet_pton(AF_INET, text, address) == 1 || inet_pton(AF_INET6, text, address) == 1;
}

/* Whether a page of another site sent the request. Other clients than browsers send neither field. */
static bool head_is_cross_site(const struct head *h)
{
    const struct httpd_request *rq = &h->x->request;
    const struct httpd_route *route = h->x->route;
    const char *origin = httpd_header(rq, "Origin"), *fetch_site = httpd_header(rq, "Sec-Fetch-Site");
    const char *at = origin ? strstr(origin, "://") : NULL;
    struct str from = at ? head_host(at + 3) : STR("");

    if (route && route->local_origins &&
        (str_eq_nocase(from, STR("localhost")) || str_eq(from, STR("127.0.0.1")) || str_eq(from, STR("::1"))))
        return false;
    if (fetch_site && strcmp(fetch_site, "same-origin") != 0 && strcmp(fetch_site, "none") != 0)
        return true;
    return origin && !(at && str_eq_nocase(str_of(at + 3), str_of(h->host)));
}

/* Refuses what a proxy in front might read in another way, a Host that a page of another site may have been
 * given, and requests of other sites' pages that change something. NULL, or the text of the refusal. */
static const char *head_problem(const struct head *h, const char *method, const char *version)
{
    const struct conn *c = h->x->conn;
    const struct listener *l = c->listener;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(h->x->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    size_t line = strlen(method) + 1 + c->target_size + 1 + strlen(version) + strlen("\r\n");

    if (c->target_has_nul)
        return "400: NUL in the request target\n";
    if (c->target_is_bad)
        return "400: invalid host in the request target\n";
    /* It has bytes that libmicrohttpd passed over, see above. More than one space after a colon counts as
     * such; spaces and line feeds that are missing elsewhere can make up for them. */
    if (h->bad_name || (!l->server->checks_heads && info->header_size > line + h->size + strlen("\r\n")))
        return "400: invalid header\n";
    if (h->hosts > 1)
        return "400: several Host fields\n";
    if (h->lengths > 1 || h->codings > 1 || (h->lengths && h->codings))
        return "400: several Content-Length or Transfer-Encoding fields\n";
    if (h->codings && !h->chunked)
        return "400: unsupported Transfer-Encoding\n";
    if (l->loopback && h->host && !head_is_local_host(h->host, l))
        return "421: this address only serves requests whose Host is localhost or an IP address\n";
    if (strcmp(h->x->request.method, "GET") != 0 && head_is_cross_site(h))
        return "403: cross-origin request refused\n";
    return NULL;
}

static enum MHD_Result on_argument(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct buf *all = arg;
    struct buf_mark mark = buf_mark(all);

    (void)kind;
    if (!value)
        return MHD_YES;
    buf_put(all, name, strlen(name) + 1);
    buf_put(all, value, strlen(value) + 1);
    if (buf_failed(all) == 0)
        return MHD_YES;
    buf_rollback(all, mark); /* httpd_query() reads pairs */
    return MHD_NO;
}

/* Reads the fields and the query of a request whose route is known. NULL, or the text of the refusal. */
static const char *head_read(struct exchange *x, const char *method, const char *version)
{
    struct httpd_request *rq = &x->request;
    struct head h = {.x = x};

    x->arguments.max = ARGUMENTS_MAX;
    (void)MHD_get_connection_values(x->connection, MHD_GET_ARGUMENT_KIND, on_argument, &x->arguments);
    rq->arguments = buf_str(&x->arguments);
    rq->accept = cstr(httpd_header(rq, "Accept"));
    rq->accept_encoding = cstr(httpd_header(rq, "Accept-Encoding"));
    rq->if_none_match = cstr(httpd_header(rq, "If-None-Match"));
    rq->content_type = cstr(httpd_header(rq, "Content-Type"));
    rq->content_encoding = cstr(httpd_header(rq, "Content-Encoding"));
    rq->authorization = cstr(httpd_header(rq, "Authorization"));
    (void)MHD_get_connection_values(x->connection, MHD_HEADER_KIND, head_on_field, &h);
    if (x->authority) /* Host does not count then (RFC 9112, section 3.2.2) */
        h.host = x->authority;
    return head_problem(&h, method, version);
}

/* ---- The reply ---- */

static const char text_stopping[] = "503: shutting down\n";

/* A body is sent without a copy if possible. But libmicrohttpd 0.9.75 copies the array of parts into the
 * connection's memory (32 KiB), which also holds the request's headers, and if it does not fit, unlocks a
 * mutex that is not locked and aborts the program. So it is used only if both are small; otherwise the
 * parts are copied block by block, which costs twice as much. */
_Static_assert(sizeof(struct MHD_IoVec) == sizeof(struct iovec) &&
                   offsetof(struct MHD_IoVec, iov_base) == offsetof(struct iovec, iov_base) &&
                   offsetof(struct MHD_IoVec, iov_len) == offsetof(struct iovec, iov_len),
               "the two kinds of iovec differ");

/* A body of many parts, read in order. */
struct stream {
    struct httpd_reply reply;
    unsigned part;
    size_t offset;
};

static void reply_release(struct httpd_reply *reply)
{
    if (reply->release)
        reply->release(reply->arg);
    reply->release = NULL;
}

void httpd_reply_take(struct httpd_reply *reply, struct buf *bytes)
{
    reply_release(reply);
    reply->own_part = (struct iovec){.iov_base = bytes->p, .iov_len = bytes->n};
    reply->parts = &reply->own_part;
    reply->n_parts = 1;
    reply->release = free;
    reply->arg = buf_take(bytes).p;
}

/* Replies with the server's own text, which begins with the status. */
static void reply_error(struct exchange *x, const char *text)
{
    reply_release(&x->reply);
    x->reply = (struct httpd_reply){0};
    x->own_error = true;
    httpd_reply_text(&x->reply, (unsigned)strtoul(text, NULL, 10), str_of(text));
}

static ssize_t stream_read(void *arg, uint64_t at, char *to, size_t room)
{
    struct stream *s = arg;
    size_t done = 0;

    (void)at;
    while (done < room && s->part < s->reply.n_parts) {
        const struct iovec *part = &s->reply.parts[s->part];
        size_t some = size_min(room - done, part->iov_len - s->offset);
        if (some)
            memcpy(to + done, (const char *)part->iov_base + s->offset, some);
        done += some;
        s->offset += some;
        if (s->offset == part->iov_len) {
            s->part++;
            s->offset = 0;
        }
    }
    return done ? (ssize_t)done : MHD_CONTENT_READER_END_OF_STREAM;
}

static void stream_free(void *arg)
{
    struct stream *s = arg;

    reply_release(&s->reply);
    free(s);
}

/* Whether the array of parts fits into the connection's memory beside the request, where each header field
 * takes more than its text. */
static bool fits_in_place(struct MHD_Connection *connection, unsigned n_parts)
{
    const enum MHD_ValueKind kinds = MHD_HEADER_KIND | MHD_COOKIE_KIND;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);

    return n_parts <= PARTS_IN_PLACE && info && info->header_size <= HEADER_IN_PLACE &&
           MHD_get_connection_values(connection, kinds, NULL, NULL) <= FIELDS_IN_PLACE;
}

/* A response without headers, which takes the reply's body. On NULL the reply is unchanged. */
static struct MHD_Response *body_response(struct exchange *x)
{
    struct httpd_reply *reply = &x->reply;
    struct MHD_Response *r;
    unsigned filled = 0;

    for (unsigned i = 0; i < reply->n_parts; i++)
        filled += reply->parts[i].iov_len > 0;
    if (filled > 1 && !fits_in_place(x->connection, reply->n_parts)) {
        struct stream *s = xcalloc(1, sizeof(*s));

        s->reply = *reply;
        r = MHD_create_response_from_callback(x->answer_bytes, size_min(x->answer_bytes, BLOCK), stream_read,
                                              s, stream_free);
        if (!r)
            free(s);
    } else {
        r = MHD_create_response_from_iovec((const struct MHD_IoVec *)reply->parts, reply->n_parts,
                                           reply->release, reply->arg);
    }
    if (r)
        reply->release = NULL;
    return r;
}

/* Not if the response has a field of this name already, as an additional one. */
static void add_header(struct MHD_Response *r, const char *name, const char *value)
{
    if (value && value[0] && !MHD_get_response_header(r, name))
        (void)MHD_add_response_header(r, name, value);
}

static void add_headers(struct MHD_Response *r, const struct exchange *x)
{
    const struct httpd_reply *reply = &x->reply;
    struct httpd *h = x->server;
    char retry_after[16] = "";

    lock_take(&h->lock);
    for (size_t i = 0; i < h->options.n_headers; i++)
        add_header(r, h->options.headers[i].name, h->options.headers[i].value);
    lock_release(&h->lock);
    if (reply->retry_after)
        (void)snprintf(retry_after, sizeof(retry_after), "%u", reply->retry_after);
    add_header(r, "Content-Type", reply->content_type ? reply->content_type : "text/plain; charset=utf-8");
    add_header(r, "Content-Encoding", reply->content_encoding);
    add_header(r, "Vary", reply->vary);
    add_header(r, "Cache-Control", reply->cache_control ? reply->cache_control : "no-store");
    add_header(r, "ETag", reply->etag);
    add_header(r, "Content-Security-Policy", reply->csp);
    add_header(r, "Referrer-Policy", reply->csp ? "no-referrer" : NULL);
    add_header(r, "X-Content-Type-Options", "nosniff");
    add_header(r, "Allow", x->allow);
    add_header(r, "WWW-Authenticate", reply->challenge);
    add_header(r, "Retry-After", retry_after);
    add_header(r, "Connection", x->close ? "close" : NULL);
}

static uint64_t reply_bytes(const struct httpd_reply *reply)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < reply->n_parts; i++)
        n += reply->parts[i].iov_len;
    return n;
}

static void body_drop(struct exchange *x)
{
    lock_take(&x->server->lock);
    x->server->body_held -= x->body.n;
    lock_release(&x->server->lock);
    buf_done(&x->body);
    x->request.body = (struct str){0};
}

/* Answers with x->reply; consumes it. Listener's thread. */
static enum MHD_Result exchange_respond(struct exchange *x)
{
    struct httpd *h = x->server;
    struct MHD_Response *r;
    enum MHD_Result queued;

    body_drop(x);
    x->close = x->close || atomic_load(&h->stopping);
    if (!httpd_conn_answer(h, x->conn, reply_bytes(&x->reply), x->reply.version)) {
        x->close = true;
        reply_error(x, "503: too many large responses are being sent\n");
        (void)httpd_conn_answer(h, x->conn, 0, 0);
    }
    if (x->own_error && h->options.error_body)
        h->options.error_body(&x->request, &x->reply,
                              (struct str){x->reply.parts->iov_base, x->reply.parts->iov_len});
    x->reply.status = x->reply.status ?: MHD_HTTP_OK;
    x->answer_bytes = reply_bytes(&x->reply);
    x->state = ANSWERED;
    r = body_response(x);
    if (!r)
        return MHD_NO; /* out of memory: the connection is closed */
    add_headers(r, x);
    queued = MHD_queue_response(x->connection, x->reply.status, r);
    MHD_destroy_response(r);
    return queued;
}

/* ---- The guard ----
 *
 * The connection is suspended before the guard is asked, so that a decision of another thread finds the
 * request whenever it comes. Whoever takes it off the list, under the lock, decides: the guard, the deadline,
 * or the end of the server. */

/* Takes it off the list and decides. */
static void guard_leave(struct exchange *x, const struct httpd_refusal *refusal)
{
    invariant(lock_is_held(&x->server->lock));
    STAILQ_REMOVE(&x->server->guarded, x, exchange, next);
    x->server->n_guarded--;
    x->state = refusal ? READY : ALLOWED;
    if (refusal) {
        reply_error(x, refusal->text);
        x->reply.challenge = refusal->challenge;
        x->reply.retry_after = refusal->retry_after;
    }
    MHD_resume_connection(x->connection); /* x may be gone after this */
}

static enum MHD_Result guard_ask(struct exchange *x)
{
    struct httpd *h = x->server;
    const struct httpd_guard *g = h->options.guard;
    struct httpd_ticket ticket = {.server = h};
    bool ok;

    x->request.peer = MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr;
    if (x->conn->tls)
        x->request.client_certificate = httpd_tls_peer(
            MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_GNUTLS_SESSION)->tls_session);
    httpd_conn_set(h, x->conn, CONN_HANDLING);
    lock_take(&h->lock);
    ok = !atomic_load(&h->stopping) && h->n_guarded <= h->options.max_connections / GUARD_SHARE;
    if (ok) {
        x->state = GUARDED;
        x->ticket = ticket.id = ++h->last_ticket;
        STAILQ_INSERT_TAIL(&h->guarded, x, next);
        h->n_guarded++;
        MHD_suspend_connection(x->connection);
    }
    lock_release(&h->lock);
    if (ok) {
        g->check(g->arg, &x->request, &ticket);
        return MHD_YES;
    }
    reply_error(x, atomic_load(&h->stopping) ? text_stopping
                                             : "503: too many requests wait for authentication\n");
    x->reply.retry_after = GUARD_RETRY_SECONDS;
    return exchange_respond(x);
}

void httpd_decide(const struct httpd_ticket *ticket, const struct httpd_refusal *refusal)
{
    struct httpd *h = ticket->server;
    struct exchange *x;

    lock_take(&h->lock);
    x = STAILQ_FIRST(&h->guarded);
    while (x && x->ticket != ticket->id)
        x = STAILQ_NEXT(x, next);
    if (x)
        guard_leave(x, refusal);
    lock_release(&h->lock);
}

void httpd_guard_expire(struct httpd *h)
{
    static const struct httpd_refusal late = {.text = "503: authentication took too long\n",
                                              .retry_after = GUARD_RETRY_SECONDS};
    mono_ms now = clock_system.mono(&clock_system);
    struct exchange *x;

    lock_take(&h->lock);
    while ((x = STAILQ_FIRST(&h->guarded)) &&
           (atomic_load(&h->stopping) || mono_diff(x->conn->since, now) >= h->options.guard->deadline_ms))
        guard_leave(x, &late);
    lock_release(&h->lock);
}

/* ---- The body ----
 *
 * Kept for a route that takes one, else discarded.
 *
 * A body over a limit is read on and discarded, so that the client receives its refusal: libmicrohttpd sends
 * no response while it reads a body. */

static size_t body_max(const struct exchange *x)
{
    return x->routed && x->route->max_body ? x->route->max_body : DISCARDED_MAX;
}

/* False if all bodies together are too large. */
static bool body_keep(struct exchange *x, const char *piece, size_t n)
{
    struct httpd *h = x->server;
    uint64_t max = h->options.max_body_bytes ? h->options.max_body_bytes : ALL_BODIES_MAX;
    bool ok;

    lock_take(&h->lock);
    ok = n <= max && h->body_held <= max - n;
    h->body_held += ok ? n : 0;
    lock_release(&h->lock);
    x->body.max = x->route->max_body; /* the piece fits into it, see body_receive() */
    if (!ok)
        return false;
    buf_put(&x->body, piece, n);
    return buf_failed(&x->body) == 0;
}

static void body_refuse_size(struct exchange *x)
{
    char text[80];

    (void)snprintf(text, sizeof(text), "413: request body exceeds the limit of %zu bytes\n", body_max(x));
    reply_error(x, text);
}

/* Keeps a piece, unless the route takes none or a limit is reached: then the reply is set. False: the
 * connection is to be closed. */
static bool body_receive(struct exchange *x, const char *piece, size_t n)
{
    uint64_t before = x->body_bytes;

    x->body_bytes += n;
    if (x->body_bytes > body_max(x) + READ_MAX)
        return false;
    if (before / PACE_BYTES != x->body_bytes / PACE_BYTES)
        httpd_conn_set(x->server, x->conn, CONN_READING);
    if (x->own_error)
        return true;
    if (x->body_bytes > body_max(x)) {
        body_refuse_size(x);
    } else if (x->routed && x->route->max_body && !body_keep(x, piece, n)) {
        reply_error(x, "503: no memory for the request body\n");
        x->reply.retry_after = BODY_RETRY_SECONDS;
    }
    if (x->own_error)
        body_drop(x);
    return true;
}

/* ---- The request ---- */

/* 404 with the list of paths, or 405. */
static void refuse_route(struct exchange *x)
{
    const struct httpd_options *o = &x->server->options;
    BUF_AUTO(b, 64 << 10);

    if (x->route) {
        x->allow = strcmp(x->route->method, "GET") == 0 ? "GET, HEAD" : x->route->method;
        reply_error(x, "405: method not allowed for this path\n");
        return;
    }
    buf_puts(&b, "404: not found. Available paths:\n");
    for (size_t i = 0; i < o->n_routes; i++)
        buf_printf(&b, "%s %s\n", o->routes[i].method, o->routes[i].path);
    buf_putc(&b, '\0');
    if (buf_failed(&b) < 0)
        reply_error(x, "404: not found\n");
    else
        reply_error(x, b.p);
}

/* Suspends the connection and queues the request for the loop; false if the server is stopping. */
static bool request_queue(struct exchange *x)
{
    struct httpd *h = x->server;
    bool stopping;

    lock_take(&h->lock);
    stopping = atomic_load(&h->stopping);
    if (!stopping) {
        x->state = WAITING;
        MHD_suspend_connection(x->connection);
        if (STAILQ_EMPTY(&h->queue))
            loop_post(h->loop, &h->post);
        STAILQ_INSERT_TAIL(&h->queue, x, next);
    }
    lock_release(&h->lock);
    return !stopping;
}

/* The request has been read. */
static enum MHD_Result request_route(struct exchange *x)
{
    httpd_conn_set(x->server, x->conn, CONN_HANDLING);
    x->request.body = buf_str(&x->body);
    if (x->own_error)
        return exchange_respond(x);
    if (!x->routed)
        refuse_route(x);
    else if (x->route->direct)
        x->route->fn(x->route->arg, &x->request, &x->reply);
    else if (request_queue(x))
        return MHD_YES;
    else
        reply_error(x, text_stopping);
    return exchange_respond(x);
}

/* The guard has allowed the request. A body that announces more than is read even to be discarded is refused
 * at once. */
static enum MHD_Result request_admit(struct exchange *x)
{
    if (x->state == ALLOWED)
        httpd_conn_set(x->server, x->conn, CONN_READING);
    x->state = READING;
    if (x->body_announced <= size_max(body_max(x), READ_MAX))
        return MHD_YES;
    body_refuse_size(x);
    return request_route(x);
}

/* Routes and guards know a path in one form: that of absolute-form is taken apart first. */
static void request_set_target(struct exchange *x, const char *url)
{
    size_t scheme = target_scheme(url), n;

    x->request.path = url;
    if (scheme == 0)
        return;
    n = strcspn(url + scheme, "/");
    x->authority = str_dup((struct str){url + scheme, n});
    x->request.path = url[scheme + n] ? url + scheme + n : "/";
}

/* The head has been read. libmicrohttpd closes the connection after an answer at this point. */
static enum MHD_Result exchange_begin(struct exchange *x, struct MHD_Connection *connection, const char *url,
                                      const char *method, const char *version)
{
    const struct httpd_options *o;
    const char *refused;

    x->connection = connection;
    x->conn = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
    x->server = x->conn->listener->server;
    x->head = strcmp(method, "HEAD") == 0;
    x->request.method = x->head ? "GET" : method;
    request_set_target(x, url);
    httpd_conn_set(x->server, x->conn, CONN_READING);
    atomic_fetch_add(&x->server->under_way, 1);
    o = &x->server->options;
    for (size_t i = 0; !x->routed && i < o->n_routes; i++)
        if (strcmp(o->routes[i].path, x->request.path) == 0) {
            x->route = &o->routes[i];
            x->routed = strcmp(x->route->method, x->request.method) == 0;
        }
    refused = head_read(x, method, version);
    if (refused) {
        x->close = true;
        reply_error(x, refused);
        return exchange_respond(x);
    }
    return o->guard ? guard_ask(x) : request_admit(x);
}

enum MHD_Result httpd_on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *upload,
                                 size_t *upload_size, void **context)
{
    struct exchange *x = *context;
    size_t n = *upload_size;

    (void)cls;
    if (!x) {
        *context = x = xcalloc(1, sizeof(*x));
        return exchange_begin(x, connection, url, method, version);
    }
    if (n) {
        *upload_size = 0;
        return body_receive(x, upload, n) ? MHD_YES : MHD_NO;
    }
    switch (x->state) {
    case READING:
        return request_route(x);
    case ALLOWED: /* libmicrohttpd repeats the call about the head after it was suspended there */
        return request_admit(x);
    case READY:
        return exchange_respond(x);
    default:
        return MHD_YES;
    }
}

/* Also called when a connection ends, in any state of the exchange except GUARDED and WAITING. */
void httpd_on_completed(void *cls, struct MHD_Connection *connection, void **context,
                        enum MHD_RequestTerminationCode how)
{
    struct exchange *x = *context;
    struct httpd *h = ((struct listener *)cls)->server;
    const struct httpd_options *o = &h->options;

    (void)connection;
    if (!x)
        return;
    *context = NULL;
    if (x->state == ANSWERED && o->served)
        o->served(o->served_arg, x->route ? x->route->path : "other", x->reply.status,
                  how == MHD_REQUEST_TERMINATED_COMPLETED_OK && !x->head ? x->answer_bytes : 0);
    httpd_conn_set(h, x->conn, CONN_IDLE);
    reply_release(&x->reply);
    body_drop(x);
    buf_done(&x->arguments);
    free(x->authority);
    free(x);
    atomic_fetch_sub(&h->under_way, 1);
}

/* ---- On the loop ---- */

static void request_handle(struct exchange *x)
{
    if (atomic_load(&x->server->stopping))
        reply_error(x, text_stopping);
    else
        x->route->fn(x->route->arg, &x->request, &x->reply);
}

void httpd_defer(struct httpd_reply *reply)
{
    CONTAINER_OF(reply, struct exchange, reply)->holders++;
}

/* The exchange may be gone after this. */
void httpd_finish(struct httpd_reply *reply)
{
    struct exchange *x = CONTAINER_OF(reply, struct exchange, reply);

    if (--x->holders > 0)
        return;
    x->state = READY;
    MHD_resume_connection(x->connection);
}

/* The first request that waits runs the handler, the others receive copies of its reply. */
void httpd_on_spacing(struct timer *t)
{
    struct httpd *h = CONTAINER_OF(t, struct httpd, spacing);
    struct exchange *first = STAILQ_FIRST(&h->spaced), *x;
    struct str body = {0};

    if (!first)
        return;
    loop_timer_set(h->loop, t, mono_add(loop_now(h->loop), first->route->spacing_ms));
    STAILQ_REMOVE_HEAD(&h->spaced, next);
    request_handle(first);
    if (first->reply.n_parts)
        body = (struct str){first->reply.parts->iov_base, first->reply.parts->iov_len};
    while ((x = STAILQ_FIRST(&h->spaced))) {
        STAILQ_REMOVE_HEAD(&h->spaced, next);
        httpd_reply_text(&x->reply, first->reply.status, body);
        httpd_finish(&x->reply);
    }
    httpd_finish(&first->reply);
}

static void request_run(struct httpd *h, struct exchange *x)
{
    x->holders = 1;
    if (x->route->spacing_ms) {
        STAILQ_INSERT_TAIL(&h->spaced, x, next);
        if (!h->spacing.place)
            httpd_on_spacing(&h->spacing);
        return;
    }
    request_handle(x);
    httpd_finish(&x->reply);
}

void httpd_on_queue(struct post *p)
{
    struct httpd *h = CONTAINER_OF(p, struct httpd, post);
    mono_ms end = mono_add(clock_system.mono(&clock_system), QUEUE_MS);
    bool stopping = atomic_load(&h->stopping), more;
    struct exchange *x;

    do {
        lock_take(&h->lock);
        x = STAILQ_FIRST(&h->queue);
        if (x)
            STAILQ_REMOVE_HEAD(&h->queue, next);
        more = !STAILQ_EMPTY(&h->queue);
        lock_release(&h->lock);
        if (x)
            request_run(h, x);
    } while (more && (stopping || mono_before(clock_system.mono(&clock_system), end)));
    if (more)
        loop_post(h->loop, p);
    if (stopping)
        httpd_on_spacing(&h->spacing);
}
