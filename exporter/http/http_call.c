/* The life of a call: it is held by its gate or begun, its stream flushed, its redirects followed, and ended
 * once. Owns the calls of a client; the loop's multi handle owns the connections and the DNS cache. Loop
 * thread, and never inside of curl's callbacks. */
#include "exporter/base/inflate.h"
#include "exporter/base/invariant.h"
#include "exporter/base/secret.h"
#include "exporter/http/http_internal.h"

#include <errno.h>
#include <stdio.h>

enum { SHOWN_BYTES = 64 << 10 /* of an error's body, at most */ };

static struct http_call *call_free(struct http_call *c)
{
    if (!c)
        return NULL;
    curl_easy_cleanup(c->easy);
    curl_slist_free_all(c->headers);
    curl_slist_free_all(c->connect_to);
    curl_url_cleanup(c->url);
    curl_url_cleanup(c->next_url);
    buf_done(&c->location);
    c->gzip = inflate_free(c->gzip);
    buf_done(&c->answer.body);
    free(c);
    return NULL;
}
DEFINE_CLEANUP(struct http_call, call_free)

/* Ends the transfer; the call remains for `done`. */
static void call_leave(struct http_call *c)
{
    struct loop *l = c->http->loop;
    struct http_share *s = c->share;

    loop_timer_clear(l, &c->soon);
    loop_timer_clear(l, &c->idle);
    loop_share_leave(l, &c->wait);
    if (c->gone)
        *c->gone = true;
    c->gone = NULL;
    /* Also removes an unread message of the transfer from curl's queue. */
    (void)curl_multi_remove_handle(c->http->multi, c->easy);
    curl_easy_cleanup(c->easy);
    c->easy = NULL;
    LIST_REMOVE(c, entry);
    if (c->gate)
        c->gate->leave(c);
    s->call = NULL;
    s->waiting_for = 0;
    s->evicted = false;
    if (s == &c->own_share)
        http_share_done(s);
}

struct http_call *http_cancel(struct http_call *c)
{
    if (!c || !c->easy) /* `done` is running */
        return NULL;
    call_leave(c);
    return call_free(c);
}

/* Keeps what on_data has not taken of `got` for a later turn. */
static void stream_keep(struct http_call *c, struct buf *got, size_t taken)
{
    invariant(taken <= got->n && c->answer.body.n == 0);
    if (taken == got->n)
        return;
    memmove(got->p, got->p + taken, got->n - taken);
    got->n -= taken;
    buf_done(&c->answer.body);
    c->answer.body = buf_take(got);
    http_call_line_up(c);
}

/* Passes the buffered bytes to on_data, which counts what it does with them. False if that ended the call. */
static bool stream_flush(struct http_call *c)
{
    BUF_AUTO(got, 0);
    bool gone = false;
    size_t taken;

    if (!c->streaming || (!c->first_piece_due && c->answer.body.n == 0))
        return true;
    c->first_piece_due = false;
    got = buf_take(&c->answer.body);
    c->gone = &gone;
    taken = c->rq.on_data(c->arg, buf_str(&got));
    if (gone)
        return false;
    c->gone = NULL;
    stream_keep(c, &got, taken);
    return true;
}

static void fill_answer(struct http_call *c, CURLcode code)
{
    enum { MAX_RETRY_SECONDS = 366 * 24 * 3600 };
    struct http_response *a = &c->answer;
    curl_off_t retry_after = c->retry_after_is_bad ? 0 : http_info_off(c, CURLINFO_RETRY_AFTER);
    size_t shown, left;
    char *type = NULL;

    http_explain_failure(c, code);
    a->seconds = http_call_seconds(c);
    a->sent = http_call_sent(c);
    a->received = http_call_received(c);
    a->retry_after_ms =
        retry_after > 0 ? (int64_t)(retry_after < MAX_RETRY_SECONDS ? retry_after : MAX_RETRY_SECONDS) * 1000
                        : -1;
    if (curl_easy_getinfo(c->easy, CURLINFO_CONTENT_TYPE, &type) == CURLE_OK && type)
        (void)snprintf(a->content_type, sizeof(a->content_type), "%s", type);
    if (a->error == HTTP_OK)
        a->status = http_call_status(c);
    else
        buf_done(&a->body); /* incomplete */
    secret_hide_text(a->reason);
    /* The body of an error is shown, cut short. It is read before that, since half of a token would not be
     * found. */
    shown = a->error == HTTP_OK && a->status / 100 != 2 ? size_min(a->body.n, SHOWN_BYTES) : 0;
    left = shown ? secret_hide(a->body.p, shown) : 0;
    if (left < shown) {
        memmove(a->body.p + left, a->body.p + shown, a->body.n - shown);
        a->body.n -= shown - left;
    }
}

