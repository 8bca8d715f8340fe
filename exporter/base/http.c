/* Owns the easy handles and the calls under way; connections and the DNS cache live in the loop's multi handle.
 *
 * curl frees a handle's two transfer buffers when its transfer ends well, so an idle handle costs a few KiB. After a
 * failure or a cancel it may keep them, so such handles are not used again. */
#include "exporter/base/http_internal.h"

#include <errno.h>
#include <stdio.h>
#include <strings.h>

enum {
    MAX_IDLE_HANDLES = 16,
    MAX_IDLE_CONNECTIONS = 64,
    CONNECT_TIMEOUT_MS = 10000,
    MAX_REDIRECTS = 5,
    CA_CACHE_SECONDS = 300,
    /* A body this small goes out in the same packet as the headers. */
    JOIN_BELOW = 16 << 10,
    LARGE_BODY = 256 << 10,
    LARGE_BUFFER = 512 << 10,
    READ_BUFFER = 64 << 10,
};

/* What every call sends: JSON is wanted, uncompressed (decoding costs more than a local network saves, yet a server
 * that compresses all the same is understood), and no round trip is spent on `Expect: 100-continue`. */
static struct curl_slist common_headers[] = {
    {.data = (char *)(uintptr_t) "Accept: application/json", .next = &common_headers[1]},
    {.data = (char *)(uintptr_t) "Accept-Encoding: identity", .next = &common_headers[2]},
    {.data = (char *)(uintptr_t) "Expect:", .next = NULL},
};

static void on_transfer_done(void *arg, CURL *easy, CURLcode code);

/* Go programs, and so what people set for the reference agent, also read HTTP_PROXY in upper case. curl does not,
 * because a CGI program would take it from a request's `Proxy:` header (httpoxy); so it is not done under CGI. */
static int adopt_upper_case_proxy(void)
{
    const char *proxy = getenv("HTTP_PROXY");

    if (!proxy || getenv("http_proxy") || getenv("REQUEST_METHOD"))
        return 0;
    return setenv("http_proxy", proxy, 1) < 0 ? -ENOMEM : 0;
}

int http_new(struct http **ret, struct loop *loop, const char *user_agent)
{
    CLEANUP(cleanup_http_free) struct http *h = calloc(1, sizeof(*h));

    if (!h || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return -ENOMEM;
    h->user_agent = str_dup(str_of(user_agent));
    h->idle = calloc(MAX_IDLE_HANDLES, sizeof(CURL *));
    if (!h->user_agent || !h->idle || adopt_upper_case_proxy() < 0)
        return -ENOMEM;
    h->ca_file = getenv("SSL_CERT_FILE");
    h->ca_dir = getenv("SSL_CERT_DIR");
    h->loop = loop;
    h->multi = loop_multi(loop, on_transfer_done, h);
    (void)curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, (long)MAX_IDLE_CONNECTIONS);
    *ret = TAKE_PTR(h);
    return 0;
}

struct http *http_free(struct http *h)
{
    if (!h)
        return NULL;
    while (h->calls)
        (void)http_cancel(h->calls);
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
    buf_done(&c->answer.body);
    free(c->joined);
    free(c);
    return NULL;
}
DEFINE_CLEANUP(struct http_call, call_free)

static void unlink_call(struct http_call *c)
{
    if (c->prev)
        c->prev->next = c->next;
    else
        c->http->calls = c->next;
    if (c->next)
        c->next->prev = c->prev;
}

static void link_call(struct http *h, struct http_call *c)
{
    c->next = h->calls;
    if (c->next)
        c->next->prev = c;
    h->calls = c;
}

#define SET(option, value)                                           \
    do {                                                             \
        CURLcode code_ = curl_easy_setopt(easy, option, value);      \
        if (code_ != CURLE_OK)                                       \
            return code_ == CURLE_OUT_OF_MEMORY ? -ENOMEM : -EINVAL; \
    } while (0)

