/* The life of a request: its head is judged, the guard asked, its body read; it is handled here or on the
 * loop, and answered. Owns the exchange of each.
 *
 * A connection whose request waits for the guard or the loop is suspended: until MHD_resume_connection() the
 * exchange belongs to whoever decides. libmicrohttpd does not poll a suspended connection, so a disconnect is
 * noticed only afterwards. */
#include "exporter/http/httpd_internal.h"

#include "exporter/base/alloc.h"
#include "exporter/base/buf.h"
#include "exporter/base/invariant.h"
#include "exporter/base/lock.h"

#include <stdio.h>

enum {
    DISCARDED_MAX = 64 << 10, /* bytes of a body, for routes that take none */
    /* So much is read of what exceeds a limit. */
    READ_MAX = 1 << 20,
    /* A body has another ten seconds for each piece of this size. */
    PACE_BYTES = 256 << 10,
    ALL_BODIES_MAX = 64 << 20,
    BODY_RETRY_SECONDS = 1,
    QUEUE_MS = 10, /* handlers run this long before the loop turns */
};

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
    BUF_AUTO(text, 80);

    buf_printf(&text, "413: request body exceeds the limit of %zu bytes\n", body_max(x));
    buf_putc(&text, '\0');
    invariant(buf_failed(&text) == 0);
    httpd_reply_error(x, text.p);
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
        httpd_reply_error(x, "503: no memory for the request body\n");
        x->reply.retry_after = BODY_RETRY_SECONDS;
    }
    if (x->own_error)
        httpd_body_drop(x);
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
        httpd_reply_error(x, "405: method not allowed for this path\n");
        return;
    }
    buf_puts(&b, "404: not found. Available paths:\n");
    for (size_t i = 0; i < o->n_routes; i++)
        buf_printf(&b, "%s %s\n", o->routes[i].method, o->routes[i].path);
    buf_putc(&b, '\0');
    if (buf_failed(&b) < 0)
        httpd_reply_error(x, "404: not found\n");
    else
        httpd_reply_error(x, b.p);
}

/* Suspends the connection and queues the request for the loop; false if the server is stopping. */
static bool request_queue(struct exchange *x)
{
    struct httpd *h = x->server;
    bool stopping;

    lock_take(&h->lock);
    stopping = atomic_load(&h->stopping);
    if (!stopping) {
        x->state = EXCHANGE_WAITING;
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
        return httpd_respond(x);
    if (!x->routed)
        refuse_route(x);
    else if (x->route->direct)
        x->route->fn(x->route->arg, &x->request, &x->reply);
    else if (request_queue(x))
        return MHD_YES;
    else
        httpd_reply_error(x, HTTPD_TEXT_STOPPING);
    return httpd_respond(x);
}

/* The guard has allowed the request. A body that announces more than is read even to be discarded is refused
 * at once. */
static enum MHD_Result request_admit(struct exchange *x)
{
    if (x->state == EXCHANGE_ALLOWED)
        httpd_conn_set(x->server, x->conn, CONN_READING);
    x->state = EXCHANGE_READING;
    if (x->body_announced <= size_max(body_max(x), READ_MAX))
        return MHD_YES;
    body_refuse_size(x);
    return request_route(x);
}

/* Routes and guards know a path in one form: that of absolute-form is taken apart first. */
static void request_set_target(struct exchange *x, const char *url)
{
    size_t scheme = httpd_target_scheme(url), n;

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
    refused = httpd_head_read(x, method, version);
    if (refused) {
        x->close = true;
        httpd_reply_error(x, refused);
        return httpd_respond(x);
    }
    return o->guard ? httpd_guard_ask(x) : request_admit(x);
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
    case EXCHANGE_READING:
        return request_route(x);
    case EXCHANGE_ALLOWED: /* libmicrohttpd repeats the call about the head after it was suspended there */
        return request_admit(x);
    case EXCHANGE_READY:
        return httpd_respond(x);
    default:
        return MHD_YES;
    }
}

/* Also called when a connection ends, in any state of the exchange except EXCHANGE_GUARDED and
 * EXCHANGE_WAITING. */
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
    if (x->state == EXCHANGE_ANSWERED && o->served)
        o->served(o->served_arg, x->route ? x->route->path : "other", x->reply.status,
                  how == MHD_REQUEST_TERMINATED_COMPLETED_OK && !x->head ? x->answer_bytes : 0);
    httpd_conn_set(h, x->conn, CONN_IDLE);
    httpd_reply_release(&x->reply);
    httpd_body_drop(x);
    buf_done(&x->arguments);
    free(x->authority);
    free(x);
    atomic_fetch_sub(&h->under_way, 1);
}

/* ---- On the loop ---- */

static void request_handle(struct exchange *x)
{
    if (atomic_load(&x->server->stopping))
        httpd_reply_error(x, HTTPD_TEXT_STOPPING);
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
    x->state = EXCHANGE_READY;
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
