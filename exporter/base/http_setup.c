/* Sets the options of a transfer. */
#include "exporter/base/http_internal.h"
#include "exporter/base/inflate.h"
#include "exporter/base/secret.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

enum {
    CONNECT_TIMEOUT_MS = 10000,
    MAX_REDIRECTS = 5,
    CA_CACHE_SECONDS = 300,
    /* A smaller body is sent in the same packet as the headers. */
    JOIN_BELOW = 16 << 10,
    LARGE_BODY = 256 << 10,
    LARGE_BUFFER = 512 << 10,
    READ_BUFFER = 64 << 10,
};

/* Headers of every call, after one of the two Accept-Encoding. On a local network decoding costs more than
 * compression saves; a compressed response is decoded nevertheless. `Expect: 100-continue` would cost a round
 * trip. */
static struct curl_slist common_headers[] = {
    {.data = (char *)(uintptr_t) "Accept: application/json", .next = &common_headers[1]},
    {.data = (char *)(uintptr_t) "Expect:", .next = NULL},
};
static struct curl_slist accept_identity = {.data = (char *)(uintptr_t) "Accept-Encoding: identity",
                                            .next = common_headers};
static struct curl_slist accept_gzip = {.data = (char *)(uintptr_t) "Accept-Encoding: gzip",
                                        .next = common_headers};
/* status_decides: suppresses curl's own Accept. */
static struct curl_slist accept_nothing = {.data = (char *)(uintptr_t) "Accept:", .next = &common_headers[1]};

static struct curl_slist *common_of(const struct http_call *c)
{
    if (c->rq.status_decides)
        return &accept_nothing;
    return c->rq.accept_gzip ? &accept_gzip : &accept_identity;
}

#define SET(option, value)                                           \
    do {                                                             \
        CURLcode code_ = curl_easy_setopt(easy, option, value);      \
        if (code_ != CURLE_OK)                                       \
            return code_ == CURLE_OUT_OF_MEMORY ? -ENOMEM : -EINVAL; \
    } while (0)

static int set_limits(const struct http_call *c, CURL *easy)
{
    long connect_ms = c->rq.timeout_ms < CONNECT_TIMEOUT_MS ? (long)c->rq.timeout_ms : CONNECT_TIMEOUT_MS;

    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_TIMEOUT_MS, (long)c->rq.timeout_ms);
    SET(CURLOPT_CONNECTTIMEOUT_MS, connect_ms);
    /* Do not block the loop in curl_easy_cleanup() until the resolver's thread has timed out. */
    SET(CURLOPT_QUICK_EXIT, 1L);
    SET(CURLOPT_BUFFERSIZE, (long)READ_BUFFER);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
    /* With HTTP/2 a large body would share its connection, and its failure, with other calls. */
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_FOLLOWLOCATION, (long)!c->rq.no_redirects);
    SET(CURLOPT_MAXREDIRS, (long)MAX_REDIRECTS);
    SET(CURLOPT_POSTREDIR, (long)(CURL_REDIR_POST_301 | CURL_REDIR_POST_302));
    return 0;
}

/* A missing SSL_CERT_FILE leaves SSL_CERT_DIR, as in Go: one manifest sets both for all clusters, but
 * only OpenShift's have a service CA. Looked up each time, since a ConfigMap may be mounted later. */
static const char *ca_file_now(const struct http *h)
{
    return h->ca_file && h->ca_dir && access(h->ca_file, F_OK) < 0 ? NULL : h->ca_file;
}

static int set_tls(const struct http *h, CURL *easy)
{
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_SSL_VERIFYPEER, 1L);
    SET(CURLOPT_SSL_VERIFYHOST, 2L);
    SET(CURLOPT_CA_CACHE_TIMEOUT, (long)CA_CACHE_SECONDS);
    if (h->ca_file || h->ca_dir)
        SET(CURLOPT_CAINFO, ca_file_now(h));
    /* curl shares the certificates of one file among connections, but not those of a folder: 840 kB each. */
    SET(CURLOPT_CAPATH, h->ca_dir);
    return 0;
}

