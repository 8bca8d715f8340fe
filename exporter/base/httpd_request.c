/* The life of a request: it is read, routed, handled here or on the loop, answered.
 *
 * The connection of a request for the loop is suspended before the request is queued; until
 * MHD_resume_connection() the exchange belongs to the loop. libmicrohttpd does not poll a suspended
 * connection, so a disconnect is noticed only afterwards. */
#include "exporter/base/buf.h"
#include "exporter/base/httpd_internal.h"
#include "exporter/base/log.h"

#include <stdio.h>
#include <sys/eventfd.h>

enum { QUEUE_MS = 10 /* handlers run this long before the loop turns */ };

struct values {
    const char *name, *first;
    struct buf all; /* empty unless there are several */
    bool failed;
};

static enum MHD_Result on_value(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct values *v = arg;

    (void)kind;
    if (!value || !str_eq_nocase(str_of(name), str_of(v->name)))
        return MHD_YES;
    if (!v->first) {
        v->first = value;
        return MHD_YES;
    }
    if ((v->all.n == 0 && buf_puts(&v->all, v->first) < 0) || buf_puts(&v->all, ", ") < 0 ||
        buf_puts(&v->all, value) < 0)
        v->failed = true;
    return MHD_YES;
}

const char *httpd_get_header(struct exchange *x, const char *name, char **joined)
{
    struct values v = {.name = name, .all.max = 64 << 10};

    (void)MHD_get_connection_values(x->connection, MHD_HEADER_KIND, on_value, &v);
    if (v.all.n && !v.failed && buf_putc(&v.all, '\0') == 0) {
        *joined = v.all.p;
        return *joined;
    }
    buf_done(&v.all);
    return cstr(v.first);
}

/* On the loop, too: libmicrohttpd does not touch the head of a suspended connection. */
const char *httpd_header(const struct httpd_request *rq, const char *name)
{
    const struct exchange *x = CONTAINER_OF(rq, const struct exchange, request);

    return MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
}

/* The request target has been read, nothing else. What is returned becomes the request's context. */
void *httpd_on_uri(void *cls, const char *uri, struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct exchange *x = info && uri ? calloc(1, sizeof(*x)) : NULL;

    if (!x)
        return NULL;
    x->server = cls;
    x->connection = connection;
    x->fd = info->connect_fd;
    /* libmicrohttpd's own memory, which it declares const only for the callback. */
    httpd_take_query(x, (char *)(uintptr_t)uri);
    return x;
}

static void exchange_begin(struct exchange *x, const char *url, const char *method)
{
    struct httpd *h = x->server;

    x->head = strcmp(method, "HEAD") == 0;
    x->request.method = x->head ? "GET" : method;
    x->request.path = url;
    x->counted = true;
    httpd_conn_set(h, x->fd, CONN_READING);
    (void)pthread_mutex_lock(&h->lock);
    h->under_way++;
    (void)pthread_mutex_unlock(&h->lock);
}

static void exchange_free(struct exchange *x)
{
    struct httpd *h = x->server;

    httpd_release(&x->reply);
    httpd_body_drop(x);
    for (size_t i = 0; i < ARRAY_SIZE(x->joined); i++)
        free(x->joined[i]);
    free(x->query);
    (void)pthread_mutex_lock(&h->lock);
    if (x->counted && --h->under_way == 0)
        (void)pthread_cond_signal(&h->left);
    (void)pthread_mutex_unlock(&h->lock);
    free(x);
}

/* Finds the route. If only the method does not match, sets x->allow. */
static bool find_route(struct exchange *x)
{
    const struct httpd_options *o = &x->server->options;
    bool get = false, post = false;

    for (size_t i = 0; i < o->n_routes; i++) {
        const struct httpd_route *route = &o->routes[i];
        if (strcmp(route->path, x->request.path) != 0)
            continue;
        x->route = route;
        if (strcmp(route->method, x->request.method) == 0)
            return true;
        get = get || strcmp(route->method, "GET") == 0;
        post = post || strcmp(route->method, "POST") == 0;
    }
    if (x->route)
        (void)snprintf(x->allow, sizeof(x->allow), "%s%s%s", get ? "GET, HEAD" : "", get && post ? ", " : "",
                       post ? "POST" : "");
    return false;
}

