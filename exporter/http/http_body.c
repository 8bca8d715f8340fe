/* The body of an answer: kept, decoded, skipped or buffered for a stream, always within the call's limit, its
 * share of the budget and its share of the turn. Owns nothing. curl's callback, on the loop. */
#include "exporter/base/inflate.h"
#include "exporter/http/http_internal.h"

#include <errno.h>
#include <stdio.h>

enum {
    CALL_TURN_BYTES = 256 << 10, /* worked on for one call in one turn of the loop */
};

/* ---- The share of a turn ---- */

static size_t call_bytes_left(struct http_call *c)
{
    struct loop *l = c->http->loop;

    if (c->turn != loop_turns(l)) {
        c->turn = loop_turns(l);
        c->turn_bytes = 0;
    }
    return size_min(loop_bytes_left(l), CALL_TURN_BYTES - size_min(c->turn_bytes, CALL_TURN_BYTES));
}

static void call_spend(struct http_call *c, size_t bytes)
{
    loop_spend(c->http->loop, bytes);
    c->turn_bytes += bytes;
}

/* Whether this turn has a share for the next piece of the call's body. */
static bool call_may_work(struct http_call *c)
{
    return call_bytes_left(c) >= LOOP_PIECE_BYTES;
}

void http_call_line_up(struct http_call *c)
{
    loop_share_wait(c->http->loop, &c->wait);
}

/* ---- Bytes ---- */

/* bytes: how many were announced; 0 if that is not known. */
static void fail_size(struct http_call *c, uint64_t bytes)
{
    BUF_AUTO(text, HTTP_REASON_MAX_BYTES);

    buf_puts(&text, "response");
    if (bytes)
        buf_printf(&text, " of %llu bytes", (unsigned long long)bytes);
    buf_printf(&text, " exceeds the limit of %zu bytes", c->rq.max_answer);
    if (c->hops.n || c->next_url)
        buf_puts(&text, ", which includes those of redirects");
    http_call_fail_with(c, CAUSE_BODY_LIMIT, &text);
}

/* A redirect's body is read, so that the next request can use the connection, but not kept. It counts
 * against the limit of the whole call. False if it ends there. */
static bool redirect_skip(struct http_call *c, size_t bytes)
{
    struct buf *body = &c->answer.body;

    call_spend(c, bytes);
    if (bytes <= body->max) {
        body->max -= bytes;
        return true;
    }
    body->max = 0;
    c->cut = c->rq.cut_answer;
    if (!c->cut)
        fail_size(c, 0);
    return false;
}

/* 1 when the body does not go on: it was cut on purpose, the answer has an error, or the transfer is paused
 * until there is memory for this piece; else 0. */
static int body_put(struct http_call *c, struct str piece)
{
    struct buf *body = &c->answer.body;
    curl_off_t announced =
        c->encoded || c->rq.cut_answer ? 0 : http_info_off(c, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T);
    size_t need = body->n == 0 && announced > 0 ? (size_t)announced : body->n + piece.n;
    char *room;
    int r;

    if (announced > 0 && (uint64_t)announced > body->max) {
        fail_size(c, (uint64_t)announced);
        return 1;
    }
    r = http_share_reserve_body(c, need);
    /* Content-Length bytes at once, so that a large body is not moved while it grows. */
    if (r == 0 && body->n == 0 && announced > 0)
        r = buf_reserve(body, need, &room);
    c->cut = c->rq.cut_answer && piece.n > body->max - body->n;
    if (r == 0) {
        buf_put(body, piece.p, c->cut ? body->max - body->n : piece.n);
        r = buf_failed(body);
    }
    if (r == -EFBIG)
        fail_size(c, 0);
    else if (r == -EDQUOT)
        http_fail_budget(c, "the response does not fit");
    else if (r == -EAGAIN)
        c->paused = true;
    else if (r < 0)
        http_call_fail(c, CAUSE_ALLOCATION, "out of memory for the response");
    return r < 0 || c->cut;
}