static int set_limits(const struct http_call *c, CURL *easy)
{
    long connect_ms = c->timeout_ms < CONNECT_TIMEOUT_MS ? (long)c->timeout_ms : CONNECT_TIMEOUT_MS;

    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_TIMEOUT_MS, (long)c->timeout_ms);
    SET(CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
    /* A name server that does not answer must not hold the loop until the resolver's thread has given up. */
    SET(CURLOPT_QUICK_EXIT, 1L);
    SET(CURLOPT_BUFFERSIZE, (long)READ_BUFFER);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    /* One connection a call: in HTTP/2 a large body would share its connection, and its fate, with others. */
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_FOLLOWLOCATION, 1L);
    SET(CURLOPT_MAXREDIRS, (long)MAX_REDIRECTS);
    SET(CURLOPT_POSTREDIR, (long)(CURL_REDIR_POST_301 | CURL_REDIR_POST_302));
    return 0;
}

static int set_tls(const struct http *h, CURL *easy)
{
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    SET(CURLOPT_CA_CACHE_TIMEOUT, (long)CA_CACHE_SECONDS);
    if (h->ca_file || h->ca_dir) {
        SET(CURLOPT_CAINFO, h->ca_file);
        SET(CURLOPT_CAPATH, h->ca_dir);
    }
    return 0;
}

/* The token as curl wants it, terminated; the copy is wiped. */
static int set_bearer(CURL *easy, struct str bearer)
{
    char *token;
    CURLcode code;

    for (size_t i = 0; i < bearer.n; i++)
        if ((unsigned char)bearer.p[i] <= ' ' || bearer.p[i] == 0x7f)
            return -EINVAL;
    if (bearer.n == 0)
        return 0;
    token = str_dup(bearer);
    if (!token)
        return -ENOMEM;
    code = curl_easy_setopt(easy, CURLOPT_XOAUTH2_BEARER, token);
    explicit_bzero(token, bearer.n);
    free(token);
    if (code != CURLE_OK)
        return -ENOMEM;
    SET(CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
    return 0;
}

static int join_body(struct http_call *c)
{
    char *at = malloc(c->body_bytes + 1);

    if (!at)
        return -ENOMEM;
    c->joined = at;
    for (size_t i = 0; i < c->n_parts; i++)
        if (c->parts[i].n)
            at = mempcpy(at, c->parts[i].p, c->parts[i].n);
    return 0;
}

static int set_body(struct http_call *c, CURL *easy)
{
    SET(CURLOPT_POST, 1L);
    SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->body_bytes);
    if (c->body_bytes < JOIN_BELOW) {
        if (join_body(c) < 0)
            return -ENOMEM;
        SET(CURLOPT_POSTFIELDS, c->joined);
        return 0;
    }
    if (c->body_bytes >= LARGE_BODY)
        SET(CURLOPT_UPLOAD_BUFFERSIZE, (long)LARGE_BUFFER);
    SET(CURLOPT_READFUNCTION, http_on_read);
    SET(CURLOPT_READDATA, c);
    SET(CURLOPT_SEEKFUNCTION, http_on_seek);
    SET(CURLOPT_SEEKDATA, c);
    return 0;
}

static int set_method(struct http_call *c, CURL *easy, const char *method)
{
    bool has_body = c->n_parts > 0;

    if (!method)
        method = has_body ? "POST" : "GET";
    if (has_body || strcmp(method, "POST") == 0) {
        int r = set_body(c, easy);
        if (r < 0)
            return r;
    }
    c->head = strcmp(method, "HEAD") == 0;
    if (c->head)
        SET(CURLOPT_NOBODY, 1L);
    else if (strcmp(method, has_body ? "POST" : "GET") != 0 && strcmp(method, "POST") != 0)
        SET(CURLOPT_CUSTOMREQUEST, method);
    return 0;
}

