/* The options of a call: what is sent, to where, and whom it trusts. */
#include "exporter/base/random.h"
#include "exporter/base/secret.h"
#include "exporter/http/http_internal.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdio.h>

enum {
    CONNECT_TIMEOUT_MS = 10000,
    CA_CACHE_SECONDS = 300,
    JOIN_BELOW = 16 << 10, /* a smaller body is sent in the same packet as the headers */
    LARGE_BODY = 256 << 10,
    LARGE_BUFFER = 512 << 10,
    READ_BUFFER = 64 << 10,
};

#define SET(option, value) (c->bad_option |= curl_easy_setopt(c->easy, option, value) != CURLE_OK)

static void set_limits(struct http_call *c)
{
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_TIMEOUT_MS, (long)c->rq.timeout_ms);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    /* Do not block the loop in curl_easy_cleanup() until the resolver's thread has timed out. */
    SET(CURLOPT_QUICK_EXIT, 1L);
    SET(CURLOPT_BUFFERSIZE, (long)READ_BUFFER);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    /* With HTTP/2 a large body would share its connection, and its failure, with other calls. */
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_FOLLOWLOCATION, 0L); /* redirect.h */
}

static struct curl_blob blob_of(struct str s)
{
    return (struct curl_blob){.data = (void *)(uintptr_t)s.p, .len = s.n, .flags = CURL_BLOB_COPY};
}

static void set_tls(struct http_call *c)
{
    const struct http_tls none = {0}, *tls = c->rq.tls ? c->rq.tls : &none;
    const char *ca_file = getenv("SSL_CERT_FILE"), *ca_dir = getenv("SSL_CERT_DIR");
    bool own_ca = tls->ca_file || tls->ca.n;
    struct curl_blob ca = blob_of(tls->ca), cert = blob_of(tls->cert), key = blob_of(tls->key);

    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_SSL_VERIFYPEER, (long)!tls->insecure);
    SET(CURLOPT_SSL_VERIFYHOST, tls->insecure ? 0L : 2L);
    SET(CURLOPT_CA_CACHE_TIMEOUT, (long)CA_CACHE_SECONDS);
    /* A missing SSL_CERT_FILE leaves SSL_CERT_DIR, as in Go: one manifest sets both for all clusters, but
     * only OpenShift's have a service CA. Looked up each time, since a ConfigMap may be mounted later. */
    if (!own_ca && ca_file && ca_dir && access(ca_file, F_OK) < 0)
        ca_file = NULL;
    if (own_ca || ca_file || ca_dir)
        SET(CURLOPT_CAINFO, tls->ca.n ? NULL : tls->ca_file ?: ca_file);
    /* curl shares the certificates of one file among connections, but not those of a folder: 840 kB each. */
    SET(CURLOPT_CAPATH, own_ca ? NULL : ca_dir);
    if (tls->ca.n)
        SET(CURLOPT_CAINFO_BLOB, &ca);
    SET(CURLOPT_SSLCERT, tls->cert_file);
    SET(CURLOPT_SSLKEY, tls->key_file);
    if (tls->cert.n) {
        SET(CURLOPT_SSLCERT_BLOB, &cert);
        SET(CURLOPT_SSLKEY_BLOB, &key);
    }
    /* A server knows a client by the session that it resumes, and libcurl 8.14 resumes that of another
     * certificate where the server's is not verified. */
    if (tls->insecure)
        SET(CURLOPT_SSL_SESSIONID_CACHE, 0L);
}

void http_set_bearer(struct http_call *c, struct str token)
{
    char *text = str_dup(token);

    secret_used(token);
    SET(CURLOPT_XOAUTH2_BEARER, text);
    SET(CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
    (void)secret_free(text);
}

static size_t on_read(char *to, size_t size, size_t n, void *arg)
{
    struct http_call *c = arg;
    size_t room = size * n, done = 0;

    while (done < room && c->part < c->rq.body_parts) {
        struct str part = c->parts[c->part];
        size_t some = size_min(room - done, part.n - c->offset);

        if (some)
            memcpy(to + done, part.p + c->offset, some);
        done += some;
        c->offset += some;
        if (c->offset == part.n) {
            c->part++;
            c->offset = 0;
        }
    }
    return done;
}

/* curl sends the body again from its start if a reused connection was closed. */
static int on_seek(void *arg, curl_off_t offset, int origin)
{
    struct http_call *c = arg;

    if (origin != SEEK_SET || offset != 0)
        return CURL_SEEKFUNC_FAIL;
    c->part = c->offset = 0;
    return CURL_SEEKFUNC_OK;
}

static void set_body(struct http_call *c)
{
    SET(CURLOPT_POST, 1L);
    SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->body_bytes);
    if (c->body_bytes < JOIN_BELOW) {
        char joined[JOIN_BELOW];

        (void)on_read(joined, 1, sizeof(joined), c);
        SET(CURLOPT_COPYPOSTFIELDS, joined);
        return;
    }
    if (c->body_bytes >= LARGE_BODY)
        SET(CURLOPT_UPLOAD_BUFFERSIZE, (long)LARGE_BUFFER);
    SET(CURLOPT_READFUNCTION, on_read);
    SET(CURLOPT_READDATA, c);
    SET(CURLOPT_SEEKFUNCTION, on_seek);
    SET(CURLOPT_SEEKDATA, c);
}