/* False if curl refuses the call. */
static bool call_begin(struct http_call *c)
{
    struct loop *l = c->http->loop;

    if (curl_multi_add_handle(c->http->multi, c->easy) != CURLM_OK)
        return false;
    c->last_byte = loop_now(l);
    if (c->rq.idle_timeout_ms > 0)
        loop_timer_set(l, &c->idle, mono_add(c->last_byte, c->rq.idle_timeout_ms));
    return true;
}

/* The redirect's transfer has ended: sends the request to next_url. False if the call ends instead, with its
 * error. */
static bool call_follow(struct http_call *c)
{
    int64_t left = mono_diff(loop_now(c->http->loop), c->ends_at);

    invariant(c->hops.n < HTTP_MAX_REDIRECTS);
    c->cut = false;
    if (left <= 0) {
        http_call_fail(c, CAUSE_DEADLINE, "timed out after %.1f s, before a redirect was followed",
                       http_call_seconds(c));
        return false;
    }
    c->hops = (struct hops){.n = c->hops.n + 1,
                            .seconds = http_call_seconds(c),
                            .sent = http_call_sent(c),
                            .received = http_call_received(c)};
    (void)curl_multi_remove_handle(c->http->multi, c->easy);
    curl_url_cleanup(c->url);
    c->url = TAKE_PTR(c->next_url);
    c->curl_error[0] = '\0';
    if (!http_set_hop(c, left) || !call_begin(c)) {
        http_call_fail(c, CAUSE_REDIRECT_URL, "redirect to a URL that libcurl does not take");
        return false;
    }
    return true;
}

/* The handle and the list entry are released first, so that `done` may start and cancel calls or free the
 * client. */
static void http_finish(struct http_call *c, CURLcode code)
{
    bool is_cut = c->cut && code == CURLE_WRITE_ERROR;

    if (!stream_flush(c))
        return;
    if (c->streaming && c->answer.body.n) { /* call_go_on() comes back */
        loop_timer_clear(c->http->loop, &c->idle);
        c->is_over = true;
        c->over_code = code;
        return;
    }
    if (c->next_url && (code == CURLE_OK || is_cut)) {
        if (call_follow(c))
            return;
        code = CURLE_ABORTED_BY_CALLBACK;
    } else if (c->decided || is_cut) {
        http_answer_set_cause(&c->answer, CAUSE_NONE);
        c->answer.reason[0] = '\0';
        code = CURLE_OK;
    } else if (code == CURLE_OK && http_call_seconds(c) > (double)c->rq.timeout_ms / 1e3) {
        code = CURLE_OPERATION_TIMEDOUT; /* the agent stood still; curl checks no deadline at the end */
    } else if (code == CURLE_OK && c->gzip) {
        http_body_check(c, inflate_end(c->gzip));
    }
    fill_answer(c, code);
    call_leave(c);
    c->done(c->arg, &c->answer);
    (void)call_free(c);
}

void http_on_transfer_done(CURL *easy, CURLcode code)
{
    struct http_call *c = NULL;

    if (curl_easy_getinfo(easy, CURLINFO_PRIVATE, &c) == CURLE_OK && c)
        http_finish(c, code);
}

