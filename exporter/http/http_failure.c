/* Why a call failed: a cause, for the metrics and for who judges the answer, and a text for a person. Owns
 * nothing. On the loop, also inside of curl's callbacks. */
#include "exporter/http/http_internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>

void http_call_fail_with(struct http_call *c, enum http_cause cause, struct buf *reason)
{
    struct http_response *a = &c->answer;

    if (buf_failed(reason) < 0)
        memory_exhausted(reason->n);
    if (a->cause != CAUSE_NONE)
        return;
    http_answer_set_cause(a, cause);
    text_line(a->reason, sizeof(a->reason), buf_str(reason));
}

void http_call_fail(struct http_call *c, enum http_cause cause, const char *fmt, ...)
{
    BUF_AUTO(reason, HTTP_REASON_MAX_BYTES);
    va_list args;

    va_start(args, fmt);
    buf_vprintf(&reason, fmt, args);
    va_end(args);
    http_call_fail_with(c, cause, &reason);
}

void http_fail_budget(struct http_call *c, const char *what)
{
    BUF_AUTO(reason, HTTP_REASON_MAX_BYTES);

    buf_printf(&reason, "over limits.memory (%" PRIu64 " MiB): ", c->http->budget_max >> 20);
    buf_puts(&reason, what);
    buf_printf(&reason, ", with %zu bytes of responses in memory", c->share->reserved);
    http_call_fail_with(c, CAUSE_BUDGET, &reason);
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
           http_info_off(c, CURLINFO_APPCONNECT_TIME_T) != 0 &&
           http_info_long(c, CURLINFO_NUM_CONNECTS) != 0 && http_call_status(c) == 0;
}

/* Whether the proxy has taken the connection, and opened the tunnel if there is to be one. */
static bool is_past_proxy(const struct http_call *c)
{
    const char *scheme = NULL;

    if (http_info_off(c, CURLINFO_CONNECT_TIME_T) == 0)
        return false;
    if (curl_easy_getinfo(c->easy, CURLINFO_SCHEME, &scheme) != CURLE_OK || !scheme)
        return true;
    return !str_eq_nocase(str_of(scheme), STR("https")) || http_info_long(c, CURLINFO_HTTP_CONNECTCODE) != 0;
}

/* No status line: libcurl calls it HTTP/0.9, or cannot read it. */
static bool is_not_http(const struct http_call *c, CURLcode code)
{
    return (code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_WEIRD_SERVER_REPLY) &&
           http_call_status(c) == 0;
}

/* The proxy answered the CONNECT, with another status than 2xx. */
static bool is_refused_by_proxy(const struct http_call *c, CURLcode code)
{
    long status = http_info_long(c, CURLINFO_HTTP_CONNECTCODE);

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
    /* An HTTP proxy resolves the server's name, so this was the proxy's own: libcurl 8.14 now and then has
     * the wrong code for it. */
    if (cause == CAUSE_DNS && proxy == PROXY_USED)
        return CAUSE_PROXY_DNS;
    if (cause == CAUSE_CONNECT && proxy == PROXY_USED)
        return CAUSE_PROXY_CONNECT;
    if (cause == CAUSE_DEADLINE && proxy == PROXY_USED && !is_past_proxy(c))
        return CAUSE_PROXY_DEADLINE;
    return cause == CAUSE_NONE ? CAUSE_TRANSFER : cause;
}

/* libcurl's own text, without user information: it may quote the server or the URL of a redirect. */
static void put_curl_text(struct buf *b, const struct http_call *c, CURLcode code)
{
    const char *text = c->curl_error[0] ? c->curl_error : curl_easy_strerror(code);

    http_url_for_people((struct str){text, strnlen(text, CURL_ERROR_SIZE)}, b);
}

/* "connection refused" */
static void put_system_error(struct buf *b, int error)
{
    const char *text = strerror(error);

    buf_putc(b, (char)tolower((unsigned char)*text));
    buf_puts(b, text + 1);
}

/* Of a proxy, libcurl's text says more than the system's. */
static void put_connect_failure(struct buf *b, const struct http_call *c, CURLcode code, const char *server,
                                enum proxy_use proxy)
{
    int error = (int)http_info_long(c, CURLINFO_OS_ERRNO);