static void set_method(struct http_call *c)
{
    const char *own = c->rq.body_parts ? "POST" : "GET", *method = http_method(&c->rq);

    if (c->rq.body_parts || strcmp(method, "POST") == 0)
        set_body(c);
    if (strcmp(method, own) != 0 && strcmp(method, "POST") != 0)
        SET(CURLOPT_CUSTOMREQUEST, method);
}

static void append_header(struct http_call *c, const char *line)
{
    c->headers = curl_slist_append(c->headers, line);
}

/* curl verifies the URL's host name and sends it as SNI. So the URL gets the server's name, and
 * CURLOPT_CONNECT_TO leads to the real host. */
static void set_server_name(struct http_call *c, const char *name)
{
    CLEANUP(cleanup_curl_url_cleanup) CURLU *u = curl_url();
    CLEANUP(cleanup_free) char *origin = NULL, *route = NULL, *header = NULL;
    char *url = NULL;

    if (curl_url_set(u, CURLUPART_URL, c->rq.url, 0) == CURLUE_OK)
        origin = url_origin_of(u);
    if (!origin || curl_url_set(u, CURLUPART_HOST, name, 0) != CURLUE_OK ||
        curl_url_get(u, CURLUPART_URL, &url, 0) != CURLUE_OK) {
        c->bad_option = true;
        return;
    }
    SET(CURLOPT_URL, url);
    curl_free(url);
    route = xasprintf("::%s", strstr(origin, "://") + 3);
    c->connect_to = curl_slist_append(NULL, route);
    SET(CURLOPT_CONNECT_TO, c->connect_to);
    header = xasprintf("Host: %s", route + 2);
    append_header(c, header);
}

void http_trace_id(char ret[HTTP_TRACE_BYTES])
{
    (void)snprintf(ret, HTTP_TRACE_BYTES, "%016" PRIx64 "%016" PRIx64, rand_u64(), rand_u64() | 1);
}

static void set_headers(struct http_call *c)
{
    const struct http_request *rq = &c->rq;
    /* A header without a value makes curl omit its own Content-Type. */
    CLEANUP(cleanup_free)
    char *type = xasprintf("Content-Type:%s%s", rq->content_type ? " " : "", cstr(rq->content_type)),
         *trace = NULL;

    append_header(c, type);
    if (rq->tls && rq->tls->server_name)
        set_server_name(c, rq->tls->server_name);
    for (size_t i = 0; i < rq->n_headers; i++)
        append_header(c, rq->headers[i]);
    /* Sampled: without the header, a server would decide by itself whether to record a trace; most do. */
    if (rq->trace) {
        trace = xasprintf("traceparent: 00-%s-%016" PRIx64 "-01", rq->trace, rand_u64() | 1);
        append_header(c, trace);
    }
    /* On a local network decoding costs more than compression saves; a compressed response is decoded
     * nevertheless. */
    if (!rq->status_decides)
        append_header(c, rq->accept_gzip ? "Accept-Encoding: gzip" : "Accept-Encoding: identity");
    append_header(c, rq->status_decides ? "Accept:" : "Accept: application/json");
    append_header(c, "Expect:"); /* `100-continue` would cost a round trip */
    SET(CURLOPT_HTTPHEADER, c->headers);
    SET(CURLOPT_USERAGENT, c->http->user_agent);
}

/* ---- The way to the server ---- */

/* The check is on the address that curl is about to connect to, not on the name, so it also covers names that
 * resolve differently the second time. If a name has several addresses, the last one tried decides the
 * error. */
