/* Streamed answers and the idle timeout.
 *
 * curl's callback only buffers the data; a timer passes it to on_data in the loop's next turn, so that
 * on_data may start and cancel calls, which curl forbids inside its callbacks. While the buffer is full,
 * the transfer is paused. */
#include "exporter/base/http_internal.h"

#include "exporter/base/clock.h"

#include <errno.h>
#include <stdio.h>

enum {
    WINDOW = 256 << 10, /* bytes buffered at most; one piece of curl's may exceed it */
};

static void on_deliver(struct timer *t);

static void on_idle(struct timer *t)
{
    struct http_call *c = CONTAINER_OF(t, struct http_call, idle);
    mono_ms until = mono_add(c->last_byte, c->rq.idle_timeout_ms);

    if (mono_before(loop_now(c->http->loop), until)) {
        loop_timer_set(c->http->loop, t, until);
        return;
    }
    http_fail(c, HTTP_TIMEOUT, "no data received for %.1f s", (double)c->rq.idle_timeout_ms / 1e3);
    http_finish(c, CURLE_OPERATION_TIMEDOUT);
}

void http_stream_start(struct http_call *c)
{
    struct loop *l = c->http->loop;

    c->deliver.fn = on_deliver;
    c->idle.fn = on_idle;
    c->last_byte = loop_now(l);
    if (c->rq.idle_timeout_ms > 0)
        loop_timer_set(l, &c->idle, mono_add(c->last_byte, c->rq.idle_timeout_ms));
}

void http_stream_stop(struct http_call *c)
{
    loop_timer_clear(c->http->loop, &c->deliver);
    loop_timer_clear(c->http->loop, &c->idle);
    if (c->gone)
        *c->gone = true;
    c->gone = NULL;
}

void http_call_soon(struct http_call *c)
{
    if (!c->deliver.place)
        loop_timer_set(c->http->loop, &c->deliver, loop_now(c->http->loop));
}

void http_stream_headers(struct http_call *c)
{
    long status = 0;

    if (!c->rq.on_data || curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &status) != CURLE_OK ||
        status / 100 != 2)
        return;
    c->streaming = c->stream_begun = true;
    c->answer.body.max = WINDOW + CURL_MAX_READ_SIZE;
    http_call_soon(c);
}

size_t http_stream_in(struct http_call *c, const char *p, size_t n)
{
    if (c->answer.body.n && c->answer.body.n + n > WINDOW) {
        c->paused = true;
        return CURL_WRITEFUNC_PAUSE;
    }
    if (buf_put(&c->answer.body, p, n) == 0) {
        http_call_soon(c);
        return n;
    }
    http_fail(c, HTTP_MEMORY, "out of memory for the response");
    return 0;
}

/* False when on_data ended the call. */
static bool stream_pass(struct http_call *c, struct str piece)
{
    bool gone = false;

    c->gone = &gone;
    c->rq.on_data(c->arg, piece);
    if (!gone)
        c->gone = NULL;
    return !gone;
}

bool http_stream_end(struct http_call *c)
{
    BUF_AUTO(got, 0);

    if (c->stream_begun) {
        c->stream_begun = false;
        if (!stream_pass(c, STR("")))
            return false;
    }
    if (!c->streaming || c->answer.body.n == 0)
        return true;
    got = buf_take(&c->answer.body);
    return stream_pass(c, buf_str(&got));
}

static void on_deliver(struct timer *t)
{
    struct http_call *c = CONTAINER_OF(t, struct http_call, deliver);
    CURLcode code;

    if (c->share->evicted) {
        http_fail_budget(c, "other responses are waiting");
        http_finish(c, CURLE_ABORTED_BY_CALLBACK);
        return;
    }
    if (!http_stream_end(c) || !c->paused)
        return;
    c->paused = false;
    /* Calls http_stream_in() at once; this is the only report of a failure there. */
    code = curl_easy_pause(c->easy, CURLPAUSE_CONT);
    if (code != CURLE_OK)
        http_finish(c, code);
}