static int set_bearer(CURL *easy, struct str bearer)
{
    struct str token;
    char *copy;
    CURLcode code;

    if (bearer.n == 0)
        return 0;
    if (secret_token(bearer, &token) || token.n != bearer.n)
        return -EINVAL;
    copy = str_dup(token);
    code = curl_easy_setopt(easy, CURLOPT_XOAUTH2_BEARER, copy);
    copy = secret_free(copy);
    if (code != CURLE_OK)
        return -ENOMEM;
    SET(CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
    return 0;
}

static void join_body(struct http_call *c)
{
    char *at = xmalloc(c->body_bytes + 1);

    c->joined = at;
    for (size_t i = 0; i < c->n_parts; i++)
        if (c->parts[i].n)
            at = mempcpy(at, c->parts[i].p, c->parts[i].n);
}

static int set_body(struct http_call *c, CURL *easy)
{
    SET(CURLOPT_POST, 1L);
    SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)c->body_bytes);
    if (c->body_bytes < JOIN_BELOW) {
        join_body(c);
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

static void list_append(struct curl_slist **list, const char *text)
{
    struct curl_slist *more = curl_slist_append(*list, text);

    *list = more ? more : *list;
}

/* Puts the caller's headers between Content-Type and the common ones. */
static int set_extra_headers(struct http_call *c, const struct http_request *rq)
{
    struct curl_slist *last;

    for (size_t i = 0; i < rq->n_headers; i++)
        list_append(&c->extra, rq->headers[i]);
    for (last = c->extra; last && last->next;)
        last = last->next;
    if (last) {
        last->next = common_of(c);
        c->headers.next = c->extra;
    }
    return 0;
}

static int set_headers(struct http_call *c, CURL *easy, const char *content_type)
{
    /* A header without a value makes curl omit its own Content-Type. */
    int n = snprintf(c->content_type, sizeof(c->content_type), "Content-Type:%s%s", content_type ? " " : "",
                     cstr(content_type));

    if (n < 0 || (size_t)n >= sizeof(c->content_type))
        return -EINVAL;
    c->headers = (struct curl_slist){.data = c->content_type, .next = common_of(c)};
    SET(CURLOPT_HTTPHEADER, &c->headers);
    SET(CURLOPT_USERAGENT, c->http->user_agent);
    return 0;
}

static struct curl_blob blob_of(struct str s)
{
    return (struct curl_blob){.data = (void *)(uintptr_t)s.p, .len = s.n, .flags = CURL_BLOB_NOCOPY};
}

static int set_tls_blobs(CURL *easy, const struct http_tls *tls)
{
    struct curl_blob ca = blob_of(tls->ca), cert = blob_of(tls->cert), key = blob_of(tls->key);

    if (tls->ca.n) {
        SET(CURLOPT_CAINFO, NULL);
        SET(CURLOPT_CAPATH, NULL);
        SET(CURLOPT_CAINFO_BLOB, &ca);
    }
    if (tls->cert.n) {
        SET(CURLOPT_SSLCERT_BLOB, &cert);
        SET(CURLOPT_SSLKEY_BLOB, &key);
    }
    return 0;
}

static int set_call_tls(CURL *easy, const struct http_tls *tls)
{
    if (tls->ca_file) {
        SET(CURLOPT_CAINFO, tls->ca_file);
        SET(CURLOPT_CAPATH, NULL);
    }
    if (tls->cert_file) {
        SET(CURLOPT_SSLCERT, tls->cert_file);
        SET(CURLOPT_SSLKEY, tls->key_file);
    }
    if (tls->insecure) {
        SET(CURLOPT_SSL_VERIFYPEER, 0L);
        SET(CURLOPT_SSL_VERIFYHOST, 0L);
    }
    return set_tls_blobs(easy, tls);
}

struct url_parts {
    CURLU *u;
    char *host, *port, *url;
};

static void url_parts_done(struct url_parts *p)
{
    curl_free(p->host);
    curl_free(p->port);
    curl_free(p->url);
    curl_url_cleanup(p->u);
}

/* curl verifies the URL's host name and sends it as SNI. So the URL gets the server's name, and
 * CURLOPT_CONNECT_TO leads to the real host. */
static int set_server_name(struct http_call *c, CURL *easy, const char *url, const char *name)
{
    CLEANUP(url_parts_done) struct url_parts p = {.u = curl_url()};
    char text[1024];

    if (curl_url_set(p.u, CURLUPART_URL, url, 0) != CURLUE_OK ||
        curl_url_get(p.u, CURLUPART_HOST, &p.host, 0) != CURLUE_OK ||
        curl_url_get(p.u, CURLUPART_PORT, &p.port, CURLU_DEFAULT_PORT) != CURLUE_OK ||
        curl_url_set(p.u, CURLUPART_HOST, name, 0) != CURLUE_OK ||
        curl_url_get(p.u, CURLUPART_URL, &p.url, 0) != CURLUE_OK ||
        snprintf(text, sizeof(text), "%s:%s:%s:%s", name, p.port, p.host, p.port) >= (int)sizeof(text))
        return -EINVAL;
    SET(CURLOPT_URL, p.url);
    list_append(&c->connect_to, text);
    SET(CURLOPT_CONNECT_TO, c->connect_to);
    (void)snprintf(text, sizeof(text), "Host: %s:%s", p.host, p.port);
    list_append(&c->extra, text);
    return 0;
}

/* Options that few callers set. */
static int set_extras(struct http_call *c, CURL *easy, const struct http_request *rq)
{
    const char *server_name = rq->tls ? rq->tls->server_name : NULL;
    int r = server_name ? set_server_name(c, easy, rq->url, server_name) : 0;

    r = r ?: set_extra_headers(c, rq);
    if (r < 0)
        return r;
    /* The status of a proxy's answer to CONNECT decides nothing. */
    if (rq->status_decides)
        SET(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    if (rq->proxy) {
        SET(CURLOPT_PROXY, rq->proxy);
        SET(CURLOPT_NOPROXY, "");
    }
    if (rq->user) {
        SET(CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        SET(CURLOPT_USERNAME, rq->user);
        SET(CURLOPT_PASSWORD, cstr(rq->password));
    }
    if (rq->tls && (r = set_call_tls(easy, rq->tls)) < 0)
        return r;
    return rq->public_only ? http_set_public_only(c, easy) : 0;
}

static int set_callbacks(struct http_call *c, CURL *easy)
{
    SET(CURLOPT_PRIVATE, c);
    SET(CURLOPT_ERRORBUFFER, c->curl_error);
    SET(CURLOPT_HEADERFUNCTION, http_on_header);
    SET(CURLOPT_HEADERDATA, c);
    SET(CURLOPT_WRITEFUNCTION, http_on_body);
    SET(CURLOPT_WRITEDATA, c);
    SET(CURLOPT_OPENSOCKETFUNCTION, http_on_open_socket);
    SET(CURLOPT_OPENSOCKETDATA, c);
    return 0;
}

int http_set_up(struct http_call *c, CURL *easy, const struct http_request *rq)
{
    SET(CURLOPT_URL, rq->url);
    return set_limits(c, easy)
               ?: set_tls(c->http, easy)
               ?: set_headers(c, easy, rq->content_type)
               ?: set_bearer(easy, rq->bearer)
               ?: set_extras(c, easy, rq)
               ?: set_method(c, easy, rq->method)
               ?: set_callbacks(c, easy);
}

/* The last of the caller's headers points to the common ones, which are static. */
void http_tear_down(struct http_call *c)
{
    for (struct curl_slist *h = c->extra; h; h = h->next)
        if (h->next == common_of(c))
            h->next = NULL;
    curl_slist_free_all(c->extra);
    curl_slist_free_all(c->connect_to);
    c->gzip = inflate_free(c->gzip);
}
