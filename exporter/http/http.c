/* Owns the calls in progress; the loop's multi handle owns the connections and the DNS cache. */
#include "exporter/base/cgroup.h"
#include "exporter/base/inflate.h"
#include "exporter/base/invariant.h"
#include "exporter/base/secret.h"
#include "exporter/http/http_internal.h"
#include "exporter/http/redirect.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <time.h>

enum {
    MAX_CONNECTIONS = 512, /* idle and busy together; with more, curl closes idle ones */
    MAX_HEADER_BYTES = 256 << 10,
    WINDOW = 256 << 10,          /* bytes of a stream buffered at most; one piece of curl's may exceed it */
    CALL_TURN_BYTES = 256 << 10, /* worked on for one call in one turn of the loop */
    SHOWN_BYTES = 64 << 10,      /* of an error's body, at most */
    MAX_REDIRECTS = 5,
    BODY_MS = 2000, /* status_decides: to read the body */
    BODY_MS_2XX = 200,
    SHARE_FREE_BYTES = 64 << 10,   /* of each share, not counted: most bodies never wait */
    LEAST_BUDGET_BYTES = 64 << 20, /* of a budget that follows from the memory's limit */
};

/* Sets cause and reason of the answer unless they are set. */
static void PRINTF_LIKE(3, 4) call_fail(struct http_call *c, enum http_cause cause, const char *fmt, ...)
{
    struct http_response *a = &c->answer;
    va_list args;

    if (a->cause != CAUSE_NONE)
        return;
    http_answer_set_cause(a, cause);
    va_start(args, fmt);
    (void)vsnprintf(a->reason, sizeof(a->reason), fmt, args);
    va_end(args);
    for (char *p = a->reason; *p; p++)
        *p = isprint((unsigned char)*p) ? *p : '?';
}

/* ---- The budget for the bodies of all answers ----
 *
 * A share asks before its body grows. If there is no room, its transfer is paused until others give some
 * back. A share that holds no more than its part of the budget does not wait for one that holds more: the
 * largest fails, as it does when all holders wait for each other. */

void http_set_budget(struct http *h, uint64_t bytes)
{
    h->budget_max = bytes ? bytes : size_max(memory_limit("") / 2, LEAST_BUDGET_BYTES);
}

void http_budget(const struct http *h, uint64_t *ret_used, uint64_t *ret_max)
{
    *ret_used = h->budget_used;
    *ret_max = h->budget_max;
}

void http_call_soon(struct http_call *c)
{
    if (!c->soon.place)
        loop_timer_set(c->http->loop, &c->soon, loop_now(c->http->loop));
}

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

static void call_line_up(struct http_call *c)
{
    loop_share_wait(c->http->loop, &c->wait);
}

static uint64_t counted(uint64_t bytes)
{
    return bytes > SHARE_FREE_BYTES ? bytes - SHARE_FREE_BYTES : 0;
}

static bool share_grant(struct http_share *s, size_t bytes)
{
    struct http *h = s->http;
    uint64_t more = counted(s->held + bytes) - counted(s->held);

    if (more > h->budget_max || h->budget_used > h->budget_max - more)
        return false;
    h->budget_used += more;
    s->held += bytes;
    s->want = 0;
    return true;
}

/* The share to end so that others go on; NULL to wait. `asking` does not fit. */
static struct http_share *budget_victim(const struct http *h, const struct http_share *asking)
{
    struct http_share *largest = NULL, *s;
    uint64_t holders = 0, part;
    bool all_wait = true;

    TAILQ_FOREACH (s, &h->shares, entry) {
        bool holds = counted(s->held) > 0;

        if (s->evicted)
            return NULL; /* there will be room */
        holders += holds || s == asking;
        /* One that was woken asks first. */
        all_wait &= !holds || (s->want && !s->call->soon.place && !s->call->wait.is_waiting);
        if (holds && s->call && (!largest || s->held >= largest->held))
            largest = s;
    }
    part = h->budget_max / (holders ? holders : 1);
    if (largest && counted(largest->held) > part && counted(asking->held + asking->want) <= part)
        return largest;
    return all_wait ? largest : NULL;
}