/* Suspends the connection and queues the request for the loop; false if the server is stopping. */
static bool request_queue(struct exchange *x)
{
    struct httpd *h = x->server;
    bool stopping;

    (void)pthread_mutex_lock(&h->lock);
    stopping = atomic_load(&h->stopping);
    if (!stopping) {
        x->state = WAITING;
        MHD_suspend_connection(x->connection);
        *h->queue_end = x;
        h->queue_end = &x->next;
    }
    (void)pthread_mutex_unlock(&h->lock);
    if (!stopping)
        (void)eventfd_write(h->wake, 1);
    return !stopping;
}

/* The request has been read. */
static enum MHD_Result request_route(struct exchange *x)
{
    httpd_conn_set(x->server, x->fd, CONN_HANDLING);
    if (!httpd_body_end(x))
        return httpd_respond(x);
    if (!x->routed) {
        if (x->route)
            httpd_reply_error(x, MHD_HTTP_METHOD_NOT_ALLOWED, "405: method not allowed for this path\n");
        else
            httpd_reply_error(x, MHD_HTTP_NOT_FOUND, x->server->known_paths);
    } else {
        x->request.accept = httpd_get_header(x, "Accept", &x->joined[0]);
        x->request.accept_encoding = httpd_get_header(x, "Accept-Encoding", &x->joined[1]);
        x->request.if_none_match = httpd_get_header(x, "If-None-Match", &x->joined[2]);
        x->request.content_type = httpd_get_header(x, "Content-Type", &x->joined[4]);
        x->request.content_encoding = httpd_get_header(x, "Content-Encoding", &x->joined[5]);
        if (!x->request.authorization)
            x->request.authorization = httpd_get_header(x, "Authorization", &x->joined[3]);
        if (x->route->direct)
            x->route->fn(x->route->arg, &x->request, &x->reply);
        else if (request_queue(x))
            return MHD_YES;
        else
            httpd_reply_error(x, MHD_HTTP_SERVICE_UNAVAILABLE, "503: shutting down\n");
    }
    return httpd_respond(x);
}

/* The guard has allowed the request. */
static enum MHD_Result request_admit(struct exchange *x)
{
    if (x->state == ALLOWED)
        httpd_conn_set(x->server, x->fd, CONN_READING);
    x->state = READING;
    return httpd_body_is_too_large(x) ? request_route(x) : MHD_YES;
}

/* The head has been read. libmicrohttpd closes the connection after an answer at this point. */
static enum MHD_Result request_begin(struct exchange *x, const char *url, const char *method,
                                     const char *version)
{
    const char *why = "";
    unsigned refused;

    exchange_begin(x, url, method);
    x->routed = find_route(x);
    refused = httpd_check_head(x, method, version, &why);
    if (refused) {
        x->close = true;
        httpd_reply_error(x, refused, why);
        return httpd_respond(x);
    }
    switch (httpd_guard_check(x)) {
    case HTTPD_ALLOW:
        return request_admit(x);
    case HTTPD_REFUSE:
        return httpd_respond(x);
    default:
        return MHD_YES;
    }
}

enum MHD_Result httpd_on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *upload,
                                 size_t *upload_size, void **context)
{
    struct exchange *x = *context;

    (void)cls;
    (void)connection;
    if (!x)
        return MHD_NO; /* out of memory */
    if (!x->counted)
        return request_begin(x, url, method, version);
    if (*upload_size) {
        size_t n = *upload_size;

        *upload_size = 0;
        return httpd_body_put(x, upload, n) ? MHD_YES : MHD_NO;
    }
    switch (x->state) {
    case READING:
        return request_route(x);
    case ALLOWED: /* libmicrohttpd repeats the call about the head after it was suspended there */
        return request_admit(x);
    case READY:
        return httpd_respond(x);
    default:
        return MHD_YES;
    }
}

/* Also called when a connection ends, in any state of the exchange except GUARDED and WAITING. */
void httpd_on_completed(void *cls, struct MHD_Connection *connection, void **context,
                        enum MHD_RequestTerminationCode how)
{
    struct httpd *h = cls;
    struct exchange *x = *context;
    bool whole = how == MHD_REQUEST_TERMINATED_COMPLETED_OK;

