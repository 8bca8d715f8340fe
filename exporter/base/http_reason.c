/* Why a call failed: a class for the metrics, and a text for a person. */
#include "exporter/base/http_internal.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
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

static enum http_error classify(const struct http_call *c, CURLcode code)
{
    long connect_status = info_long(c, CURLINFO_HTTP_CONNECTCODE);

    /* The proxy refused the tunnel. */
    if (code == CURLE_RECV_ERROR && connect_status != 0 && connect_status / 100 != 2)
        return HTTP_CONNECT;
    /* The URL of the call is valid, so this one is from a redirect. */
    if (code == CURLE_URL_MALFORMAT && info_long(c, CURLINFO_RESPONSE_CODE) != 0)
        return HTTP_BROKEN;
    /* curl's error for a header line over its own limit of 100 KiB, which is likelier here than a failed
     * allocation. */
    if (code == CURLE_OUT_OF_MEMORY && c->in_headers)
        return HTTP_TOO_LARGE;
    for (size_t i = 0; i < ARRAY_SIZE(classes); i++)
        if (classes[i].code == code)
            return classes[i].error;
    return HTTP_BROKEN;
}

/* "host:port" of the last URL requested; "the server" if unknown. */
static void get_server(const struct http_call *c, char *out, size_t n, char *host, size_t host_n)
{
    char *url = NULL, *name = NULL, *port = NULL;
    CURLU *u = curl_url();

    (void)snprintf(out, n, "the server");
    host[0] = '\0';
    if (u && curl_easy_getinfo(c->easy, CURLINFO_EFFECTIVE_URL, &url) == CURLE_OK && url &&
        curl_url_set(u, CURLUPART_URL, url, 0) == CURLUE_OK &&
        curl_url_get(u, CURLUPART_HOST, &name, 0) == CURLUE_OK &&
        curl_url_get(u, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) == CURLUE_OK) {
        (void)snprintf(out, n, "%s:%s", name, port);
        (void)snprintf(host, host_n, "%s", name);
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

/* curl's text may quote the server or the URL of a redirect, so it is shown without user information. */
static void explain_by_curl(struct http_call *c, CURLcode code, enum http_error error)
{
    const char *text = c->curl_error[0] ? c->curl_error : curl_easy_strerror(code);
    BUF_AUTO(clean, sizeof(c->answer.reason) - 1);

    if (http_url_for_people((struct str){text, strnlen(text, CURL_ERROR_SIZE)}, &clean) < 0)
        clean.n = 0;
    http_fail(c, error, "%.*s", STR_ARG(buf_str(&clean)));
}

static bool starts_tls_with_http(const struct http_call *c)
{
    /* OpenSSL's words for a first record that is no TLS. */
    return strstr(c->curl_error, "wrong version number") || strstr(c->curl_error, "http request") ||
           strstr(c->curl_error, "packet length too long");
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

/* The server's alert on the client's certificate, in OpenSSL's words. */
static const char *refusal_by_alert(const struct http_call *c, enum http_error *error)
{
    static const struct {
        const char *alert, *text;
    } alerts[] = {
        {"alert certificate required", "requires a client certificate"},
        {"alert certificate expired", "refused the client certificate: it has expired"},
        {"alert certificate revoked", "refused the client certificate: it was revoked"},
        {"alert unknown ca", "refused the client certificate: it does not know its authority"},
        {"alert bad certificate", "refused the client certificate"},
        {"alert certificate unknown", "refused the client certificate"},
        {"alert unsupported certificate",
         "refused the client certificate: it is of a kind that is not supported"},
    };

    for (size_t i = 0; i < ARRAY_SIZE(alerts); i++)
        if (strstr(c->curl_error, alerts[i].alert)) {
            *error = HTTP_TLS;
            return alerts[i].text;
        }
    return NULL;
}

/* With TLS 1.3, a server refuses a client without a certificate after the handshake. libcurl then reports the
 * server's alert, or only that it could not write, or ask for the peer's address: which one is a race. A
 * connection that has served a request before was not refused. */
static const char *refused_certificate(const struct http_call *c, enum http_error *error)
{
    static const char *const closed[] = {"getpeername()", "bad write retry", "Broken pipe", "reset by peer"};
    const struct http_tls *tls = c->rq.tls;
    bool has_certificate = tls && (tls->cert.n || tls->cert_file);
    const char *why = refusal_by_alert(c, error);

    if (why)
        return has_certificate ? why : "requires a client certificate";
    if (!info_off(c, CURLINFO_APPCONNECT_TIME_T) || !info_long(c, CURLINFO_NUM_CONNECTS))
        return NULL;
    for (size_t i = 0; i < ARRAY_SIZE(closed); i++)
        if (strstr(c->curl_error, closed[i]))
            return has_certificate ? "closed the connection; it may not accept the client certificate"
                                   : "closed the connection; it may require a client certificate";
    return NULL;
}

/* The first text counts. */
static void reason_explain(struct http_call *c, CURLcode code, enum http_error error)
{
    char server[300], host[256];
    const char *why = refused_certificate(c, &error);
    int e = descriptor_error(c, error);

    get_server(c, server, sizeof(server), host, sizeof(host));
    if (e) {
        explain_descriptors(c, e, server);
        return;
    }
    if (why)
        http_fail(c, error, "%s %s", server, why);
    switch (error) {
    case HTTP_DNS:
        http_fail(c, error, "could not resolve host: %s", host[0] ? host : "unknown");
        break;
    case HTTP_CONNECT:
        why = connect_error_text(info_long(c, CURLINFO_OS_ERRNO));
        /* If a proxy could not be reached, curl's text names the proxy. */
        if (why && strstr(c->curl_error, host))
            http_fail(c, error, "could not connect to %s: %s", server, why);
        break;
    case HTTP_TIMEOUT:
        explain_timeout(c, server);
        break;
    case HTTP_TLS:
        if (starts_tls_with_http(c))
            http_fail(c, error, "%s does not speak TLS; if it is an http port, use http://", server);
        break;
    case HTTP_BROKEN:
        if (code == CURLE_UNSUPPORTED_PROTOCOL)
            http_fail(c, error, "%s does not speak HTTP; if it is an https port, use https://", server);
        break;
    case HTTP_TOO_LARGE:
        http_fail(c, error, "response header exceeds the limit of 102400 bytes");
        break;
    case HTTP_MEMORY:
        http_fail(c, error, "out of memory");
        break;
    default:
        break;
    }
    explain_by_curl(c, code, error);
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
