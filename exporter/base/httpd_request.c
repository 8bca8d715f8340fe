/* The life of a request: it is read, routed, handled here or on the loop, answered.
 *
 * The connection of a request for the loop is suspended before the request is queued; until
 * MHD_resume_connection() the exchange belongs to the loop. libmicrohttpd does not poll a suspended
 * connection, so a disconnect is noticed only afterwards. */
#include "exporter/base/buf.h"
#include "exporter/base/httpd_internal.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/eventfd.h>

/* ---- The head ----
 *
 * A head that another program reads in another way lets a request be smuggled past a proxy (RFC 9112,
 * sections 3.2, 5.1 and 6.3). libmicrohttpd refuses most such heads itself from 0.9.77 on, with
 * MHD_USE_PEDANTIC_CHECKS. Before, it accepts them: it takes an empty name for the end of the head, joins
 * folded lines, and ends the target and values at a NUL. The head is then longer than what it shows of it. */

static struct client *httpd_client(struct MHD_Connection *connection)
{
    return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

struct head {
    unsigned hosts, lengths, codings;
    bool bad_name, chunked;
    size_t size; /* of the fields as clients write them, one space after the colon */
    const char *host, *origin, *fetch_site;
};

/* A token of RFC 9110, section 5.6.2. */
static bool head_is_token(const char *s)
{
    size_t n = strspn(s, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");

    return n && !s[n];
}

static enum MHD_Result head_on_field(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct head *h = arg;
    struct str n = str_of(name);

    (void)kind;
    value = cstr(value);
    h->size += n.n + strlen(": ") + strlen(value) + strlen("\r\n");
    if (!head_is_token(name)) {
        h->bad_name = true;
    } else if (str_eq_nocase(n, STR("Host"))) {
        h->hosts++;
        h->host = value;
    } else if (str_eq_nocase(n, STR("Content-Length"))) {
        h->lengths++;
    } else if (str_eq_nocase(n, STR("Transfer-Encoding"))) {
        h->codings++;
        h->chunked = str_eq_nocase(str_of(value), STR("chunked"));
    } else if (str_eq_nocase(n, STR("Origin"))) {
        h->origin = value;
    } else if (str_eq_nocase(n, STR("Sec-Fetch-Site"))) {
        h->fetch_site = value;
    }
    return MHD_YES;
}

/* Whether the head has bytes that libmicrohttpd passed over, see above. More than one space after a colon
 * counts as such; spaces and line feeds that are missing elsewhere can make up for them. */
static bool head_hides_bytes(const struct exchange *x, const struct client *c, const struct head *h,
                             const char *method, const char *version)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    size_t line = strlen(method) + 1 + c->target_size + 1 + strlen(version) + strlen("\r\n");

    return !x->server->checks_heads && info->header_size > line + h->size + strlen("\r\n");
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

    (void)snprintf(text, sizeof(text), "%.*s", STR_ARG(host));
    return str_eq_nocase(host, STR("localhost")) || str_eq_nocase(host, str_of(l->host)) ||
           inet_pton(AF_INET, text, address) == 1 || inet_pton(AF_INET6, text, address) == 1;
}

static bool head_is_local_origin(const char *authority)
{
    struct str host = head_host(authority);

    return str_eq_nocase(host, STR("localhost")) || str_eq(host, STR("127.0.0.1")) ||
           str_eq(host, STR("::1"));
}

/* Whether a page of another site sent the request. Other clients than browsers send neither field. */
static bool head_is_cross_site(const struct head *h, const struct httpd_route *route)
{
    const char *at = h->origin ? strstr(h->origin, "://") : NULL;

    if (route && route->local_origins && at && head_is_local_origin(at + 3))
        return false;
    if (h->fetch_site && strcmp(h->fetch_site, "same-origin") != 0 && strcmp(h->fetch_site, "none") != 0)
        return true;
    return h->origin && !(at && str_eq_nocase(str_of(at + 3), str_of(h->host)));
}

/* Refuses what a proxy in front might read in another way, a Host that a page of another site may have
 * been given (DNS rebinding), and requests of other sites' pages that change something. The status and
 * *ret_text of the refusal, or 0. The head has been read. */
static unsigned httpd_check_head(const struct exchange *x, const char *method, const char *version,
                                 const char **ret_text)
{
    const struct listener *l = &x->server->listeners[x->server->conns[x->fd].listener];
    const struct client *c = httpd_client(x->connection);
    const char *why = NULL;
    struct head h = {0};

    (void)MHD_get_connection_values(x->connection, MHD_HEADER_KIND, head_on_field, &h);
    if (c->has_nul)
        why = "400: NUL in the request target\n";
    else if (head_hides_bytes(x, c, &h, method, version))
        why = "400: invalid header\n";
    else if (h.bad_name)
        why = "400: invalid name of a header field\n";
    else if (h.hosts > 1)
        why = "400: several Host fields\n";
    else if (h.lengths > 1 || h.codings > 1 || (h.lengths && h.codings))
        why = "400: several Content-Length or Transfer-Encoding fields\n";
    else if (h.codings && !h.chunked)
        why = "400: unsupported Transfer-Encoding\n";
    if (why) {
        *ret_text = why;
        return MHD_HTTP_BAD_REQUEST;
    }
    if (l->loopback && h.host && !head_is_local_host(h.host, l)) {
        *ret_text = "421: this address only serves requests whose Host is localhost or an IP address\n";
        return MHD_HTTP_MISDIRECTED_REQUEST;
    }
    if (strcmp(x->request.method, "GET") != 0 && head_is_cross_site(&h, x->route)) {
        *ret_text = "403: cross-origin request refused\n";
        return MHD_HTTP_FORBIDDEN;
    }
    return 0;
}

/* ---- The query ---- */

static int query_digit(char c)
{
    return c >= '0' && c <= '9'                     ? c - '0'
           : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                    : -1;
}

/* Decodes + and %XX in place, and ends it with a NUL. Returns the end. */
static char *query_decode(char *to, const char *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool coded =
            from[i] == '%' && i + 2 < n && query_digit(from[i + 1]) >= 0 && query_digit(from[i + 2]) >= 0;

        *to = from[i] == '+' ? ' ' : from[i];
        if (coded) {
            *to = (char)(query_digit(from[i + 1]) << 4 | query_digit(from[i + 2]));
            i += 2;
        }
        to++;
    }
    *to = '\0';
    return to + 1;
}

