/* Why a call failed: a class for the metrics, and a text for a person. */
#include "exporter/base/http_internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

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
    {CURLE_OUT_OF_MEMORY, HTTP_MEMORY},
#if LIBCURL_VERSION_NUM >= 0x080600
    {CURLE_TOO_LARGE, HTTP_TOO_LARGE},
#endif
    {CURLE_FAILED_INIT, HTTP_MEMORY},
    {CURLE_SSL_CONNECT_ERROR, HTTP_TLS},
    {CURLE_PEER_FAILED_VERIFICATION, HTTP_TLS},
    {CURLE_SSL_CACERT_BADFILE, HTTP_TLS},
    {CURLE_SSL_CERTPROBLEM, HTTP_TLS},
    {CURLE_SSL_CIPHER, HTTP_TLS},
    {CURLE_SSL_CLIENTCERT, HTTP_TLS},
    {CURLE_SSL_CRL_BADFILE, HTTP_TLS},
    {CURLE_SSL_ENGINE_INITFAILED, HTTP_TLS},
    {CURLE_SSL_INVALIDCERTSTATUS, HTTP_TLS},
    {CURLE_SSL_ISSUER_ERROR, HTTP_TLS},
    {CURLE_SSL_PINNEDPUBKEYNOTMATCH, HTTP_TLS},
    {CURLE_SSL_SHUTDOWN_FAILED, HTTP_TLS},
    {CURLE_USE_SSL_FAILED, HTTP_TLS},
};

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

/* The server ended a new TLS connection before it answered. With TLS 1.3 that is how it refuses a client for
 * its certificate, or for the lack of one: whether its alert or only the end of the connection arrives is a
 * race. */
static bool ended_after_handshake(const struct http_call *c, CURLcode code)
{
    return (code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR) &&
           info_off(c, CURLINFO_APPCONNECT_TIME_T) != 0 && info_long(c, CURLINFO_NUM_CONNECTS) != 0 &&
           info_long(c, CURLINFO_RESPONSE_CODE) == 0;
}

static enum http_error classify(const struct http_call *c, CURLcode code)
{
    long connect_status = info_long(c, CURLINFO_HTTP_CONNECTCODE);

    /* The proxy refused the tunnel. */
    if (code == CURLE_RECV_ERROR && connect_status != 0 && connect_status / 100 != 2)
        return HTTP_CONNECT;
    /* The URL of the call is valid, so this one is from a redirect. */
    if (code == CURLE_URL_MALFORMAT && info_long(c, CURLINFO_RESPONSE_CODE) != 0)
        return HTTP_BROKEN;
    /* libcurl before 8.6 for a header line over its own limit. A failed allocation is less likely here. */
    if (code == CURLE_OUT_OF_MEMORY && c->in_headers)
        return HTTP_TOO_LARGE;
    if (ended_after_handshake(c, code))
        return HTTP_TLS;
    for (size_t i = 0; i < ARRAY_SIZE(classes); i++)
        if (classes[i].code == code)
            return classes[i].error;
    return HTTP_BROKEN;
}

/* Of the last URL requested. */
struct server {
    char text[300]; /* "host:port" */
    char host[256];
    unsigned long port; /* 0 if unknown */
};

static void server_read(const struct http_call *c, struct server *ret)
{
    char *url = NULL, *name = NULL, *port = NULL;
    CURLU *u = curl_url();

    *ret = (struct server){.text = "the server", .host = "unknown"};
    if (u && curl_easy_getinfo(c->easy, CURLINFO_EFFECTIVE_URL, &url) == CURLE_OK && url &&
        curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
        curl_url_get(u, CURLUPART_HOST, &name, 0) == CURLUE_OK &&
        curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK) {
        (void)snprintf(ret->text, sizeof(ret->text), "%s:%s", name, port);
        (void)snprintf(ret->host, sizeof(ret->host), "%s", name);
        ret->port = strtoul(port, NULL, 10);
    }
    curl_free(name);
    curl_free(port);
    curl_url_cleanup(u);
}

