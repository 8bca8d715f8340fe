/* What a handler reads of its request, and the ways to set its reply. Owns nothing: a reply has its body
 * until it is released. The thread that has the request. */
#include "exporter/http/httpd_internal.h"

#include "exporter/base/buf.h"

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

const char *httpd_header(const struct httpd_request *rq, const char *name)
{
    const struct exchange *x = CONTAINER_OF(rq, const struct exchange, request);

    return MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
}

void httpd_reply_release(struct httpd_reply *reply)
{
    if (reply->release)
        reply->release(reply->arg);
    reply->release = NULL;
}

void httpd_reply_take(struct httpd_reply *reply, struct buf *bytes)
{
    httpd_reply_release(reply);
    reply->own_part = (struct iovec){.iov_base = bytes->p, .iov_len = bytes->n};
    reply->parts = &reply->own_part;
    reply->n_parts = 1;
    reply->release = free;
    reply->arg = buf_take(bytes).p;
}

void httpd_reply_copy(struct httpd_reply *reply, struct str body)
{
    struct buf bytes = {.p = str_dup(body), .n = body.n};

    httpd_reply_take(reply, &bytes);
}

void httpd_reply_text(struct httpd_reply *reply, unsigned status, struct str body)
{
    httpd_reply_copy(reply, body);
    reply->status = status;
    reply->content_type = "text/plain; charset=utf-8";
}

void httpd_reply_error(struct exchange *x, const char *text)
{
    httpd_reply_release(&x->reply);
    x->reply = (struct httpd_reply){0};
    x->own_error = true;
    httpd_reply_text(&x->reply, (unsigned)strtoul(text, NULL, 10), str_of(text));
}