static void share_enter(struct http_share *s, struct http *h)
{
    if (s->http)
        return;
    *s = (struct http_share){.http = h};
    TAILQ_INSERT_TAIL(&h->shares, s, entry);
}

int http_share_hold(struct http_share *s, struct http *h, size_t bytes)
{
    share_enter(s, h);
    return share_grant(s, bytes) ? 0 : -EDQUOT;
}

void http_share_done(struct http_share *s)
{
    struct http *h = s->http;
    const struct http_share *other;
    uint64_t freed = counted(s->held);

    if (!h)
        return;
    TAILQ_REMOVE(&h->shares, s, entry);
    h->budget_used -= freed;
    *s = (struct http_share){0};
    TAILQ_FOREACH (other, &h->shares, entry) /* there may be room: those that wait ask again */
        if (freed && other->want)
            http_call_soon(other->call);
}

/* Asks for a body of `need` bytes. -EAGAIN: the transfer must pause, and is resumed or ended. -EDQUOT: it
 * never fits. */
static int share_charge(struct http_call *c, size_t need)
{
    size_t want = size_min(size_max(need, c->charged + c->charged / 2), c->answer.body.max);
    struct http_share *s = c->share, *victim;

    if (need <= c->charged || (need > c->answer.body.max && !c->rq.cut_answer)) /* the latter fails anyway */
        return 0;
    want -= c->charged;
    if (counted(s->held + want) > c->http->budget_max)
        return -EDQUOT;
    if (share_grant(s, want)) {
        c->charged += want;
        return 0;
    }
    s->want = want;
    victim = budget_victim(c->http, s);
    if (victim) {
        victim->evicted = true;
        http_call_soon(victim->call);
    }
    return -EAGAIN;
}

static void fail_budget(struct http_call *c, const char *what)
{
    call_fail(c, CAUSE_BUDGET, "over limits.memory (%llu MiB): %s, with %zu bytes of responses in memory",
              (unsigned long long)(c->http->budget_max >> 20), what, c->share->held);
}

/* ---- Why a call failed: a class for the metrics, and a text for a person ---- */

static long info_long(const struct http_call *c, CURLINFO what)
{
    long v = 0;

    return curl_easy_getinfo(c->easy, what, &v) == CURLE_OK ? v : 0;
}

static curl_off_t info_off(const struct http_call *c, CURLINFO what)
{
    curl_off_t v = 0;

    return curl_easy_getinfo(c->easy, what, &v) == CURLE_OK ? v : 0;
}

static long call_status(const struct http_call *c)
{
    return info_long(c, CURLINFO_RESPONSE_CODE);
}

/* The URL of the hop in progress. NULL if libcurl's parser refuses the request's. */
static CURLU *last_url(const struct http_call *c)
{
    CLEANUP(cleanup_curl_url_cleanup) CURLU *u = NULL;
    char *url = NULL;

    if (c->url)
        return curl_url_dup(c->url);
    u = curl_url();
    if (curl_easy_getinfo(c->easy, CURLINFO_EFFECTIVE_URL, &url) != CURLE_OK || !url ||
        curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK)
        return NULL;
    return TAKE_PTR(u);
}

/* ---- What the whole call took: the hops before this one, and this one ---- */

static double call_seconds(const struct http_call *c)
{
    return c->hops.seconds + (double)info_off(c, CURLINFO_TOTAL_TIME_T) / 1e6;
}

static uint64_t call_sent(const struct http_call *c)
{
    return c->hops.sent + (uint64_t)info_off(c, CURLINFO_SIZE_UPLOAD_T);
}

static uint64_t call_received(const struct http_call *c)
{
    return c->hops.received + (uint64_t)info_off(c, CURLINFO_SIZE_DOWNLOAD_T);
}

