/* curl's callbacks during a transfer: they send the request's body and receive the answer's headers and
 * body. */
#include "exporter/base/http_internal.h"

#include "exporter/base/inflate.h"

#include <errno.h>
#include <stdio.h>

enum { LARGE_BYTES = 256 << 10, MAX_HEADER_BYTES = 256 << 10, BODY_MS = 2000, BODY_MS_2XX = 200 };

size_t http_on_read(char *to, size_t size, size_t n, void *arg)
{
    struct http_call *c = arg;
    size_t room = size * n, done = 0;

    while (done < room && c->part < c->n_parts) {
        struct str part = c->parts[c->part];
        size_t some = size_min(room - done, part.n - c->offset);
        if (some)
            memcpy(to + done, part.p + c->offset, some);
        done += some;
        c->offset += some;
        if (c->offset == part.n) {
            c->part++;
            c->offset = 0;
        }
    }
    return done;
}

/* curl sends the body again after a redirect that keeps the POST, or if a reused connection was closed. */
int http_on_seek(void *arg, curl_off_t offset, int origin)
{
    struct http_call *c = arg;
    size_t part = 0;

    if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > c->body_bytes)
        return CURL_SEEKFUNC_FAIL;
    while (part < c->n_parts && (size_t)offset >= c->parts[part].n)
        offset -= (curl_off_t)c->parts[part++].n;
    c->part = part;
    c->offset = (size_t)offset;
    return CURL_SEEKFUNC_OK;
}

static void body_fail_too_large(struct http_call *c)
{
    if (c->announced > c->answer.body.max && !c->encoded)
        http_fail(c, HTTP_TOO_LARGE, "response of %llu bytes exceeds the limit of %zu bytes",
                  (unsigned long long)c->announced, c->answer.body.max);
    else
        http_fail(c, HTTP_TOO_LARGE, "response exceeds the limit of %zu bytes", c->answer.body.max);
}

/* Seconds or an HTTP date (RFC 9110); anything else is ignored. */
static void on_retry_after(struct http_call *c, struct str value)
{
    enum { MAX_SECONDS = 366 * 24 * 3600 };
    char text[64];
    uint64_t seconds;
    int64_t until;
    time_t at;

    if (str_to_u64(value, &seconds)) {
        c->answer.retry_after_ms = (int64_t)(seconds < MAX_SECONDS ? seconds : MAX_SECONDS) * 1000;
        return;
    }
    if (value.n >= sizeof(text))
        return;
    (void)snprintf(text, sizeof(text), "%.*s", STR_ARG(value));
    at = curl_getdate(text, NULL);
    if (at < 0)
        return;
    until = (int64_t)at * 1000 - loop_wall(c->http->loop).ms;
    if (until > MAX_SECONDS * 1000LL)
        until = MAX_SECONDS * 1000LL;
    c->answer.retry_after_ms = until > 0 ? until : 0;
}

static bool is_status_class(const struct http_call *c, long class)
{
    long status = 0;

    return curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK && status / 100 == class;
}

static void on_content_encoding(struct http_call *c, struct str value)
{
    static const struct str understood[] = {STR("gzip"), STR("x-gzip"), STR("deflate")};
    bool is_understood = false;

    if (value.n == 0 || str_eq_nocase(value, STR("identity")) || c->rq.status_decides)
        return;
    for (size_t i = 0; i < ARRAY_SIZE(understood); i++)
        is_understood |= str_eq_nocase(value, understood[i]);
    if (!is_understood || c->encoded || (c->rq.on_data && is_status_class(c, 2)))
        (void)snprintf(c->encoding, sizeof(c->encoding), "%.*s", STR_ARG(value));
    c->encoded = true;
}

static bool on_field(struct http_call *c, struct str name, struct str value)
{
    struct http_answer *a = &c->answer;

    if (str_eq_nocase(name, STR("Location")) && !c->rq.no_redirects && is_status_class(c, 3))
        return http_same_origin(c, value);
    if (c->rq.on_header)
        c->rq.on_header(c->arg, name, value);
    if (str_eq_nocase(name, STR("Content-Length"))) {
        if (!str_to_u64(value, &c->announced))
            c->announced = 0;
    } else if (str_eq_nocase(name, STR("Content-Type"))) {
        (void)snprintf(a->content_type, sizeof(a->content_type), "%.*s", STR_ARG(value));
    } else if (str_eq_nocase(name, STR("Content-Encoding"))) {
        on_content_encoding(c, value);
    } else if (str_eq_nocase(name, STR("Retry-After"))) {
        on_retry_after(c, value);
    }
    return true;
}

/* Each answer of a redirect chain and each interim answer (1xx) starts with a status line. */
static void on_status_line(struct http_call *c)
{
    c->announced = 0;
    c->encoded = false;
    c->encoding[0] = '\0';
    c->in_headers = true;
    c->answer.retry_after_ms = -1;
    c->answer.content_type[0] = '\0';
}

static void body_on_end(struct timer *t)
{
    http_finish(CONTAINER_OF(t, struct http_call, body_end), CURLE_OPERATION_TIMEDOUT);
}