/* Begins the transfer if the gate lets it. */
static void call_ask_gate(struct http_call *c)
{
    int r = c->gate->apply(c);

    if (r == -EAGAIN)
        return;
    loop_timer_clear(c->http->loop, &c->idle);
    c->is_held = false;
    if (r < 0 || !call_begin(c))
        http_finish(c, CURLE_FAILED_INIT);
}

static void on_soon(struct timer *t)
{
    struct http_call *c = CONTAINER_OF(t, struct http_call, soon);

    if (c->share->evicted) {
        http_fail_budget(c, "other responses are waiting");
        http_finish(c, CURLE_ABORTED_BY_CALLBACK);
        return;
    }
    if (c->is_held)
        call_ask_gate(c);
    else if (c->paused) /* there may be memory now */
        http_call_line_up(c);
}

static void call_go_on(struct http_call *c)
{
    CURLcode code;

    if (c->is_over) {
        http_finish(c, c->over_code);
        return;
    }
    if (!stream_flush(c) || !c->paused)
        return;
    c->paused = false;
    /* Calls http_on_body() at once; this is the only report of a failure there. */
    code = curl_easy_pause(c->easy, CURLPAUSE_CONT);
    if (code != CURLE_OK)
        http_finish(c, code);
}

static void on_share(struct share_wait *w)
{
    call_go_on(CONTAINER_OF(w, struct http_call, wait));
}

static void on_idle(struct timer *t)
{
    struct http_call *c = CONTAINER_OF(t, struct http_call, idle);
    mono_ms until;

    if (c->streaming && c->answer.body.n) /* it is we who are slow */
        c->last_byte = loop_now(c->http->loop);
    until = mono_add(c->last_byte, c->rq.idle_timeout_ms);
    if (c->is_held) {
        c->gate->late(c);
    } else if (!c->decided && mono_before(loop_now(c->http->loop), until)) {
        loop_timer_set(c->http->loop, t, until);
        return;
    }
    http_call_fail(c, CAUSE_IDLE, "no data received for %.1f s", (double)c->rq.idle_timeout_ms / 1e3);
    http_finish(c, CURLE_OPERATION_TIMEDOUT);
}

static void call_hold(struct http_call *c, const struct http_gate *gate)
{
    c->gate = gate;
    c->is_held = true;
    gate->join(c);
    loop_timer_set(c->http->loop, &c->idle, c->ends_at);
    http_call_soon(c);
}

int http_call_start(struct http_call **ret, struct http *h, const struct http_request *rq,
                    const struct http_gate *gate, http_done_fn done, void *arg)
{
    CLEANUP(cleanup_call_free) struct http_call *c = NULL;
    struct str token = rq->bearer;

    if (!http_is_url(str_of(rq->url)) || rq->timeout_ms <= 0 ||
        (token.n && (secret_token(rq->bearer, &token) || token.n != rq->bearer.n)))
        return -EINVAL;
    c = xcalloc(1, sizeof(*c) + rq->body_parts * sizeof(c->parts[0]));
    c->http = h;
    c->easy = curl_easy_init();
    c->rq = *rq;
    c->rq.cut_answer = rq->cut_answer || rq->status_decides;
    c->done = done;
    c->arg = arg;
    c->ends_at = mono_add(loop_now(h->loop), rq->timeout_ms);
    c->soon.fn = on_soon;
    c->idle.fn = on_idle;
    c->wait.fn = on_share;
    buf_init(&c->answer.body, rq->max_answer);
    for (size_t i = 0; i < rq->body_parts; i++) {
        c->parts[i] = rq->body[i];
        c->body_bytes += rq->body[i].n;
    }
    if (!http_set_up(c) || (!gate && !call_begin(c)))
        return -EINVAL;
    LIST_INSERT_HEAD(&h->calls, c, entry);
    c->share = rq->share ? rq->share : &c->own_share;
    http_share_enter(c->share, h);
    c->share->call = c;
    if (gate)
        call_hold(c, gate);
    *ret = TAKE_PTR(c);
    return 0;
}