static int set_headers(struct http_call *c, CURL *easy, const char *content_type)
{
    /* Without a value curl leaves its own Content-Type out. */
    int n = snprintf(c->content_type, sizeof(c->content_type), "Content-Type:%s%s", content_type ? " " : "",
                     cstr(content_type));

    if (n < 0 || (size_t)n >= sizeof(c->content_type))
        return -EINVAL;
    c->headers = (struct curl_slist){.data = c->content_type, .next = common_headers};
    SET(CURLOPT_HTTPHEADER, &c->headers);
    SET(CURLOPT_USERAGENT, c->http->user_agent);
    /* Decodes what comes compressed unasked; the header of our own wins over the one this would send. */
    SET(CURLOPT_ACCEPT_ENCODING, "gzip, deflate");
    return 0;
}

static int set_callbacks(struct http_call *c, CURL *easy)
{
    SET(CURLOPT_PRIVATE, c);
    SET(CURLOPT_ERRORBUFFER, c->curl_error);
    SET(CURLOPT_HEADERFUNCTION, http_on_header);
    SET(CURLOPT_HEADERDATA, c);
    SET(CURLOPT_WRITEFUNCTION, http_on_body);
    SET(CURLOPT_WRITEDATA, c);
    return 0;
}

static int set_all(struct http_call *c, CURL *easy, const struct http_request *rq)
{
    int r = set_limits(c, easy);

    SET(CURLOPT_URL, rq->url);
    if (r == 0)
        r = set_tls(c->http, easy);
    if (r == 0)
        r = set_headers(c, easy, rq->content_type);
    if (r == 0)
        r = set_bearer(easy, rq->bearer);
    if (r == 0)
        r = set_method(c, easy, rq->method);
    if (r == 0)
        r = set_callbacks(c, easy);
    return r;
}

static int call_new(struct http_call **ret, struct http *h, const struct http_request *rq)
{
    struct http_call *c = calloc(1, sizeof(*c) + rq->body_parts * sizeof(c->parts[0]));

    if (!c)
        return -ENOMEM;
    c->http = h;
    c->timeout_ms = rq->timeout_ms;
    c->answer.retry_after_ms = -1;
    buf_init(&c->answer.body, rq->max_answer);
    c->n_parts = rq->body_parts;
    for (size_t i = 0; i < rq->body_parts; i++) {
        c->parts[i] = rq->body[i];
        c->body_bytes += rq->body[i].n;
    }
    *ret = c;
    return 0;
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
    r = call_new(&c, h, rq);
    if (r < 0)
        return r;
    c->done = done;
    c->arg = arg;
    easy = take_handle(h);
    if (!easy)
        return -ENOMEM;
    r = set_all(c, easy, rq);
    if (r == 0 && curl_multi_add_handle(h->multi, easy) != CURLM_OK)
        r = -ENOMEM;
    if (r < 0) {
        give_handle(h, easy, false);
        return r;
    }
    c->easy = easy;
    link_call(h, c);
    *ret = TAKE_PTR(c);
    return 0;
}

struct http_call *http_cancel(struct http_call *c)
{
    if (!c || c->finishing)
        return NULL;
    /* Takes an unread end of the transfer out of curl's queue too. */
    (void)curl_multi_remove_handle(c->http->multi, c->easy);
    give_handle(c->http, c->easy, false);
    unlink_call(c);
    return call_free(c);
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
        buf_done(&a->body); /* part of an answer is none */
}

/* The handle and the call's place in the list are given back first, so that `done` may start, cancel or free anything. */
static void on_transfer_done(void *arg, CURL *easy, CURLcode code)
{
    struct http *h = arg;
    struct http_call *c = NULL;

    if (curl_easy_getinfo(easy, CURLINFO_PRIVATE, &c) != CURLE_OK || !c)
        return;
    fill_answer(c, code);
    (void)curl_multi_remove_handle(h->multi, easy);
    give_handle(h, easy, code == CURLE_OK);
    unlink_call(c);
    c->finishing = true;
    c->done(c->arg, &c->answer);
    (void)call_free(c);
}