/* All other codes are CAUSE_TRANSFER. */
static const enum http_cause causes[CURL_LAST] = {
    [CURLE_URL_MALFORMAT] = CAUSE_URL,
    [CURLE_COULDNT_RESOLVE_HOST] = CAUSE_DNS,
    [CURLE_COULDNT_RESOLVE_PROXY] = CAUSE_PROXY_DNS,
    [CURLE_COULDNT_CONNECT] = CAUSE_CONNECT,
    [CURLE_PROXY] = CAUSE_PROXY_CONNECT,
    [CURLE_OPERATION_TIMEDOUT] = CAUSE_DEADLINE,
    /* A header line over libcurl's own limit; 8.6 has a code for it. An allocation that fails aborts. */
    [CURLE_OUT_OF_MEMORY] = CAUSE_HEADERS_LIMIT,
#if LIBCURL_VERSION_NUM >= 0x080600
    [CURLE_TOO_LARGE] = CAUSE_HEADERS_LIMIT,
#endif
    [CURLE_SSL_CONNECT_ERROR] = CAUSE_TLS_HANDSHAKE,
    [CURLE_SSL_CIPHER] = CAUSE_TLS_HANDSHAKE,
    [CURLE_PEER_FAILED_VERIFICATION] = CAUSE_TLS_SERVER_CERTIFICATE,
    [CURLE_SSL_CACERT_BADFILE] = CAUSE_TLS_CA,
    [CURLE_SSL_CERTPROBLEM] = CAUSE_TLS_CERTIFICATE,
    [CURLE_SSL_CLIENTCERT] = CAUSE_TLS_CLIENT_REFUSED,
};

/* The server ended a new TLS connection before it answered. With TLS 1.3 that is how it refuses a client for
 * its certificate, or for the lack of one: whether its alert or only the end of the connection arrives is a
 * race. */
static bool ended_after_handshake(const struct http_call *c, CURLcode code)
{
    return (code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR) &&
           info_off(c, CURLINFO_APPCONNECT_TIME_T) != 0 && info_long(c, CURLINFO_NUM_CONNECTS) != 0 &&
           call_status(c) == 0;
}

/* Whether the proxy has taken the connection, and opened the tunnel if there is to be one. */
static bool is_past_proxy(const struct http_call *c)
{
    const char *scheme = NULL;

    if (info_off(c, CURLINFO_CONNECT_TIME_T) == 0)
        return false;
    if (curl_easy_getinfo(c->easy, CURLINFO_SCHEME, &scheme) != CURLE_OK || !scheme)
        return true;
    return !str_eq_nocase(str_of(scheme), STR("https")) || info_long(c, CURLINFO_HTTP_CONNECTCODE) != 0;
}

/* No status line: libcurl calls it HTTP/0.9, or cannot read it. */
static bool is_not_http(const struct http_call *c, CURLcode code)
{
    return (code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_WEIRD_SERVER_REPLY) && call_status(c) == 0;
}

/* The proxy answered the CONNECT, with another status than 2xx. */
static bool is_refused_by_proxy(const struct http_call *c, CURLcode code)
{
    long status = info_long(c, CURLINFO_HTTP_CONNECTCODE);

    return code == CURLE_RECV_ERROR && status != 0 && status / 100 != 2;
}

static enum http_cause cause_of_code(const struct http_call *c, CURLcode code, enum proxy_use proxy)
{
    enum http_cause cause = code < CURL_LAST ? causes[code] : CAUSE_NONE;

    if (is_refused_by_proxy(c, code))
        return CAUSE_PROXY_TUNNEL;
    if (ended_after_handshake(c, code))
        return CAUSE_TLS_CLIENT_REFUSED;
    if (is_not_http(c, code))
        return CAUSE_NOT_HTTP;
    if (cause == CAUSE_CONNECT && proxy == PROXY_USED)
        return CAUSE_PROXY_CONNECT;
    if (cause == CAUSE_DEADLINE && proxy == PROXY_USED && !is_past_proxy(c))
        return CAUSE_PROXY_DEADLINE;
    return cause == CAUSE_NONE ? CAUSE_TRANSFER : cause;
}

