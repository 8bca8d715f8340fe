/* The body of a request: kept for a route that takes one, else discarded.
 *
 * A body over a limit is read on and discarded, so that the client receives its refusal: libmicrohttpd sends
 * no response while it reads a body. */
#include "exporter/base/httpd_internal.h"

#include <stdio.h>

enum {
    DISCARDED_MAX = 64 << 10, /* for routes that take no body */
    /* So much is read of what exceeds a limit. */
    READ_MAX = 1 << 20,
    /* A body has another READ_MS for each piece of this size. */
    PACE_BYTES = 256 << 10,
    ALL_BODIES_MAX = 64 << 20,
    RETRY_SECONDS = 1,
};

static size_t body_max(const struct exchange *x)
{
    return x->routed && x->route->max_body ? x->route->max_body : DISCARDED_MAX;
}

bool httpd_body_is_too_large(struct exchange *x)
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

bool httpd_body_put(struct exchange *x, const char *piece, size_t n)
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

bool httpd_body_end(struct exchange *x)
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