/* Reports what is wrong with an encoded body; r: of the decoder. */
void http_body_check(struct http_call *c, int r)
{
    if (r < 0)
        http_call_fail(c, CAUSE_ENCODED_BODY, "response has Content-Encoding gzip, but its body %s",
                       inflate_error(c->gzip));
}

static void body_pause(struct http_call *c)
{
    c->paused = true;
    http_call_line_up(c);
}

/* Decodes until *rest is used up, the call's share of the turn is, or the body does not go on. One read of
 * 64 KiB can become 64 MiB, so it asks before each step. 0 once *rest is used up, else 1 or -EBADMSG. */
static int response_unpack(struct http_call *c, struct str *rest)
{
    size_t before;
    int r;

    for (;;) {
        if (c->unpacked.n && body_put(c, c->unpacked) != 0)
            return 1;
        c->unpacked.n = 0;
        if (!call_may_work(c)) {
            body_pause(c);
            return 1;
        }
        before = rest->n;
        r = inflate_next(c->gzip, rest, &c->unpacked);
        if (r <= 0)
            return r;
        call_spend(c, size_max(before - rest->n, c->unpacked.n));
    }
}

/* The status of an error says more than its body, so that a body that cannot be decoded is no error there. */
static bool body_put_encoded(struct http_call *c, struct str piece)
{
    size_t again = size_min(c->taken, piece.n);
    struct str rest = {piece.p + again, piece.n - again};
    int r = -EBADMSG;

    if (c->encoding[0]) {
        http_call_fail(c, CAUSE_ENCODING,
                       "response has Content-Encoding %s, an encoding that was not asked for", c->encoding);
    } else {
        if (!c->gzip)
            c->gzip = inflate_new();
        r = response_unpack(c, &rest);
        http_body_check(c, r);
    }
    /* curl delivers a piece at which it was paused again, perhaps in other parts. */
    c->taken -= again;
    if (c->paused)
        c->taken += piece.n - rest.n;
    if (c->answer.error == HTTP_BROKEN && http_call_status(c) / 100 != 2)
        c->cut = true;
    return r == 0;
}

/* The callback only buffers a stream's data. A later turn of the loop that has a share for it passes it to
 * on_data, which may start and cancel calls; curl forbids that inside its callbacks. While the buffer is
 * full, the transfer is paused. */
static bool stream_put(struct http_call *c, struct str piece)
{
    c->paused = c->answer.body.n && c->answer.body.n + piece.n > HTTP_WINDOW_BYTES;
    if (c->answer.body.n == 0) /* more pieces mostly follow at once */
        buf_expect(&c->answer.body, 4 * piece.n);
    if (!c->paused)
        buf_put(&c->answer.body, piece.p, piece.n);
    if (buf_failed(&c->answer.body) < 0)
        http_call_fail(c, CAUSE_ALLOCATION, "out of memory for the response");
    http_call_line_up(c);
    return !c->paused && c->answer.error == HTTP_OK;
}

/* A server that sends as fast as curl reads would keep curl, and with it the loop, until the body ends. */
size_t http_on_body(char *p, size_t size, size_t n, void *arg)
{
    struct http_call *c = arg;
    struct str piece = {p, size * n};
    bool ok = false;

    c->last_byte = loop_now(c->http->loop);
    if (c->streaming && !c->encoded) {
        ok = stream_put(c, piece);
    } else if (!call_may_work(c)) {
        body_pause(c);
    } else if (c->next_url) {
        ok = redirect_skip(c, piece.n);
    } else if (c->encoded) {
        ok = body_put_encoded(c, piece);
    } else {
        call_spend(c, piece.n);
        ok = body_put(c, piece) == 0;
    }
    if (ok)
        return piece.n;
    return c->paused ? CURL_WRITEFUNC_PAUSE : 0;
}