/* The library's own text, without user information: it may quote the server or the URL of a redirect. */
static void fail_by_curl(struct http_call *c, CURLcode code, enum http_cause cause, const char *server,
                         enum proxy_use proxy)
{
    const char *text = c->curl_error[0] ? c->curl_error : curl_easy_strerror(code);
    const struct http_tls *tls = c->rq.tls;
    BUF_AUTO(clean, sizeof(c->answer.reason) - 1);
    struct str shown;

    http_url_for_people((struct str){text, strnlen(text, CURL_ERROR_SIZE)}, &clean);
    shown = buf_str(&clean);
    if (http_cause_class(cause) == HTTP_CONNECT && proxy == PROXY_USED)
        call_fail(c, cause, "could not connect to the proxy: %.*s", STR_ARG(shown));
    else if (code == CURLE_SSL_CONNECT_ERROR)
        call_fail(c, cause, "TLS handshake with %s failed; if it is an http port, use http://: %.*s", server,
                  STR_ARG(shown));
    else if (ended_after_handshake(c, code))
        call_fail(c, cause, "%s closed the connection; it may %s client certificate: %.*s", server,
                  tls && (tls->cert.n || tls->cert_file) ? "not accept the" : "require a", STR_ARG(shown));
    else
        call_fail(c, cause, "%.*s", STR_ARG(shown));
}

/* `server`: host:port of the last URL. */
static void fail_by_code(struct http_call *c, CURLcode code, const char *server, enum proxy_use proxy)
{
    const char *port = strrchr(server, ':'), *why = strerror((int)info_long(c, CURLINFO_OS_ERRNO));
    enum http_cause cause = cause_of_code(c, code, proxy);
    enum http_error class = http_cause_class(cause);

    if (cause == CAUSE_DNS)
        call_fail(c, cause, "could not resolve host: %.*s", (int)(port - server), server);
    /* Of a proxy, libcurl's text says more. */
    else if (class == HTTP_CONNECT && info_long(c, CURLINFO_OS_ERRNO) && proxy != PROXY_USED)
        call_fail(c, cause, "could not connect to %s: %c%s", server, tolower((unsigned char)*why), why + 1);
    else if (cause == CAUSE_PROXY_DEADLINE)
        call_fail(c, cause, "the proxy did not answer within %.1f s", call_seconds(c));
    else if (cause == CAUSE_DEADLINE)
        call_fail(c, cause, "timed out after %.1f s with %llu bytes received", call_seconds(c),
                  (unsigned long long)call_received(c));
    else if (cause == CAUSE_HEADERS_LIMIT)
        call_fail(c, cause, "response headers exceed the limit of libcurl");
    else if (cause == CAUSE_NOT_HTTP)
        call_fail(c, cause, "%s does not speak HTTP; if it is an https port, use https://", server);
    else
        fail_by_curl(c, code, cause, server, proxy);
}

/* origin: "https://host:port" of the last URL. */
static void fail_at_origin(struct http_call *c, CURLcode code, const char *origin)
{
    const char *server = strstr(origin, "://") + strlen("://"), *port = strrchr(server, ':');
    CLEANUP(cleanup_free) char *host = str_dup((struct str){server, (size_t)(port - server)});
    const struct http_origin at = {.is_https = str_starts(str_of(origin), STR("https:")),
                                   .host = host,
                                   .port = (unsigned)strtoul(port + 1, NULL, 10)};

    fail_by_code(c, code, server, http_proxy_use(c, code, &at));
}

static void explain_failure(struct http_call *c, CURLcode code)
{
    CLEANUP(cleanup_curl_url_cleanup) CURLU *u = NULL;
    CLEANUP(cleanup_free) char *origin = NULL;

    if (code == CURLE_OK || c->answer.error != HTTP_OK)
        return;
    if (c->refused[0] && (code == CURLE_COULDNT_CONNECT || code == CURLE_ABORTED_BY_CALLBACK)) {
        call_fail(c, CAUSE_PRIVATE_ADDRESS, "connections to private addresses are not allowed: %s",
                  c->refused);
        return;
    }
    if (code == CURLE_OPERATION_TIMEDOUT && c->share->want) {
        fail_budget(c, "other responses left no room until the deadline");
        return;
    }
    u = last_url(c);
    origin = u ? url_origin_of(u) : NULL;
    fail_at_origin(c, code, origin ? origin : "http://unknown:0");
}

