/* Owns the easy handles and the calls in progress; the loop's multi handle owns the connections and the DNS
 * cache.
 *
 * curl frees a handle's transfer buffers after a success, so an idle handle costs a few KiB. It may keep them
 * after a failure or a cancel, so such handles are not reused. */
#include "exporter/base/http_internal.h"
#include "exporter/base/secret.h"

#include <errno.h>
#include <strings.h>

enum {
    MAX_IDLE_HANDLES = 16,
    /* Idle and busy together; with more, curl closes idle ones. */
    MAX_CONNECTIONS = 512,
    SHOWN_BYTES = 64 << 10, /* of an error's body, at most */
};

static void on_transfer_done(void *arg, CURL *easy, CURLcode code);

/* Go programs, such as the reference agent, also read HTTP_PROXY in upper case. curl does not, because in
 * a CGI program it holds a request's `Proxy:` header (httpoxy), so it is ignored under CGI. */
static int adopt_upper_case_proxy(void)
{
    const char *proxy = getenv("HTTP_PROXY");

    if (!proxy || getenv("http_proxy") || getenv("REQUEST_METHOD"))
        return 0;
    return setenv("http_proxy", proxy, 1) < 0 ? -ENOMEM : 0;
}

int http_new(struct http **ret, struct loop *loop, const char *user_agent)
{
    CLEANUP(cleanup_http_free) struct http *h = xcalloc(1, sizeof(*h));

    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return -ENOMEM;
    h->user_agent = str_dup(str_of(user_agent));
    h->idle = xcalloc(MAX_IDLE_HANDLES, sizeof(CURL *));
    if (!h->user_agent || !h->idle || adopt_upper_case_proxy() < 0)
        return -ENOMEM;
    TAILQ_INIT(&h->shares);
    h->ca_file = getenv("SSL_CERT_FILE");
    h->ca_dir = getenv("SSL_CERT_DIR");
    h->loop = loop;
    http_set_budget(h, 0);
    h->multi = loop_multi(loop, on_transfer_done, h);
    (void)curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, (long)MAX_CONNECTIONS);
    *ret = TAKE_PTR(h);
    return 0;
}

struct http *http_free(struct http *h)
{
    if (!h)
        return NULL;
    while (!LIST_EMPTY(&h->calls))
        (void)http_cancel(LIST_FIRST(&h->calls));
    while (h->n_idle)
        curl_easy_cleanup(h->idle[--h->n_idle]);
    free(h->idle);
    free(h->user_agent);
    free(h);
    return NULL;
}

static CURL *take_handle(struct http *h)
{
    return h->n_idle ? h->idle[--h->n_idle] : curl_easy_init();
}

static void give_handle(struct http *h, CURL *easy, bool clean)
{
    if (!clean || h->n_idle == MAX_IDLE_HANDLES) {
        curl_easy_cleanup(easy);
        return;
    }
    curl_easy_reset(easy);
    h->idle[h->n_idle++] = easy;
}

static struct http_call *call_free(struct http_call *c)
{
    if (!c)
        return NULL;
    http_tear_down(c);
    buf_done(&c->answer.body);
    free(c->joined);
    free(c);
    return NULL;
}
DEFINE_CLEANUP(struct http_call, call_free)

static struct http_call *call_new(struct http *h, const struct http_request *rq)
{
    struct http_call *c = xcalloc(1, sizeof(*c) + rq->body_parts * sizeof(c->parts[0]));

    c->http = h;
    c->rq = *rq;
    c->rq.cut_answer = rq->cut_answer || rq->status_decides;
    c->answer.retry_after_ms = -1;
    buf_init(&c->answer.body, rq->max_answer);
    c->n_parts = rq->body_parts;
    for (size_t i = 0; i < rq->body_parts; i++) {
        c->parts[i] = rq->body[i];
        c->body_bytes += rq->body[i].n;
    }
    return c;
}

static bool is_http(const char *url)
{
    return strncasecmp(url, "http://", 7) == 0 || strncasecmp(url, "https://", 8) == 0;
}