    if (proxy == PROXY_USED) {
        buf_puts(b, "could not connect to the proxy: ");
        put_curl_text(b, c, code);
    } else if (error) {
        buf_printf(b, "could not connect to %s: ", server);
        put_system_error(b, error);
    } else {
        put_curl_text(b, c, code);
    }
}

static void put_transfer_failure(struct buf *b, const struct http_call *c, CURLcode code, const char *server)
{
    const struct http_tls *tls = c->rq.tls;
    bool has_certificate = tls && (tls->cert.n || tls->cert_file);

    if (code == CURLE_SSL_CONNECT_ERROR) {
        buf_printf(b, "TLS handshake with %s failed; if it is an http port, use http://: ", server);
    } else if (ended_after_handshake(c, code)) {
        buf_printf(b, "%s closed the connection; it may ", server);
        buf_puts(b, has_certificate ? "not accept the" : "require a");
        buf_puts(b, " client certificate: ");
    }
    put_curl_text(b, c, code);
}

/* `server`: host:port of the last URL. */
static void put_failure(struct buf *b, const struct http_call *c, CURLcode code, enum http_cause cause,
                        const char *server, enum proxy_use proxy)
{
    switch (cause) {
    case CAUSE_DNS:
        buf_puts(b, "could not resolve host: ");
        buf_put(b, server, (size_t)(strrchr(server, ':') - server));
        break;
    case CAUSE_PROXY_DEADLINE:
        buf_printf(b, "the proxy did not answer within %.1f s", http_call_seconds(c));
        break;
    case CAUSE_DEADLINE:
        buf_printf(b, "timed out after %.1f s", http_call_seconds(c));
        buf_printf(b, " with %" PRIu64 " bytes received", http_call_received(c));
        break;
    case CAUSE_HEADERS_LIMIT:
        buf_puts(b, "response headers exceed the limit of libcurl");
        break;
    case CAUSE_NOT_HTTP:
        buf_printf(b, "%s does not speak HTTP; if it is an https port, use https://", server);
        break;
    default:
        if (http_cause_class(cause) == HTTP_CONNECT)
            put_connect_failure(b, c, code, server, proxy);
        else
            put_transfer_failure(b, c, code, server);
    }
}

/* origin: "https://host:port" of the last URL. */
static void fail_at_origin(struct http_call *c, CURLcode code, const char *origin)
{
    const char *server = strstr(origin, "://") + strlen("://"), *port = strrchr(server, ':');
    CLEANUP(cleanup_free) char *host = str_dup((struct str){server, (size_t)(port - server)});
    const struct http_origin at = {.is_https = str_starts(str_of(origin), STR("https:")),
                                   .host = host,
                                   .port = (unsigned)strtoul(port + 1, NULL, 10)};
    enum proxy_use proxy = http_proxy_use(c, code, &at);
    enum http_cause cause = cause_of_code(c, code, proxy);
    BUF_AUTO(reason, HTTP_REASON_MAX_BYTES);

    put_failure(&reason, c, code, cause, server, proxy);
    http_call_fail_with(c, cause, &reason);
}

void http_explain_failure(struct http_call *c, CURLcode code)
{
    CLEANUP(cleanup_curl_url_cleanup) CURLU *u = NULL;
    CLEANUP(cleanup_free) char *origin = NULL;

    if (code == CURLE_OK || c->answer.error != HTTP_OK)
        return;
    if (c->refused[0] && (code == CURLE_COULDNT_CONNECT || code == CURLE_ABORTED_BY_CALLBACK)) {
        http_call_fail(c, CAUSE_PRIVATE_ADDRESS, "connections to private addresses are not allowed: %s",
                       c->refused);
        return;
    }
    if (code == CURLE_OPERATION_TIMEDOUT && c->share->waiting_for) {
        http_fail_budget(c, "other responses left no room until the deadline");
        return;
    }
    u = http_last_url(c);
    origin = u ? url_origin_of(u) : NULL;
    fail_at_origin(c, code, origin ? origin : "http://unknown:0");
}