/* ---- The answer's headers ---- */

/* A redirect is judged once its head is complete. It is either followed, within the origin of the request, or
 * ends the call: elsewhere the series would reach a server that nobody configured, and its answer the status
 * page. False if it ends the call. */
static bool judge_redirect(struct http_call *c)
{
    CLEANUP(cleanup_curl_url_cleanup) CURLU *from = last_url(c);
    char why[REDIRECT_WHY_BYTES];
    enum redirect_verdict verdict;

    if (c->location_state == LOCATION_SEVERAL) {
        call_fail(c, CAUSE_LOCATION_SEVERAL, "redirect with more than one Location");
        return false;
    }
    if (c->location_state == LOCATION_FOLDED) {
        call_fail(c, CAUSE_LOCATION_INVALID, "redirect with an invalid Location: it goes on in another line");
        return false;
    }
    if (c->hops.n == MAX_REDIRECTS) {
        call_fail(c, CAUSE_REDIRECTS, "more than %d redirects", MAX_REDIRECTS);
        return false;
    }
    if (!from) {
        call_fail(c, CAUSE_REDIRECT_URL, "redirect from a URL that cannot be parsed");
        return false;
    }
    verdict = redirect_judge(&c->next_url, buf_str(&c->location), from, why);
    if (verdict == REDIRECT_FOLLOW)
        return true;
    call_fail(c, verdict == REDIRECT_ELSEWHERE ? CAUSE_ELSEWHERE : CAUSE_LOCATION_INVALID, "%s", why);
    return false;
}

static void on_content_encoding(struct http_call *c, struct str value)
{
    bool is_known = str_eq_nocase(value, STR("gzip")) || str_eq_nocase(value, STR("x-gzip")) ||
                    str_eq_nocase(value, STR("deflate"));

    if (value.n == 0 || str_eq_nocase(value, STR("identity")) || c->rq.status_decides)
        return;
    if (!is_known || c->encoded || (c->rq.on_data && call_status(c) / 100 == 2))
        (void)snprintf(c->encoding, sizeof(c->encoding), "%.*s", STR_ARG(value));
    c->encoded = true;
}

static bool is_redirect(const struct http_call *c, long status)
{
    return !c->rq.no_redirects && c->location_state != LOCATION_NONE &&
           redirect_is_followed(status, strcmp(http_method(&c->rq), "GET") == 0);
}

/* False if the call ends here. */
static bool on_headers_end(struct http_call *c)
{
    long status = call_status(c);

    if (is_redirect(c, status))
        return judge_redirect(c);
    if (c->rq.status_decides && !c->decided && status >= 200) {
        c->decided = true;
        loop_timer_set(c->http->loop, &c->idle,
                       mono_add(loop_now(c->http->loop), status <= 299 ? BODY_MS_2XX : BODY_MS));
    }
    if (c->rq.on_data && status / 100 == 2) {
        c->streaming = c->stream_begun = true;
        c->answer.body.max = WINDOW + CURL_MAX_READ_SIZE;
        call_line_up(c);
    }
    return true;
}

/* Of each answer of a redirect chain, each interim answer, and that of a proxy to CONNECT. */
static void head_begin(struct http_call *c)
{
    c->in_head = true;
    c->in_location = false;
    c->retry_after_is_bad = false;
    c->encoded = false;
    c->encoding[0] = '\0';
    c->location_state = LOCATION_NONE;
}

/* `value` as it came: redirect_judge() decides what may be trimmed. */
static void on_location(struct http_call *c, struct str value)
{
    c->in_location = true;
    if (c->location_state != LOCATION_NONE) {
        c->location_state = LOCATION_SEVERAL;
        return;
    }
    c->location_state = LOCATION_ONE;
    c->location.max = MAX_HEADER_BYTES;
    buf_clear(&c->location);
    buf_put_str(&c->location, value);
    if (buf_failed(&c->location) < 0)
        memory_exhausted(value.n);
}