static void http_decide(struct http_call *c)
{
    long status = 0;

    (void)curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status);
    if (!c->rq.status_decides || c->decided || status < 200)
        return;
    c->decided = true;
    c->body_end.fn = body_on_end;
    loop_timer_set(c->http->loop, &c->body_end,
                   mono_add(loop_now(c->http->loop), status <= 299 ? BODY_MS_2XX : BODY_MS));
}

size_t http_on_header(char *p, size_t size, size_t n, void *arg)
{
    struct http_call *c = arg;
    struct str line = {p, size * n};
    const char *colon;

    c->header_bytes += line.n;
    c->last_byte = loop_now(c->http->loop);
    if (c->header_bytes > MAX_HEADER_BYTES) {
        http_fail(c, HTTP_TOO_LARGE, "response headers exceed the limit of 262144 bytes");
        return 0;
    }
    line = str_trim(line);
    if (str_starts(line, STR("HTTP/"))) {
        on_status_line(c);
    } else if (line.n == 0) {
        c->in_headers = false;
        http_decide(c);
        http_stream_headers(c);
        if (!c->streaming && c->announced > c->answer.body.max && !c->head && !c->rq.cut_answer) {
            body_fail_too_large(c);
            return 0;
        }
    } else if ((colon = memchr(line.p, ':', line.n))) {
        size_t at = (size_t)(colon - line.p);
        if (!on_field(c, (struct str){line.p, at}, str_trim((struct str){colon + 1, line.n - at - 1})))
            return 0;
    }
    return size * n;
}

/* False when the body ends here: it was cut on purpose, or the answer has an error. */
static bool body_put(struct http_call *c, struct str piece)
{
    struct buf *body = &c->answer.body;
    /* Reserve Content-Length bytes at once, so that a large body is not moved while it grows. */
    bool reserve = body->n == 0 && c->announced && !c->encoded && !c->rq.cut_answer;
    int r = http_charge(c, size_max(body->n + piece.n, reserve ? c->announced : 0));
    char *room;

    if (r == 0 && reserve)
        r = buf_room(body, c->announced, &room);
    c->cut = c->rq.cut_answer && piece.n > body->max - body->n;
    if (r == 0)
        r = buf_put(body, piece.p, c->cut ? body->max - body->n : piece.n);
    if (r == -EFBIG)
        body_fail_too_large(c);
    else if (r == -EDQUOT)
        http_fail_budget(c, "the response does not fit");
    else if (r == -EAGAIN && c->encoded) /* a part of the piece is decoded already */
        http_fail_budget(c, "no room for an encoded response");
    else if (r == -EAGAIN)
        c->paused = true;
    else if (r < 0)
        http_fail(c, HTTP_MEMORY, "out of memory for the response");
    return r == 0 && !c->cut;
}

static void body_fail_encoded(struct http_call *c, int r)
{
    if (r == -ENOMEM)
        http_fail(c, HTTP_MEMORY, "out of memory for the response");
    else
        http_fail(c, HTTP_BROKEN, "response has Content-Encoding gzip, but its body %s",
                  inflate_error(c->gzip));
}

/* Returns 1 to stop the decoding; the answer then says why. */
static int body_put_decoded(void *arg, struct str out)
{
    return !body_put(arg, out);
}

static bool body_decode(struct http_call *c, struct str piece)
{
    int r;

    if (!c->gzip)
        c->gzip = inflate_new();
    r = c->gzip ? inflate_put(c->gzip, piece, body_put_decoded, c) : -ENOMEM;
    if (r < 0)
        body_fail_encoded(c, r);
    return r == 0;
}

void http_end_body(struct http_call *c)
{
    int r = c->gzip ? inflate_end(c->gzip) : 0;

    if (r < 0)
        body_fail_encoded(c, r);
}

/* The status of an error says more than its body, so that a body that cannot be decoded is no error there. */
static bool body_put_encoded(struct http_call *c, struct str piece)
{
    if (c->encoding[0])
        http_fail(c, HTTP_BROKEN, "response has Content-Encoding %s, an encoding that was not asked for",
                  c->encoding);
    else if (body_decode(c, piece))
        return true;
    if (c->answer.error == HTTP_BROKEN && !is_status_class(c, 2))
        c->cut = true;
    return false;
}

/* A server that sends as fast as curl reads would keep curl, and with it the loop, until the body ends. A
 * large one goes on in the next turn. */
static const double TURN_SECONDS = 0.004;

size_t http_on_body(char *p, size_t size, size_t n, void *arg)
{
    struct http_call *c = arg;
    struct str piece = {p, size * n};

    c->last_byte = loop_now(c->http->loop);
    if (c->streaming && !c->encoded)
        return http_stream_in(c, p, size * n);
    if (c->answer.body.n > LARGE_BYTES && loop_turn_seconds(c->http->loop) > TURN_SECONDS) {
        http_call_soon(c);
        c->paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    if (c->encoded ? body_put_encoded(c, piece) : body_put(c, piece))
        return piece.n;
    return c->paused ? CURL_WRITEFUNC_PAUSE : 0;
}
