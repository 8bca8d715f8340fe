/* Reads the head of a request: its fields and its query.
 *
 * A head that another program reads in another way lets a request be smuggled past a proxy (RFC 9112,
 * sections 3.2, 5.1 and 6.3). libmicrohttpd refuses most such heads itself from 0.9.77 on, with
 * MHD_USE_PEDANTIC_CHECKS. Before, it accepts them: it takes an empty name for the end of the head, joins
 * folded lines, and ends the target and values at a NUL. The head is then longer than what it shows of it. */
#include "exporter/base/httpd_internal.h"

#include <arpa/inet.h>
#include <stdio.h>

enum { ARGUMENTS_MAX = 64 << 10 }; /* more than the connection's memory */

struct head {
    struct exchange *x;
    unsigned hosts, lengths, codings;
    bool bad_name, chunked;
    size_t size; /* of the fields as clients write them, one space after the colon */
    const char *host, *origin, *fetch_site;
};

/* A token of RFC 9110, section 5.6.2. */
static bool head_is_token(const char *s)
{
    size_t n = strspn(s, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");

    return n && !s[n];
}

/* Sets the request's field; several of one name are joined, which the connection's memory bounds. */
static void head_keep(struct exchange *x, struct str name, const char *value)
{
    struct httpd_request *rq = &x->request;
    const struct {
        struct str name;
        const char **at;
    } fields[JOINED_FIELDS] = {
        {STR("Accept"), &rq->accept},
        {STR("Accept-Encoding"), &rq->accept_encoding},
        {STR("If-None-Match"), &rq->if_none_match},
        {STR("Content-Type"), &rq->content_type},
        {STR("Content-Encoding"), &rq->content_encoding},
        {STR("Authorization"), &rq->authorization},
    };

    for (size_t i = 0; i < JOINED_FIELDS; i++) {
        char *joined;

        if (!str_eq_nocase(name, fields[i].name))
            continue;
        if (!**fields[i].at) {
            *fields[i].at = value;
            return;
        }
        joined = xasprintf("%s, %s", *fields[i].at, value);
        free(x->joined[i]);
        *fields[i].at = x->joined[i] = joined;
    }
}

static enum MHD_Result head_on_field(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct head *h = arg;
    struct str n = str_of(name);

    (void)kind;
    value = cstr(value);
    h->size += n.n + strlen(": ") + strlen(value) + strlen("\r\n");
    if (!head_is_token(name)) {
        h->bad_name = true;
    } else if (str_eq_nocase(n, STR("Host"))) {
        h->hosts++;
        h->host = value;
    } else if (str_eq_nocase(n, STR("Content-Length"))) {
        h->lengths++;
        h->x->body_announced = strtoull(value, NULL, 10);
    } else if (str_eq_nocase(n, STR("Transfer-Encoding"))) {
        h->codings++;
        h->chunked = str_eq_nocase(str_of(value), STR("chunked"));
    } else if (str_eq_nocase(n, STR("Origin"))) {
        h->origin = value;
    } else if (str_eq_nocase(n, STR("Sec-Fetch-Site"))) {
        h->fetch_site = value;
    } else {
        head_keep(h->x, n, value);
    }
    return MHD_YES;
}

/* Whether the head has bytes that libmicrohttpd passed over, see above. More than one space after a colon
 * counts as such; spaces and line feeds that are missing elsewhere can make up for them. */
static bool head_hides_bytes(const struct head *h, const char *method, const char *version)
{
    const struct exchange *x = h->x;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    size_t line = strlen(method) + 1 + x->conn->target_size + 1 + strlen(version) + strlen("\r\n");

    return !x->server->checks_heads && info->header_size > line + h->size + strlen("\r\n");
}

/* The host without port and brackets. */
static struct str head_host(const char *authority)
{
    struct str s = str_of(authority);
    const char *end = s.n && s.p[0] == '[' ? memchr(s.p, ']', s.n) : memchr(s.p, ':', s.n);

    if (end)
        s.n = (size_t)(end - s.p);
    return s.n && s.p[0] == '[' ? (struct str){s.p + 1, s.n - 1} : s;
}

/* A page of another site that had its own name point to this host sends that name (DNS rebinding); an
 * address cannot be made to point elsewhere. */
static bool head_is_local_host(const char *authority, const struct listener *l)
{
    struct str host = head_host(authority);
    char text[INET6_ADDRSTRLEN];
    unsigned char address[16];

    (void)snprintf(text, sizeof(text), "%.*s", STR_ARG(host));
    return str_eq_nocase(host, STR("localhost")) || str_eq_nocase(host, str_of(l->host)) ||
           inet_pton(AF_INET, text, address) == 1 || inet_pton(AF_INET6, text, address) == 1;
}

/* Whether a page of another site sent the request. Other clients than browsers send neither field. */
static bool head_is_cross_site(const struct head *h)
{
    const struct httpd_route *route = h->x->route;
    const char *at = h->origin ? strstr(h->origin, "://") : NULL;
    struct str from = at ? head_host(at + 3) : STR("");

    if (route && route->local_origins &&
        (str_eq_nocase(from, STR("localhost")) || str_eq(from, STR("127.0.0.1")) || str_eq(from, STR("::1"))))
        return false;
    if (h->fetch_site && strcmp(h->fetch_site, "same-origin") != 0 && strcmp(h->fetch_site, "none") != 0)
        return true;
    return h->origin && !(at && str_eq_nocase(str_of(at + 3), str_of(h->host)));
}

static const char *head_problem(const struct head *h, const char *method, const char *version)
{
    if (h->x->conn->target_has_nul)
        return "400: NUL in the request target\n";
    if (head_hides_bytes(h, method, version))
        return "400: invalid header\n";
    if (h->bad_name)
        return "400: invalid name of a header field\n";
    if (h->hosts > 1)
        return "400: several Host fields\n";
    if (h->lengths > 1 || h->codings > 1 || (h->lengths && h->codings))
        return "400: several Content-Length or Transfer-Encoding fields\n";
    return h->codings && !h->chunked ? "400: unsupported Transfer-Encoding\n" : NULL;
}

static enum MHD_Result on_argument(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct buf *all = arg;

    (void)kind;
    return !value ||
                   (buf_put(all, name, strlen(name) + 1) == 0 && buf_put(all, value, strlen(value) + 1) == 0)
               ? MHD_YES
               : MHD_NO;
}

unsigned httpd_head_read(struct exchange *x, const char *method, const char *version, const char **ret_text)
{
    const struct listener *l = x->conn->listener;
    struct httpd_request *rq = &x->request;
    struct head h = {.x = x};

    x->arguments.max = ARGUMENTS_MAX;
    (void)MHD_get_connection_values(x->connection, MHD_GET_ARGUMENT_KIND, on_argument, &x->arguments);
    rq->arguments = buf_str(&x->arguments);
    rq->accept = rq->accept_encoding = rq->if_none_match = "";
    rq->content_type = rq->content_encoding = rq->authorization = "";
    (void)MHD_get_connection_values(x->connection, MHD_HEADER_KIND, head_on_field, &h);
    *ret_text = head_problem(&h, method, version);
    if (*ret_text)
        return MHD_HTTP_BAD_REQUEST;
    if (l->loopback && h.host && !head_is_local_host(h.host, l)) {
        *ret_text = "421: this address only serves requests whose Host is localhost or an IP address\n";
        return MHD_HTTP_MISDIRECTED_REQUEST;
    }
    if (strcmp(rq->method, "GET") != 0 && head_is_cross_site(&h)) {
        *ret_text = "403: cross-origin request refused\n";
        return MHD_HTTP_FORBIDDEN;
    }
    return 0;
}

/* ---- For others ---- */

/* The request target has been read, nothing else. The request has no context until its head has been read. */
void *httpd_on_target(void *cls, const char *target, struct MHD_Connection *connection)
{
    struct conn *c = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;

    (void)cls;
    c->target_size = strlen(cstr(target));
    c->target_has_nul = strstr(cstr(target), "%00");
    return NULL;
}

/* Leaves what is no escape as it is, in all versions of libmicrohttpd. */
size_t httpd_unescape(void *cls, struct MHD_Connection *connection, char *text)
{
    (void)cls;
    (void)connection;
    return MHD_http_unescape(text);
}

const char *httpd_query(const struct httpd_request *rq, const char *name)
{
    struct str all = rq->arguments;

    for (const char *p = all.p; all.n && p < all.p + all.n;) {
        const char *value = p + strlen(p) + 1;

        if (strcmp(p, name) == 0)
            return value;
        p = value + strlen(value) + 1;
    }
    return NULL;
}

/* On the loop, too: libmicrohttpd does not touch the head of a suspended connection. */
const char *httpd_header(const struct httpd_request *rq, const char *name)
{
    const struct exchange *x = CONTAINER_OF(rq, const struct exchange, request);

    return MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, name);
}