/* RFC 9110, sections 5.6.7 and 10.2.3: seconds, or a date in one of three forms. */
static bool is_retry_after(struct str value)
{
    static const char *const dates[] = {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT",
                                        "%a %b %e %H:%M:%S %Y"};
    char text[64];
    uint64_t seconds;

    if (str_to_u64(value, &seconds))
        return true;
    if (value.n >= sizeof(text))
        return false;
    (void)snprintf(text, sizeof(text), "%.*s", STR_ARG(value));
    for (size_t i = 0; i < ARRAY_SIZE(dates); i++) {
        struct tm date = {0};
        const char *end = strptime(text, dates[i], &date);

        if (end && !*end)
            return true;
    }
    return false;
}

static void on_header_line(struct http_call *c, struct str line)
{
    const char *colon = line.n ? memchr(line.p, ':', line.n) : NULL;
    struct str name, value;

    if (line.p[0] == ' ' || line.p[0] == '\t') {
        if (c->in_location)
            c->location_state = LOCATION_FOLDED;
        return;
    }
    c->in_location = false;
    if (!colon)
        return;
    name = (struct str){line.p, (size_t)(colon - line.p)};
    value = (struct str){colon + 1, line.n - name.n - 1};
    if (str_eq_nocase(name, STR("Location")))
        on_location(c, value);
    value = str_trim(value);
    if (c->rq.on_header)
        c->rq.on_header(c->arg, name, value);
    if (str_eq_nocase(name, STR("Retry-After")))
        c->retry_after_is_bad = !is_retry_after(value);
    if (str_eq_nocase(name, STR("Content-Encoding")))
        on_content_encoding(c, value);
}

static struct str without_line_end(struct str line)
{
    if (line.n && line.p[line.n - 1] == '\n')
        line.n--;
    if (line.n && line.p[line.n - 1] == '\r')
        line.n--;
    return line;
}

/* Also gets the status line, the empty line at the end of a head, and trailers, which count for nothing. */
size_t http_on_header(char *p, size_t size, size_t n, void *arg)
{
    struct http_call *c = arg;
    struct str line = without_line_end((struct str){p, size * n});
    bool is_empty = line.n == 0 || line.p[0] == '\r'; /* as libcurl has it */

    c->header_bytes += size * n;
    c->last_byte = loop_now(c->http->loop);
    if (c->header_bytes > MAX_HEADER_BYTES) {
        call_fail(c, CAUSE_HEADERS_LIMIT, "response headers exceed the limit of %d bytes", MAX_HEADER_BYTES);
        return 0;
    }
    if (!c->in_head && str_starts(line, STR("HTTP/"))) {
        head_begin(c);
    } else if (c->in_head && is_empty) {
        c->in_head = false;
        if (!on_headers_end(c))
            return 0;
    } else if (c->in_head) {
        on_header_line(c, line);
    }
    return size * n;
}

/* ---- The answer's body ---- */

/* bytes: how many were announced; 0 if that is not known. */
static void fail_size(struct http_call *c, uint64_t bytes)
{
    char announced[64] = "";

    if (bytes)
        (void)snprintf(announced, sizeof(announced), " of %llu bytes", (unsigned long long)bytes);
    call_fail(c, CAUSE_BODY_LIMIT, "response%s exceeds the limit of %zu bytes%s", announced, c->rq.max_answer,
              c->hops.n || c->next_url ? ", which includes those of redirects" : "");
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
        c->encoded || c->rq.cut_answer ? 0 : info_off(c, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T);
    size_t need = body->n == 0 && announced > 0 ? (size_t)announced : body->n + piece.n;
    char *room;
    int r;

    if (announced > 0 && (uint64_t)announced > body->max) {
        fail_size(c, (uint64_t)announced);
        return 1;
    }
    r = share_charge(c, need);
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
        fail_budget(c, "the response does not fit");
    else if (r == -EAGAIN)
        c->paused = true;
    else if (r < 0)
        call_fail(c, CAUSE_ALLOCATION, "out of memory for the response");
    return r < 0 || c->cut;
}