int http_start(struct http_call **ret, struct http *h, const struct http_request *rq, http_done_fn done,
               void *arg)
{
    CLEANUP(cleanup_call_free) struct http_call *c = NULL;
    CURL *easy;
    int r;

    if (!is_http(rq->url) || rq->timeout_ms <= 0)
        return -EINVAL;
    c = call_new(h, rq);
    c->done = done;
    c->arg = arg;
    http_secrets_used(rq);
    easy = take_handle(h);
    r = http_set_up(c, easy, rq);
    if (r == 0)
        http_stream_start(c);
    if (r == 0 && curl_multi_add_handle(h->multi, easy) != CURLM_OK)
        r = -ENOMEM;
    if (r < 0) {
        http_stream_stop(c);
        give_handle(h, easy, false);
        return r;
    }
    c->easy = easy;
    LIST_INSERT_HEAD(&h->calls, c, entry);
    http_share_join(rq->share ? rq->share : &c->own_share, c);
    *ret = TAKE_PTR(c);
    return 0;
}

struct http_call *http_cancel(struct http_call *c)
{
    if (!c || c->finishing)
        return NULL;
    http_stream_stop(c);
    loop_timer_clear(c->http->loop, &c->body_end);
    /* Also removes an unread message of the transfer from curl's queue. */
    (void)curl_multi_remove_handle(c->http->multi, c->easy);
    give_handle(c->http, c->easy, false);
    LIST_REMOVE(c, entry);
    http_share_leave(c);
    return call_free(c);
}

/* The body of an error is shown, cut short. It is read before that, since half of a token would not be
 * found. */
static void hide_secrets(struct buf *body)
{
    size_t n = size_min(body->n, SHOWN_BYTES), left = n ? secret_hide(body->p, n) : 0;

    if (left == n)
        return;
    memmove(body->p + left, body->p + n, body->n - n);
    body->n -= n - left;
}

static void fill_answer(struct http_call *c, CURLcode code)
{
    struct http_answer *a = &c->answer;
    curl_off_t us = 0, sent = 0, received = 0;

    http_explain(c, code);
    (void)curl_easy_getinfo(c->easy, CURLINFO_TOTAL_TIME_T, &us);
    (void)curl_easy_getinfo(c->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
    (void)curl_easy_getinfo(c->easy, CURLINFO_SIZE_DOWNLOAD_T, &received);
    a->seconds = (double)us / 1e6;
    a->sent = (uint64_t)sent;
    a->received = (uint64_t)received;
    if (a->error == HTTP_OK)
        (void)curl_easy_getinfo(c->easy, CURLINFO_RESPONSE_CODE, &a->status);
    else
        buf_done(&a->body); /* incomplete */
    secret_hide_text(a->reason);
    if (a->error == HTTP_OK && a->status / 100 != 2)
        hide_secrets(&a->body);
}

/* The handle and the list entry are released first, so that `done` may start and cancel calls or free the
 * client. */
void http_finish(struct http_call *c, CURLcode code)
{
    bool clean = code == CURLE_OK;

    if (!http_stream_end(c))
        return;
    http_stream_stop(c);
    loop_timer_clear(c->http->loop, &c->body_end);
    if (c->decided || (c->cut && code == CURLE_WRITE_ERROR)) {
        c->answer.error = HTTP_OK;
        c->answer.reason[0] = '\0';
        code = CURLE_OK;
    } else if (code == CURLE_OK) {
        http_end_body(c);
    }
    fill_answer(c, code);
    (void)curl_multi_remove_handle(c->http->multi, c->easy);
    give_handle(c->http, c->easy, clean);
    LIST_REMOVE(c, entry);
    http_share_leave(c);
    c->finishing = true;
    c->done(c->arg, &c->answer);
    (void)call_free(c);
}

static void on_transfer_done(void *arg, CURL *easy, CURLcode code)
{
    struct http_call *c = NULL;

    (void)arg;
    if (curl_easy_getinfo(easy, CURLINFO_PRIVATE, &c) == CURLE_OK && c)
        http_finish(c, code);
}