static const char *connect_error_text(long e)
{
    switch (e) {
    case ECONNREFUSED:
        return "connection refused";
    case EHOSTUNREACH:
        return "no route to host";
    case ENETUNREACH:
        return "network is unreachable";
    case ECONNRESET:
        return "connection reset by peer";
    default:
        return NULL;
    }
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

static void explain_timeout(struct http_call *c, const char *server)
{
    if (info_off(c, CURLINFO_PRETRANSFER_TIME_T) == 0)
        http_fail(c, HTTP_TIMEOUT, "connection to %s timed out after %.1f s", server,
                  (double)info_off(c, CURLINFO_TOTAL_TIME_T) / 1e6);
    else
        http_fail(c, HTTP_TIMEOUT, "timed out after %.1f s with %lld bytes received",
                  (double)c->rq.timeout_ms / 1e3, (long long)info_off(c, CURLINFO_SIZE_DOWNLOAD_T));
}

/* The library's own text, without user information: it may quote the server or the URL of a redirect. */
static void explain_by_curl(struct http_call *c, CURLcode code, enum http_error error, const char *prefix)
{
    const char *text = c->curl_error[0] ? c->curl_error : curl_easy_strerror(code);
    BUF_AUTO(clean, sizeof(c->answer.reason) - 1);

    if (http_url_for_people((struct str){text, strnlen(text, CURL_ERROR_SIZE)}, &clean) < 0)
        clean.n = 0;
    http_fail(c, error, "%s%.*s", prefix, STR_ARG(buf_str(&clean)));
}

static void explain_tls(struct http_call *c, CURLcode code, const char *server)
{
    const struct http_tls *tls = c->rq.tls;
    bool has_certificate = tls && (tls->cert.n || tls->cert_file);
    char prefix[400] = "";

    if (code == CURLE_SSL_CONNECT_ERROR)
        (void)snprintf(prefix, sizeof(prefix),
                       "TLS handshake with %s failed; if it is an http port, use http://: ", server);
    else if (ended_after_handshake(c, code))
        (void)snprintf(prefix, sizeof(prefix),
                       "%s closed the connection; it may %s client certificate: ", server,
                       has_certificate ? "not accept the" : "require a");
    explain_by_curl(c, code, HTTP_TLS, prefix);
}

/* A connection, a name server's answer and a file with certificates each need a descriptor. The error of the
 * first is known; for the others, one more descriptor shows whether the limit is still reached. */
static int descriptor_error(const struct http_call *c, enum http_error error)
{
    int e = c->socket_errno, fd;

    if (e == EMFILE || e == ENFILE)
        return e;
    if (error != HTTP_CONNECT && error != HTTP_DNS && error != HTTP_TLS)
        return 0;
    fd = dup(STDERR_FILENO);
    e = errno;
    if (fd >= 0)
        (void)close(fd);
    return fd < 0 && (e == EMFILE || e == ENFILE) ? e : 0;
}

static void explain_descriptors(struct http_call *c, int e, const char *server)
{
    struct rlimit limit = {0};

    (void)getrlimit(RLIMIT_NOFILE, &limit);
    if (e == ENFILE)
        http_fail(c, HTTP_CONNECT, "could not connect to %s: too many open files in the system", server);
    else
        http_fail(c, HTTP_CONNECT,
                  "could not connect to %s: too many open files, the process's limit is %llu", server,
                  (unsigned long long)limit.rlim_cur);
}

/* The first text counts. */
static void reason_explain(struct http_call *c, CURLcode code, enum http_error error)
{
    struct server server;
    const char *why;
    int e = descriptor_error(c, error);

    server_read(c, &server);
    if (e) {
        explain_descriptors(c, e, server.text);
        return;
    }
    switch (error) {
    case HTTP_DNS:
        http_fail(c, error, "could not resolve host: %s", server.host);
        break;
    case HTTP_CONNECT:
        why = connect_error_text(info_long(c, CURLINFO_OS_ERRNO));
        /* Of a proxy, libcurl's text says more. */
        if (why && c->socket_port == server.port)
            http_fail(c, error, "could not connect to %s: %s", server.text, why);
        break;
    case HTTP_TIMEOUT:
        explain_timeout(c, server.text);
        break;
    case HTTP_TLS:
        explain_tls(c, code, server.text);
        break;
    case HTTP_BROKEN:
        /* No status line: libcurl calls it HTTP/0.9, or cannot read it. */
        if ((code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_WEIRD_SERVER_REPLY) &&
            info_long(c, CURLINFO_RESPONSE_CODE) == 0)
            http_fail(c, error, "%s does not speak HTTP; if it is an https port, use https://", server.text);
        break;
    case HTTP_TOO_LARGE:
        if (c->in_headers)
            http_fail(c, error, "response header exceeds libcurl's limit");
        break;
    case HTTP_MEMORY:
        http_fail(c, error, "out of memory");
        break;
    default:
        break;
    }
    explain_by_curl(c, code, error, "");
}

void http_explain(struct http_call *c, CURLcode code)
{
    if (code == CURLE_OK || c->answer.error != HTTP_OK || http_explain_refused(c, code))
        return;
    if (code == CURLE_OPERATION_TIMEDOUT && c->share->want) {
        http_fail_budget(c, "other responses left no room until the deadline");
        return;
    }
    reason_explain(c, code, classify(c, code));
}