/* Reports what is wrong with an encoded body; r: of the decoder. */
static void body_check(struct http_call *c, int r)
{
    if (r < 0)
        call_fail(c, CAUSE_ENCODED_BODY, "response has Content-Encoding gzip, but its body %s",
                  inflate_error(c->gzip));
}

static void body_pause(struct http_call *c)
{
    c->paused = true;
    call_line_up(c);
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
        call_fail(c, CAUSE_ENCODING, "response has Content-Encoding %s, an encoding that was not asked for",
                  c->encoding);
    } else {
        if (!c->gzip)
            c->gzip = inflate_new();
        r = response_unpack(c, &rest);
        body_check(c, r);
    }
    /* curl delivers a piece at which it was paused again, perhaps in other parts. */
    c->taken -= again;
    if (c->paused)
        c->taken += piece.n - rest.n;
    if (c->answer.error == HTTP_BROKEN && call_status(c) / 100 != 2)
        c->cut = true;
    return r == 0;
}

/* The callback only buffers a stream's data. A later turn of the loop that has a share for it passes it to
 * on_data, which may start and cancel calls; curl forbids that inside its callbacks. While the buffer is
 * full, the transfer is paused. */
static bool stream_put(struct http_call *c, struct str piece)
{
    c->paused = c->answer.body.n && c->answer.body.n + piece.n > WINDOW;
    if (c->answer.body.n == 0) /* more pieces mostly follow at once */
        buf_expect(&c->answer.body, 4 * piece.n);
    if (!c->paused)
        buf_put(&c->answer.body, piece.p, piece.n);
    if (buf_failed(&c->answer.body) < 0)
        call_fail(c, CAUSE_ALLOCATION, "out of memory for the response");
    call_line_up(c);
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
    return ok ? piece.n : c->paused ? CURL_WRITEFUNC_PAUSE : 0;
}

/* ---- Calls ---- */

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
    http_token_leave(c);
    s->call = NULL;
    s->want = 0;
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
    call_line_up(c);
}

/* Passes the buffered bytes to on_data, which counts what it does with them. False if that ended the call. */
static bool stream_flush(struct http_call *c)
{
    BUF_AUTO(got, 0);
    bool gone = false;
    size_t taken;

    if (!c->streaming || (!c->stream_begun && c->answer.body.n == 0))
        return true;
    c->stream_begun = false;
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
    curl_off_t retry_after = c->retry_after_is_bad ? 0 : info_off(c, CURLINFO_RETRY_AFTER);
    size_t shown, left;
    char *type = NULL;

    explain_failure(c, code);
    a->seconds = call_seconds(c);
    a->sent = call_sent(c);
    a->received = call_received(c);
    a->retry_after_ms =
        retry_after > 0 ? (int64_t)(retry_after < MAX_RETRY_SECONDS ? retry_after : MAX_RETRY_SECONDS) * 1000
                        : -1;
    if (curl_easy_getinfo(c->easy, CURLINFO_CONTENT_TYPE, &type) == CURLE_OK && type)
        (void)snprintf(a->content_type, sizeof(a->content_type), "%s", type);
    if (a->error == HTTP_OK)
        a->status = call_status(c);
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

    invariant(c->hops.n < MAX_REDIRECTS);
    c->cut = false;
    if (left <= 0) {
        call_fail(c, CAUSE_DEADLINE, "timed out after %.1f s, before a redirect was followed",
                  call_seconds(c));
        return false;
    }
    c->hops = (struct hops){
        .n = c->hops.n + 1, .seconds = call_seconds(c), .sent = call_sent(c), .received = call_received(c)};
    (void)curl_multi_remove_handle(c->http->multi, c->easy);
    curl_url_cleanup(c->url);
    c->url = TAKE_PTR(c->next_url);
    c->curl_error[0] = '\0';
    if (!http_set_hop(c, left) || !call_begin(c)) {
        call_fail(c, CAUSE_REDIRECT_URL, "redirect to a URL that libcurl does not take");
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
    } else if (code == CURLE_OK && call_seconds(c) > (double)c->rq.timeout_ms / 1e3) {
        code = CURLE_OPERATION_TIMEDOUT; /* the agent stood still; curl checks no deadline at the end */
    } else if (code == CURLE_OK && c->gzip) {
        body_check(c, inflate_end(c->gzip));
    }
    fill_answer(c, code);
    call_leave(c);
    c->done(c->arg, &c->answer);
    (void)call_free(c);
}

