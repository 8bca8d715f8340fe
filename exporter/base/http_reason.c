/* Why a call failed: a class for the metrics, and a text for a person. libcurl's own text, unless more is
 * known. */
#include "exporter/base/http_internal.h"
#include "exporter/base/url.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>

static long info_long(const struct http_call *c, CURLINFO what)
{
    long v = 0;

    return curl_easy_getinfo(c->easy, what, &v) == CURLE_OK ? v : 0;
}

curl_off_t http_info_off(const struct http_call *c, CURLINFO what)
{
    curl_off_t v = 0;

    return curl_easy_getinfo(c->easy, what, &v) == CURLE_OK ? v : 0;
}

long http_status(const struct http_call *c)
{
    return info_long(c, CURLINFO_RESPONSE_CODE);
}

CURLU *http_last_url(const struct http_call *c)
{
    CLEANUP(cleanup_curl_url) CURLU *u = curl_url();
    char *url = NULL;

    if (curl_easy_getinfo(c->easy, CURLINFO_EFFECTIVE_URL, &url) != CURLE_OK || !url ||
        curl_url_set(u, CURLUPART_URL, url, 0) != CURLUE_OK)
        return NULL;
    return TAKE_PTR(u);
}

/* All other codes are HTTP_BROKEN. */
static const struct {
    CURLcode code;
    enum http_error error;
} classes[] = {
    {CURLE_URL_MALFORMAT, HTTP_URL},
    {CURLE_COULDNT_RESOLVE_HOST, HTTP_DNS},
    {CURLE_COULDNT_RESOLVE_PROXY, HTTP_CONNECT},
    {CURLE_COULDNT_CONNECT, HTTP_CONNECT},
    {CURLE_PROXY, HTTP_CONNECT},
    {CURLE_INTERFACE_FAILED, HTTP_CONNECT},
    {CURLE_NO_CONNECTION_AVAILABLE, HTTP_CONNECT},
    {CURLE_OPERATION_TIMEDOUT, HTTP_TIMEOUT},
    /* A header line over libcurl's own limit; 8.6 has a code for it. An allocation that fails aborts. */
    {CURLE_OUT_OF_MEMORY, HTTP_TOO_LARGE},
#if LIBCURL_VERSION_NUM >= 0x080600
    {CURLE_TOO_LARGE, HTTP_TOO_LARGE},
#endif
    {CURLE_SSL_CONNECT_ERROR, HTTP_TLS},
    {CURLE_PEER_FAILED_VERIFICATION, HTTP_TLS},
    {CURLE_SSL_CACERT_BADFILE, HTTP_TLS},
    {CURLE_SSL_CERTPROBLEM, HTTP_TLS},
    {CURLE_SSL_CIPHER, HTTP_TLS},
    {CURLE_SSL_CLIENTCERT, HTTP_TLS},
    {CURLE_SSL_ISSUER_ERROR, HTTP_TLS},
    {CURLE_SSL_SHUTDOWN_FAILED, HTTP_TLS},
};

/* The server ended a new TLS connection before it answered. With TLS 1.3 that is how it refuses a client for
 * its certificate, or for the lack of one: whether its alert or only the end of the connection arrives is a
 * race. */
static bool ended_after_handshake(const struct http_call *c, CURLcode code)
{
    return (code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR) &&
           http_info_off(c, CURLINFO_APPCONNECT_TIME_T) != 0 && info_long(c, CURLINFO_NUM_CONNECTS) != 0 &&
           http_status(c) == 0;
}

static enum http_error classify(const struct http_call *c, CURLcode code)
{
    long connect_status = info_long(c, CURLINFO_HTTP_CONNECTCODE);

    /* The proxy refused the tunnel. */
    if (code == CURLE_RECV_ERROR && connect_status != 0 && connect_status / 100 != 2)
        return HTTP_CONNECT;
    /* The URL of the call is valid, so this one is from a redirect. */
    if (code == CURLE_URL_MALFORMAT && http_status(c) != 0)
        return HTTP_BROKEN;
    if (ended_after_handshake(c, code))
        return HTTP_TLS;
    for (size_t i = 0; i < ARRAY_SIZE(classes); i++)
        if (classes[i].code == code)
            return classes[i].error;
    return HTTP_BROKEN;
}

