/* From a reply to libmicrohttpd's response: the body, copied only where it must be, and the fields. Owns
 * nothing. Listener's thread. */
#include "exporter/http/httpd_internal.h"

#include "exporter/base/alloc.h"
#include "exporter/base/lock.h"

#include <stdio.h>

enum {
    BLOCK = 128 << 10,    /* of a response that is copied */
    PARTS_IN_PLACE = 256, /* see fits_in_place() */
    HEADER_IN_PLACE = 4 << 10,
    FIELDS_IN_PLACE = 64,
};

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

    httpd_reply_release(&s->reply);
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

void httpd_body_drop(struct exchange *x)
{
    lock_take(&x->server->lock);
    x->server->body_held -= x->body.n;
    lock_release(&x->server->lock);
    buf_done(&x->body);
    x->request.body = (struct str){0};
}

/* Answers with x->reply; consumes it. Listener's thread. */
enum MHD_Result httpd_respond(struct exchange *x)
{
    struct httpd *h = x->server;
    struct MHD_Response *r;
    enum MHD_Result queued;

    httpd_body_drop(x);
    x->close = x->close || atomic_load(&h->stopping);
    if (!httpd_conn_answer(h, x->conn, reply_bytes(&x->reply), x->reply.version)) {
        x->close = true;
        httpd_reply_error(x, "503: too many large responses are being sent\n");
        (void)httpd_conn_answer(h, x->conn, 0, 0);
    }
    if (x->own_error && h->options.error_body)
        h->options.error_body(&x->request, &x->reply,
                              (struct str){x->reply.parts->iov_base, x->reply.parts->iov_len});
    x->reply.status = x->reply.status ?: MHD_HTTP_OK;
    x->answer_bytes = reply_bytes(&x->reply);
    x->state = EXCHANGE_ANSWERED;
    r = body_response(x);
    if (!r)
        return MHD_NO; /* out of memory: the connection is closed */
    add_headers(r, x);
    queued = MHD_queue_response(x->connection, x->reply.status, r);
    MHD_destroy_response(r);
    return queued;
}