static curl_socket_t on_open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
    struct http_call *c = arg;
    const char *p = (const char *)&a->addr;
    uint16_t port;

    (void)purpose;
    memcpy(&port, p + offsetof(struct sockaddr_in, sin_port), sizeof(port)); /* at the same place in both */
    c->socket_port = ntohs(port);
    p += a->family == AF_INET6 ? offsetof(struct sockaddr_in6, sin6_addr)
                               : offsetof(struct sockaddr_in, sin_addr);
    if (!inet_ntop(a->family, p, c->socket_address, sizeof(c->socket_address)))
        c->socket_address[0] = '\0';
    if (!c->rq.public_only || address_is_public(a->family, p)) {
        c->refused[0] = '\0';
        return socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
    }
    (void)inet_ntop(a->family, p, c->refused, sizeof(c->refused));
    return CURL_SOCKET_BAD;
}

/* Should curl use an existing connection nevertheless, no socket is opened, so the peer is checked again
 * before each request. */
static int on_connected(void *arg, char *peer, char *local, int peer_port, int local_port)
{
    struct http_call *c = arg;
    int family = strchr(peer, ':') ? AF_INET6 : AF_INET;
    struct in6_addr address;

    (void)local, (void)peer_port, (void)local_port;
    if (inet_pton(family, peer, &address) == 1 && address_is_public(family, &address))
        return CURL_PREREQFUNC_OK;
    (void)snprintf(c->refused, sizeof(c->refused), "%s", peer);
    return CURL_PREREQFUNC_ABORT;
}

static void set_route(struct http_call *c)
{
    SET(CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    SET(CURLOPT_OPENSOCKETDATA, c);
    if (c->rq.proxy) {
        SET(CURLOPT_PROXY, c->rq.proxy);
        SET(CURLOPT_NOPROXY, "");
    }
    /* The status of a proxy's answer to CONNECT decides nothing. */
    if (c->rq.status_decides)
        SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    if (c->rq.public_only) {
        SET(CURLOPT_PREREQFUNCTION, on_connected);
        SET(CURLOPT_PREREQDATA, c);
        SET(CURLOPT_FRESH_CONNECT, 1L);
        SET(CURLOPT_FORBID_REUSE, 1L);
        SET(CURLOPT_PROXY, "");
    }
}

static void header_used(const char *header)
{
    struct str name = {header, strcspn(header, ":")},
               value = str_trim(str_of(header + name.n + !!header[name.n]));
    const char *space = value.n ? memchr(value.p, ' ', value.n) : NULL;

    /* All other values may be secrets: X-Api-Key, Cookie and so on. Versions and codings are too short. */
    if (str_eq_nocase(name, STR("Accept")) || str_eq_nocase(name, STR("X-Scope-OrgID")))
        return;
    if (space && str_eq_nocase(name, STR("Authorization"))) /* without the scheme */
        value = str_trim((struct str){space + 1, value.n - (size_t)(space + 1 - value.p)});
    secret_used(value);
}

bool http_set_up(struct http_call *c)
{
    const struct http_request *rq = &c->rq;

    /* A server may return the secrets of a call, so no text may show them from now on. */
    if (rq->user && rq->password)
        secret_used_basic(str_of(rq->user), str_of(rq->password));
    for (size_t i = 0; i < rq->n_headers; i++)
        header_used(rq->headers[i]);
    url_secrets_used(rq->url);
    url_secrets_used(cstr(rq->proxy));
    SET(CURLOPT_URL, c->rq.url);
    set_limits(c);
    set_tls(c);
    set_headers(c);
    if (c->rq.bearer.n)
        http_set_bearer(c, c->rq.bearer);
    if (c->rq.user) {
        SET(CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        SET(CURLOPT_USERNAME, c->rq.user);
        SET(CURLOPT_PASSWORD, cstr(c->rq.password));
    }
    set_route(c);
    set_method(c);
    SET(CURLOPT_PRIVATE, c);
    SET(CURLOPT_ERRORBUFFER, c->curl_error);
    SET(CURLOPT_HEADERFUNCTION, http_on_header);
    SET(CURLOPT_HEADERDATA, c);
    SET(CURLOPT_WRITEFUNCTION, http_on_body);
    SET(CURLOPT_WRITEDATA, c);
    return !c->bad_option;
}

bool http_set_hop(struct http_call *c, int64_t timeout_ms)
{
    c->part = c->offset = 0;
    SET(CURLOPT_URL, NULL);
    SET(CURLOPT_CURLU, c->url);
    SET(CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    return !c->bad_option;
}