void httpd_take_target(struct client *c, const char *target)
{
    const char *mark = strchr(target, '?');
    char *to, *from;

    free(c->arguments);
    *c = (struct client){.tls = c->tls, .target_size = strlen(target), .has_nul = strstr(target, "%00")};
    if (!mark)
        return;
    c->arguments = xstrdup(mark + 1);
    to = from = c->arguments;
    while (*from) {
        size_t n = strcspn(from, "&"), name = strcspn(from, "=&");
        char *next = from + n + (from[n] != '\0');

        if (name < n) {
            to = query_decode(to, from, name);
            to = query_decode(to, from + name + 1, n - name - 1);
        }
        from = next;
    }
    c->arguments_size = (size_t)(to - c->arguments);
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

/* ---- The body ----
 *
 * Kept for a route that takes one, else discarded.
 *
 * A body over a limit is read on and discarded, so that the client receives its refusal: libmicrohttpd sends
 * no response while it reads a body. */

enum {
    DISCARDED_MAX = 64 << 10, /* for routes that take no body */
    /* So much is read of what exceeds a limit. */
    READ_MAX = 1 << 20,
    /* A body has another READ_MS for each piece of this size. */
    PACE_BYTES = 256 << 10,
    ALL_BODIES_MAX = 64 << 20,
    RETRY_SECONDS = 1,
    QUEUE_MS = 10, /* handlers run this long before the loop turns */
};

static size_t body_max(const struct exchange *x)
{
    return x->routed && x->route->max_body ? x->route->max_body : DISCARDED_MAX;
}

/* Whether Content-Length announces more than is read even to be discarded. */
static bool httpd_body_is_too_large(struct exchange *x)
{
    const char *length = MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, "Content-Length");
    size_t most = size_max(body_max(x), READ_MAX);

    if (!length || strtoull(length, NULL, 10) <= most)
        return false;
    x->body_status = MHD_HTTP_CONTENT_TOO_LARGE;
    return true;
}

/* Takes n bytes of what all bodies may hold. */
static bool body_reserve(struct exchange *x, size_t n)
{
    struct httpd *h = x->server;
    uint64_t max = h->options.max_body_bytes ? h->options.max_body_bytes : ALL_BODIES_MAX;
    bool ok;

    (void)pthread_mutex_lock(&h->lock);
    ok = n <= max && h->body_held <= max - n;
    h->body_held += ok ? n : 0;
    (void)pthread_mutex_unlock(&h->lock);
    return ok;
}

void httpd_body_drop(struct exchange *x)
{
    struct httpd *h = x->server;

    if (x->body.n) {
        (void)pthread_mutex_lock(&h->lock);
        h->body_held -= x->body.n;
        (void)pthread_mutex_unlock(&h->lock);
    }
    buf_done(&x->body);
    x->request.body = (struct str){0};
}

