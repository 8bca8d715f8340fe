/* Turns a handler's reply into libmicrohttpd's response. */
#include "exporter/base/buf.h"
#include "exporter/base/httpd_internal.h"

#include <stdio.h>

/* A body is sent without a copy if possible. But libmicrohttpd 0.9.75 copies the array of parts into the
 * connection's memory (32 KiB), which also holds the request's headers, and if it does not fit, unlocks a
 * mutex that is not locked and aborts the program. So it is used only if both are small; otherwise the
 * parts are copied block by block, which costs twice as much. */
enum { BLOCK = 128 << 10, PARTS_IN_PLACE = 256, HEADER_IN_PLACE = 4 << 10, FIELDS_IN_PLACE = 64 };

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

void httpd_release(struct httpd_reply *reply)
{
    if (reply->release)
        reply->release(reply->arg);
    reply->release = NULL;
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

    httpd_release(&s->reply);
    free(s);
}

static struct MHD_Response *stream_response(struct httpd_reply *reply, uint64_t bytes)
{
    struct stream *s = xcalloc(1, sizeof(*s));
    struct MHD_Response *r;

    r = MHD_create_response_from_callback(bytes, size_min(bytes, BLOCK), stream_read, s, stream_free);
    if (r)
        s->reply = *reply;
    else
        free(s);
    return r;
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
static struct MHD_Response *body_response(struct exchange *x, uint64_t bytes)
{
    struct httpd_reply *reply = &x->reply;
    struct MHD_Response *r;
    unsigned filled = 0;

    for (unsigned i = 0; i < reply->n_parts; i++)
        filled += reply->parts[i].iov_len > 0;
    if (filled > 1 && !fits_in_place(x->connection, reply->n_parts))
        r = stream_response(reply, bytes);
    else
        r = MHD_create_response_from_iovec((const struct MHD_IoVec *)reply->parts, reply->n_parts,
                                           reply->release, reply->arg);
    if (r)
        reply->release = NULL;
    return r;
}

/* Not if the response has a field of this name already, as an additional one. */
static bool add_header(struct MHD_Response *r, const char *name, const char *value)
{
    return !value || !value[0] || MHD_get_response_header(r, name) ||
           MHD_add_response_header(r, name, value) == MHD_YES;
}

static bool add_additional_headers(struct MHD_Response *r, struct httpd *h)
{
    bool ok = true;

    (void)pthread_mutex_lock(&h->lock);
    for (const char *name = h->headers, *value; ok && name && *name; name = value + strlen(value) + 1) {
        value = name + strlen(name) + 1;
        ok = add_header(r, name, value);
    }
    (void)pthread_mutex_unlock(&h->lock);
    return ok;
}

int httpd_set_headers(struct httpd *h, const struct httpd_header *headers, size_t n)
{
    BUF_AUTO(all, 1u << 20);
    char *before;
    int r = 0;

    for (size_t i = 0; r == 0 && i < n; i++)
        r = buf_put(&all, headers[i].name, strlen(headers[i].name) + 1)
                ?: buf_put(&all, headers[i].value, strlen(headers[i].value) + 1);
    r = r ?: buf_putc(&all, '\0');
    if (r < 0)
        return r;
    (void)pthread_mutex_lock(&h->lock);
    before = h->headers;
    h->headers = buf_take(&all).p;
    (void)pthread_mutex_unlock(&h->lock);
    free(before);
    return 0;
}

static bool add_headers(struct MHD_Response *r, const struct exchange *x)
{
    const struct httpd_reply *reply = &x->reply;
    char retry_after[16] = "";

    if (reply->retry_after)
        (void)snprintf(retry_after, sizeof(retry_after), "%u", reply->retry_after);
    return add_additional_headers(r, x->server) &&
           add_header(r, "Content-Type",
                      reply->content_type ? reply->content_type : "text/plain; charset=utf-8") &&
           add_header(r, "Content-Encoding", reply->content_encoding) && add_header(r, "Vary", reply->vary) &&
           add_header(r, "Cache-Control", reply->cache_control ? reply->cache_control : "no-store") &&
           add_header(r, "ETag", reply->etag) && add_header(r, "Content-Security-Policy", reply->csp) &&
           add_header(r, "Referrer-Policy", reply->csp ? "no-referrer" : NULL) &&
           add_header(r, "X-Content-Type-Options", "nosniff") && add_header(r, "Allow", x->allow) &&
           add_header(r, "WWW-Authenticate", reply->challenge) && add_header(r, "Retry-After", retry_after) &&
           add_header(r, "Connection", x->close ? "close" : NULL);
}

static struct MHD_Response *make_response(struct exchange *x)
{
    struct MHD_Response *r = body_response(x, x->answer_bytes);

    if (r && !add_headers(r, x)) {
        MHD_destroy_response(r);
        return NULL;
    }
    return r;
}

static uint64_t count_bytes(const struct httpd_reply *reply)
{
    uint64_t n = 0;

    for (unsigned i = 0; i < reply->n_parts; i++)
        n += reply->parts[i].iov_len;
    return n;
}

static void respond_error(struct exchange *x)
{
    const struct iovec *text = x->reply.parts;

    if (!x->own_error || !x->server->options.error_body || x->reply.n_parts == 0)
        return;
    if (!x->request.content_type)
        x->request.content_type = httpd_get_header(x, "Content-Type", &x->joined[4]);
    x->server->options.error_body(&x->request, &x->reply, (struct str){text->iov_base, text->iov_len});
}

enum MHD_Result httpd_respond(struct exchange *x)
{
    struct MHD_Response *r;
    enum MHD_Result queued;

    httpd_body_drop(x);
    x->close = x->close || atomic_load(&x->server->stopping);
    if (!httpd_conn_answer(x->server, x->fd, count_bytes(&x->reply), x->reply.version)) {
        x->close = true;
        httpd_reply_error(x, MHD_HTTP_SERVICE_UNAVAILABLE, "503: too many large responses are being sent\n");
        (void)httpd_conn_answer(x->server, x->fd, 0, 0);
    }
    respond_error(x);
    x->status = x->reply.status ? x->reply.status : MHD_HTTP_OK;
    x->answer_bytes = count_bytes(&x->reply);
    x->state = ANSWERED;
    r = make_response(x);
    httpd_release(&x->reply);
    if (!r)
        return MHD_NO; /* out of memory: the connection is closed */
    queued = MHD_queue_response(x->connection, x->status, r);
    MHD_destroy_response(r);
    return queued;
}

void httpd_reply_copy(struct httpd_reply *reply, struct str body)
{
    struct iovec *part = xmalloc(sizeof(*part) + body.n);

    httpd_release(reply);
    reply->parts = part;
    if (body.n)
        memcpy(part + 1, body.p, body.n);
    *part = (struct iovec){.iov_base = part + 1, .iov_len = body.n};
    reply->n_parts = 1;
    reply->release = free;
    reply->arg = part;
}

void httpd_reply_error(struct exchange *x, unsigned status, const char *text)
{
    httpd_release(&x->reply);
    x->reply = (struct httpd_reply){.status = status};
    x->own_error = true;
    httpd_reply_copy(&x->reply, str_of(text));
}

void httpd_reply_text(struct httpd_reply *reply, unsigned status, struct str body)
{
    httpd_reply_copy(reply, body);
    reply->status = status;
    reply->content_type = "text/plain; charset=utf-8";
}