    (void)connection;
    if (!x)
        return;
    *context = NULL;
    if (x->state == ANSWERED && h->options.served)
        h->options.served(h->options.served_arg, x->route ? x->route->path : "other", x->status,
                          whole && !x->head ? x->answer_bytes : 0);
    httpd_conn_set(h, x->fd, CONN_IDLE);
    exchange_free(x);
}

static gnutls_session_t session_of(struct MHD_Connection *connection)
{
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION)->tls_session;
}

void httpd_on_connection(void *cls, struct MHD_Connection *connection, void **context,
                         enum MHD_ConnectionNotificationCode what)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct httpd *h = cls;

    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        httpd_tls_end(*context); /* its GnuTLS session has been freed */
        httpd_conn_closed(h, info->connect_fd);
        return;
    }
    httpd_conn_set(h, info->connect_fd, CONN_READING);
    if (h->options.tls)
        *context = httpd_tls_begin(h->options.tls, session_of(connection), info->connect_fd);
}

static void request_handle(struct exchange *x)
{
    if (atomic_load(&x->server->stopping))
        httpd_reply_error(x, MHD_HTTP_SERVICE_UNAVAILABLE, "503: shutting down\n");
    else
        x->route->fn(x->route->arg, &x->request, &x->reply);
}

void httpd_defer(struct httpd_reply *reply)
{
    CONTAINER_OF(reply, struct exchange, reply)->deferred = true;
}

/* x may be gone after this. */
static void request_resume(struct exchange *x)
{
    x->state = READY;
    MHD_resume_connection(x->connection);
}

void httpd_finish(struct httpd_reply *reply)
{
    struct exchange *x = CONTAINER_OF(reply, struct exchange, reply);

    x->deferred = false;
    if (!x->handling)
        request_resume(x);
}

/* The first runs the handler, the others receive copies of its reply. */
static void request_handle_spaced(struct httpd *h)
{
    struct exchange *first = h->spaced, *x, *next;

    h->spaced = NULL;
    h->spaced_end = &h->spaced;
    request_handle(first);
    for (x = first->next; x; x = next) {
        next = x->next;
        x->reply.content_type = first->reply.content_type;
        x->reply.status = first->reply.status;
        if (first->reply.n_parts == 1)
            httpd_reply_copy(&x->reply,
                             (struct str){first->reply.parts->iov_base, first->reply.parts->iov_len});
        request_resume(x);
    }
    request_resume(first);
}

void httpd_on_spacing(struct timer *t)
{
    struct httpd *h = CONTAINER_OF(t, struct httpd, spacing);
    unsigned ms = h->spaced ? h->spaced->route->spacing_ms : 0;

    if (!ms)
        return;
    request_handle_spaced(h);
    if (loop_timer_set(h->loop, t, mono_add(loop_now(h->loop), ms)) < 0)
        log_debug("requests not spaced: out of memory");
}

static void request_run(struct httpd *h, struct exchange *x)
{
    if (!x->route->spacing_ms) {
        x->handling = true;
        request_handle(x);
        x->handling = false;
        if (!x->deferred)
            request_resume(x);
        return;
    }
    x->next = NULL;
    *h->spaced_end = x;
    h->spaced_end = &x->next;
    if (!h->spacing.place)
        httpd_on_spacing(&h->spacing);
}

void httpd_run_queue(struct httpd *h)
{
    mono_ms end = mono_add(clock_system.mono(&clock_system), QUEUE_MS);
    bool stopping = atomic_load(&h->stopping), more;

    do {
        struct exchange *x;

        (void)pthread_mutex_lock(&h->lock);
        x = h->queue;
        if (x)
            h->queue = x->next;
        more = h->queue;
        if (!more)
            h->queue_end = &h->queue;
        (void)pthread_mutex_unlock(&h->lock);
        if (x)
            request_run(h, x);
    } while (more && (stopping || mono_before(clock_system.mono(&clock_system), end)));
    if (stopping && h->spaced)
        request_handle_spaced(h);
    else if (more)
        (void)eventfd_write(h->wake, 1);
}
