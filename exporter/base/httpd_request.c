/* The life of a request: it is read (the body is discarded), routed, handled here or on the loop, answered.
 *
 * The connection of a request for the loop is suspended before the request is queued; until
 * MHD_resume_connection() the exchange belongs to the loop. libmicrohttpd does not poll a suspended
 * connection, so a disconnect is noticed only afterwards. */
#include "exporter/base/buf.h"
#include "exporter/base/httpd_internal.h"

#include <stdio.h>
#include <sys/eventfd.h>

enum {
    MAX_BODY = 64 << 10,
    /* A body over MAX_BODY is read up to this limit, so that the client receives its 413. */
    MAX_READ = 1 << 20,
};

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

/* All values of a header, joined; only the first when out of memory. */
static const char *get_header(struct exchange *x, const char *name, char **joined)
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

static struct exchange *exchange_new(struct httpd *h, struct MHD_Connection *connection, const char *url,
                                     const char *method)
{
    struct exchange *x = calloc(1, sizeof(*x));
    const union MHD_ConnectionInfo *info;

    if (!x)
        return NULL;
    info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    x->server = h;
    x->connection = connection;
    x->crowded = info && info->socket_context && atomic_load(&h->connections) > h->options.max_connections;
    x->head = strcmp(method, "HEAD") == 0;
    x->request =
        (struct httpd_request){.method = x->head ? "GET" : method, .path = url, .connection = connection};
    (void)pthread_mutex_lock(&h->lock);
    h->under_way++;
    (void)pthread_mutex_unlock(&h->lock);
    return x;
}

static void exchange_free(struct exchange *x)
{
    struct httpd *h = x->server;

    httpd_release(&x->reply);
    for (size_t i = 0; i < ARRAY_SIZE(x->joined); i++)
        free(x->joined[i]);
    free(x);
    (void)pthread_mutex_lock(&h->lock);
    if (--h->under_way == 0)
        (void)pthread_cond_signal(&h->left);
    (void)pthread_mutex_unlock(&h->lock);
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
    if (x->crowded) {
        x->close = true;
        httpd_reply_error(x, MHD_HTTP_SERVICE_UNAVAILABLE, "503: too many connections\n");
    } else if (x->body_bytes > MAX_BODY) {
        httpd_reply_error(x, MHD_HTTP_CONTENT_TOO_LARGE, "413: request body too large\n");
    } else if (!find_route(x)) {
        if (x->route)
            httpd_reply_error(x, MHD_HTTP_METHOD_NOT_ALLOWED, "405: method not allowed for this path\n");
        else
            httpd_reply_error(x, MHD_HTTP_NOT_FOUND, x->server->known_paths);
    } else {
        x->request.accept = get_header(x, "Accept", &x->joined[0]);
        x->request.accept_encoding = get_header(x, "Accept-Encoding", &x->joined[1]);
        x->request.if_none_match = get_header(x, "If-None-Match", &x->joined[2]);
        if (x->route->direct)
            x->route->fn(x->route->arg, &x->request, &x->reply);
        else if (request_queue(x))
            return MHD_YES;
        else
            httpd_reply_error(x, MHD_HTTP_SERVICE_UNAVAILABLE, "503: shutting down\n");
    }
    return httpd_respond(x);
}

static bool is_too_large(struct MHD_Connection *connection)
{
    const char *length = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");

    return length && strtoull(length, NULL, 10) > MAX_READ;
}

/* The headers have been read. libmicrohttpd closes the connection after an answer at this point. */
static enum MHD_Result request_begin(struct httpd *h, struct MHD_Connection *connection, const char *url,
                                     const char *method, void **context)
{
    struct exchange *x = exchange_new(h, connection, url, method);

    if (!x)
        return MHD_NO;
    *context = x;
    if (!is_too_large(connection))
        return MHD_YES;
    x->body_bytes = MAX_READ;
    return request_route(x);
}

enum MHD_Result httpd_on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *upload,
                                 size_t *upload_size, void **context)
{
    struct exchange *x = *context;

    (void)version;
    (void)upload;
    if (!x)
        return request_begin(cls, connection, url, method, context);
    if (*upload_size) {
        x->body_bytes += *upload_size;
        *upload_size = 0;
        return x->body_bytes > MAX_READ ? MHD_NO : MHD_YES;
    }
    switch (x->state) {
    case READING:
        return request_route(x);
    case READY:
        return httpd_respond(x);
    default:
        return MHD_YES;
    }
}

/* Also called when a connection ends, in any state of the exchange except WAITING. */
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
    if (x->state == ANSWERED && h->options.served) {
        (void)pthread_mutex_lock(&h->served_lock);
        h->options.served(h->options.served_arg, x->route ? x->route->path : "other", x->status,
                          whole && !x->head ? x->answer_bytes : 0);
        (void)pthread_mutex_unlock(&h->served_lock);
    }
    exchange_free(x);
}

void httpd_on_connection(void *cls, struct MHD_Connection *connection, void **context,
                         enum MHD_ConnectionNotificationCode what)
{
    struct httpd *h = cls;

    (void)connection;
    if (what == MHD_CONNECTION_NOTIFY_CLOSED)
        (void)atomic_fetch_sub(&h->connections, 1);
    else if (atomic_fetch_add(&h->connections, 1) >= h->options.max_connections)
        *context = h; /* marks a connection over the limit */
}

void httpd_run_queue(struct httpd *h)
{
    struct exchange *x, *next;

    (void)pthread_mutex_lock(&h->lock);
    x = h->queue;
    h->queue = NULL;
    h->queue_end = &h->queue;
    (void)pthread_mutex_unlock(&h->lock);
    for (; x; x = next) {
        next = x->next;
        if (atomic_load(&h->stopping))
            httpd_reply_error(x, MHD_HTTP_SERVICE_UNAVAILABLE, "503: shutting down\n");
        else
            x->route->fn(x->route->arg, &x->request, &x->reply);
        x->state = READY;
        MHD_resume_connection(x->connection); /* x may be gone from here on */
    }
}

const char *httpd_query(const struct httpd_request *rq, const char *name)
{
    return MHD_lookup_connection_value(rq->connection, MHD_GET_ARGUMENT_KIND, name);
}