static void on_transfer_done(CURL *easy, CURLcode code)
{
    struct http_call *c = NULL;

    if (curl_easy_getinfo(easy, CURLINFO_PRIVATE, &c) == CURLE_OK && c)
        http_finish(c, code);
}

static void on_soon(struct timer *t)
{
    struct http_call *c = CONTAINER_OF(t, struct http_call, soon);
    int r;

    if (c->share->evicted) {
        fail_budget(c, "other responses are waiting");
        http_finish(c, CURLE_ABORTED_BY_CALLBACK);
        return;
    }
    if (c->awaits_token) {
        r = http_token_apply(c);
        if (r == -EAGAIN)
            return;
        loop_timer_clear(c->http->loop, &c->idle);
        c->awaits_token = false;
        if (r < 0 || !call_begin(c))
            http_finish(c, CURLE_FAILED_INIT);
        return;
    }
    if (c->paused) /* there may be memory now */
        call_line_up(c);
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
    if (c->awaits_token) {
        call_fail(c, CAUSE_TOKEN_DEADLINE, "no token of OAuth 2.0 within %.1f s",
                  (double)c->rq.timeout_ms / 1e3);
    } else if (!c->decided && mono_before(loop_now(c->http->loop), until)) {
        loop_timer_set(c->http->loop, t, until);
        return;
    }
    call_fail(c, CAUSE_IDLE, "no data received for %.1f s", (double)c->rq.idle_timeout_ms / 1e3);
    http_finish(c, CURLE_OPERATION_TIMEDOUT);
}

int http_start(struct http_call **ret, struct http *h, const struct http_request *rq, http_done_fn done,
               void *arg)
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
    if (!http_set_up(c) || (!rq->oauth2 && !call_begin(c)))
        return -EINVAL;
    LIST_INSERT_HEAD(&h->calls, c, entry);
    c->share = rq->share ? rq->share : &c->own_share;
    share_enter(c->share, h);
    c->share->call = c;
    if (rq->oauth2) {
        c->awaits_token = true;
        http_token_join(c);
        loop_timer_set(h->loop, &c->idle, c->ends_at);
        http_call_soon(c);
    }
    *ret = TAKE_PTR(c);
    return 0;
}

struct http *http_new(struct loop *loop, const char *user_agent)
{
    struct http *h = xcalloc(1, sizeof(*h));
    const char *proxy = getenv("HTTP_PROXY");

    /* Go programs, such as the reference agent, also read HTTP_PROXY in upper case. curl does not, because in
     * a CGI program it holds a request's `Proxy:` header (httpoxy), so it is ignored under CGI. */
    if (proxy && !getenv("REQUEST_METHOD"))
        (void)setenv("http_proxy", proxy, 0);
    TAILQ_INIT(&h->shares);
    TAILQ_INIT(&h->tokens);
    h->loop = loop;
    h->user_agent = xstrdup(user_agent);
    http_set_budget(h, 0);
    h->multi = loop_multi(loop, on_transfer_done);
    (void)curl_multi_setopt(h->multi, CURLMOPT_MAXCONNECTS, (long)MAX_CONNECTIONS);
    return h;
}

struct http *http_free(struct http *h)
{
    if (!h)
        return NULL;
    while (!LIST_EMPTY(&h->calls))
        (void)http_cancel(LIST_FIRST(&h->calls));
    http_tokens_free(h);
    free(h->user_agent);
    free(h);
    return NULL;
}