void http_fail(struct http_call *c, enum http_error error, const char *fmt, ...)
{
    struct http_answer *a = &c->answer;
    va_list args;

    if (a->error != HTTP_OK)
        return;
    a->error = error;
    va_start(args, fmt);
    (void)vsnprintf(a->reason, sizeof(a->reason), fmt, args);
    va_end(args);
    for (char *p = a->reason; *p; p++)
        *p = isprint((unsigned char)*p) ? *p : '?';
}

/* The library's own text, without user information: it may quote the server or the URL of a redirect. */
static void fail_by_curl(struct http_call *c, CURLcode code, enum http_error error, const char *server)
{
    const char *text = c->curl_error[0] ? c->curl_error : curl_easy_strerror(code);
    const struct http_tls *tls = c->rq.tls;
    BUF_AUTO(clean, sizeof(c->answer.reason) - 1);
    struct str shown;

    if (http_url_for_people((struct str){text, strnlen(text, CURL_ERROR_SIZE)}, &clean) < 0)
        clean.n = 0;
    shown = buf_str(&clean);
    if (code == CURLE_SSL_CONNECT_ERROR)
        http_fail(c, error, "TLS handshake with %s failed; if it is an http port, use http://: %.*s", server,
                  STR_ARG(shown));
    else if (ended_after_handshake(c, code))
        http_fail(c, error, "%s closed the connection; it may %s client certificate: %.*s", server,
                  tls && (tls->cert.n || tls->cert_file) ? "not accept the" : "require a", STR_ARG(shown));
    else
        http_fail(c, error, "%.*s", STR_ARG(shown));
}

/* `server`: host:port of the last URL. */
static void fail_by_code(struct http_call *c, CURLcode code, const char *server)
{
    const char *port = strrchr(server, ':'), *why = strerror((int)info_long(c, CURLINFO_OS_ERRNO));
    enum http_error error = classify(c, code);

    if (error == HTTP_DNS)
        http_fail(c, error, "could not resolve host: %.*s", (int)(port - server), server);
    /* Of a proxy, libcurl's text says more. */
    else if (error == HTTP_CONNECT && info_long(c, CURLINFO_OS_ERRNO) &&
             c->socket_port == strtoul(port + 1, NULL, 10))
        http_fail(c, error, "could not connect to %s: %c%s", server, tolower((unsigned char)*why), why + 1);
    else if (error == HTTP_TIMEOUT && http_info_off(c, CURLINFO_PRETRANSFER_TIME_T) == 0)
        http_fail(c, error, "connection to %s timed out after %.1f s", server,
                  (double)http_info_off(c, CURLINFO_TOTAL_TIME_T) / 1e6);
    else if (error == HTTP_TIMEOUT)
        http_fail(c, error, "timed out after %.1f s with %lld bytes received", (double)c->rq.timeout_ms / 1e3,
                  (long long)http_info_off(c, CURLINFO_SIZE_DOWNLOAD_T));
    else if (error == HTTP_TOO_LARGE)
        http_fail(c, error, "response headers exceed the limit of libcurl");
    /* No status line: libcurl calls it HTTP/0.9, or cannot read it. */
    else if ((code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_WEIRD_SERVER_REPLY) && http_status(c) == 0)
        http_fail(c, error, "%s does not speak HTTP; if it is an https port, use https://", server);
    else
        fail_by_curl(c, code, error, server);
}

void http_explain(struct http_call *c, CURLcode code)
{
    CLEANUP(cleanup_curl_url) CURLU *u = NULL;
    CLEANUP(cleanup_free) char *origin = NULL;

    if (code == CURLE_OK || c->answer.error != HTTP_OK)
        return;
    if (c->refused[0] && (code == CURLE_COULDNT_CONNECT || code == CURLE_ABORTED_BY_CALLBACK)) {
        c->answer.refused = true;
        http_fail(c, HTTP_CONNECT, "connections to private addresses are not allowed: %s", c->refused);
        return;
    }
    if (code == CURLE_OPERATION_TIMEDOUT && c->share->want) {
        http_fail_budget(c, "other responses left no room until the deadline");
        return;
    }
    u = http_last_url(c);
    origin = u ? url_origin_of(u) : NULL;
    fail_by_code(c, code, origin ? strstr(origin, "://") + 3 : "unknown:0");
}