static void body_refuse(struct exchange *x, unsigned status)
{
    x->body_status = status;
    httpd_body_drop(x);
}

static void body_keep(struct exchange *x, const char *piece, size_t n)
{
    x->body.max = x->route->max_body;
    if (!body_reserve(x, n)) {
        body_refuse(x, MHD_HTTP_SERVICE_UNAVAILABLE);
        return;
    }
    if (buf_put(&x->body, piece, n) == 0)
        return;
    (void)pthread_mutex_lock(&x->server->lock);
    x->server->body_held -= n;
    (void)pthread_mutex_unlock(&x->server->lock);
    body_refuse(x, MHD_HTTP_SERVICE_UNAVAILABLE);
}

/* Keeps a piece, unless the route takes none or a limit is reached; false: the connection is to be closed. */
static bool httpd_body_put(struct exchange *x, const char *piece, size_t n)
{
    uint64_t before = x->body_bytes;

    x->body_bytes += n;
    if (x->body_bytes > body_max(x) + READ_MAX)
        return false;
    if (before / PACE_BYTES != x->body_bytes / PACE_BYTES)
        httpd_conn_set(x->server, x->fd, CONN_READING);
    if (x->body_status)
        return true;
    if (x->body_bytes > body_max(x))
        body_refuse(x, MHD_HTTP_CONTENT_TOO_LARGE);
    else if (x->routed && x->route->max_body)
        body_keep(x, piece, n);
    return true;
}

/* The body has been read: sets it for the handler, or the reply if it was refused. */
static bool httpd_body_end(struct exchange *x)
{
    char text[80];

    x->request.body = buf_str(&x->body);
    if (!x->body_status)
        return true;
    if (x->body_status == MHD_HTTP_CONTENT_TOO_LARGE) {
        (void)snprintf(text, sizeof(text), "413: request body exceeds the limit of %zu bytes\n", body_max(x));
        httpd_reply_error(x, x->body_status, text);
    } else {
        httpd_reply_error(x, x->body_status, "503: no memory for the request body\n");
        x->reply.retry_after = RETRY_SECONDS;
    }
    return false;
}

/* ---- The request ---- */

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

/* The request target has been read, nothing else. The request has no context until its head has been read. */
void *httpd_on_target(void *cls, const char *target, struct MHD_Connection *connection)
{
    (void)cls;
    httpd_take_target(httpd_client(connection), cstr(target));
    return NULL;
}

static struct exchange *exchange_new(struct httpd *h, struct MHD_Connection *connection, const char *url,
                                     const char *method)
{
    struct client *c = httpd_client(connection);
    struct exchange *x = xcalloc(1, sizeof(*x));

    x->server = h;
    x->connection = connection;
    x->fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    x->head = strcmp(method, "HEAD") == 0;
    x->request.method = x->head ? "GET" : method;
    x->request.path = url;
    x->request.arguments = (struct str){c->arguments, c->arguments_size};
    x->arguments = c->arguments;
    c->arguments = NULL;
    httpd_conn_set(h, x->fd, CONN_READING);
    (void)pthread_mutex_lock(&h->lock);
    h->under_way++;
    (void)pthread_mutex_unlock(&h->lock);
    return x;
}

static void exchange_free(struct exchange *x)
{
    struct httpd *h = x->server;

    httpd_release(&x->reply);
    httpd_body_drop(x);
    for (size_t i = 0; i < ARRAY_SIZE(x->joined); i++)
        free(x->joined[i]);
    free(x->arguments);
    (void)pthread_mutex_lock(&h->lock);
    if (--h->under_way == 0)
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
static enum MHD_Result request_begin(struct exchange *x, const char *method, const char *version)
{
    const char *why = "";
    unsigned refused;

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

    if (!x) {
        *context = x = exchange_new(cls, connection, url, method);
        return request_begin(x, method, version);
    }
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

    int fd = info->connect_fd;
    struct client *c = *context;

    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        httpd_conn_closed(h, fd);
        httpd_tls_end(c->tls); /* its GnuTLS session has been freed */
        free(c->arguments);
        free(c);
        return;
    }
    httpd_conn_set(h, fd, CONN_READING);
    *context = c = xcalloc(1, sizeof(*c));
    if (h->options.tls)
        c->tls = httpd_tls_begin(h->options.tls, session_of(connection), fd);
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
    loop_timer_set(h->loop, t, mono_add(loop_now(h->loop), ms));
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
