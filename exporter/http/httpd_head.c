/* The head of a request: judged before anything is done with it, then read. Owns nothing. Listener's thread.
 *
 * A head that another program reads in another way lets a request be smuggled past a proxy (RFC 9112,
 * sections 3.2, 5.1 and 6.3). libmicrohttpd refuses most such heads itself from 0.9.77 on, with
 * MHD_USE_PEDANTIC_CHECKS. Before, it accepts them: it takes an empty name for the end of the head, joins
 * folded lines, and ends the target and values at a NUL. The head is then longer than what it shows of it. */
#include "exporter/http/httpd_internal.h"

#include "exporter/base/buf.h"
#include "exporter/base/header.h"

#include <arpa/inet.h>
#include <stdio.h>

enum { ARGUMENTS_MAX = 64 << 10 /* more than the connection's memory */ };

/* The absolute-form is "http://host:port/path?query" (RFC 9112, section 3.2.2), as proxies are asked. The
 * length of "http://", or 0 for any other form. */
size_t httpd_target_scheme(const char *target)
{
    if (strncasecmp(target, "http://", 7) == 0)
        return 7;
    return strncasecmp(target, "https://", 8) == 0 ? 8 : 0;
}

/* Whether the authority, as it was sent, has no host, a user, or escapes, which could hide where it ends. */
static bool target_is_bad(const char *target)
{
    size_t scheme = httpd_target_scheme(target), n;

    if (scheme == 0)
        return false;
    n = strcspn(target + scheme, "/?#");
    return n == 0 || strcspn(target + scheme, "@%\\") < n;
}

/* The request target has been read, nothing else. The request has no context until its head has been read. */
void *httpd_on_target(void *cls, const char *target, struct MHD_Connection *connection)
{
    struct conn *c = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;

    (void)cls;
    c->target_size = target ? strlen(target) : 0;
    c->target_has_nul = target && strstr(target, "%00");
    c->target_is_bad = !target || target_is_bad(target);
    return NULL;
}

/* Leaves what is no escape as it is, in all versions of libmicrohttpd. */
size_t httpd_unescape(void *cls, struct MHD_Connection *connection, char *text)
{
    (void)cls, (void)connection;
    return MHD_http_unescape(text);
}

struct head {
    struct exchange *x;
    unsigned hosts, lengths, codings;
    bool bad_name, chunked;
    size_t size; /* of the fields as clients write them, one space after the colon */
    const char *host;
};

static enum MHD_Result head_on_field(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct head *h = arg;
    struct str n = str_of(name);

    (void)kind;
    value = cstr(value);
    h->size += n.n + strlen(": ") + strlen(value) + strlen("\r\n");
    if (!header_is_name(n)) {
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
    }
    return MHD_YES;
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

    if (host.n >= sizeof(text)) /* cut, it could be an address */
        return false;
    (void)snprintf(text, sizeof(text), "%.*s", STR_ARG(host));
    return str_eq_nocase(host, STR("localhost")) || str_eq_nocase(host, str_of(l->host)) ||
           inet_pton(AF_INET, text, address) == 1 || inet_pton(AF_INET6, text, address) == 1;
}

/* Whether a page of another site sent the request. Other clients than browsers send neither field. */
static bool head_is_cross_site(const struct head *h)
{
    const struct httpd_request *rq = &h->x->request;
    const struct httpd_route *route = h->x->route;
    const char *origin = httpd_header(rq, "Origin"), *fetch_site = httpd_header(rq, "Sec-Fetch-Site");
    const char *at = origin ? strstr(origin, "://") : NULL;
    struct str from = at ? head_host(at + 3) : STR("");

    if (route && route->local_origins &&
        (str_eq_nocase(from, STR("localhost")) || str_eq(from, STR("127.0.0.1")) || str_eq(from, STR("::1"))))
        return false;
    if (fetch_site && strcmp(fetch_site, "same-origin") != 0 && strcmp(fetch_site, "none") != 0)
        return true;
    return origin && !(at && str_eq_nocase(str_of(at + 3), str_of(h->host)));
}

/* Refuses what a proxy in front might read in another way, a Host that a page of another site may have been
 * given, and requests of other sites' pages that change something. NULL, or the text of the refusal. */
static const char *head_problem(const struct head *h, const char *method, const char *version)
{
    const struct conn *c = h->x->conn;
    const struct listener *l = c->listener;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(h->x->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    size_t line = strlen(method) + 1 + c->target_size + 1 + strlen(version) + strlen("\r\n");

    if (c->target_has_nul)
        return "400: NUL in the request target\n";
    if (c->target_is_bad)
        return "400: invalid host in the request target\n";
    /* It has bytes that libmicrohttpd passed over, see above. More than one space after a colon counts as
     * such; spaces and line feeds that are missing elsewhere can make up for them. */
    if (h->bad_name || (!l->server->checks_heads && info->header_size > line + h->size + strlen("\r\n")))
        return "400: invalid header\n";
    if (h->hosts > 1)
        return "400: several Host fields\n";
    if (h->lengths > 1 || h->codings > 1 || (h->lengths && h->codings))
        return "400: several Content-Length or Transfer-Encoding fields\n";
    if (h->codings && !h->chunked)
        return "400: unsupported Transfer-Encoding\n";
    if (l->loopback && h->host && !head_is_local_host(h->host, l))
        return "421: this address only serves requests whose Host is localhost or an IP address\n";
    if (strcmp(h->x->request.method, "GET") != 0 && head_is_cross_site(h))
        return "403: cross-origin request refused\n";
    return NULL;
}

static enum MHD_Result on_argument(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct buf *all = arg;
    struct buf_mark mark = buf_mark(all);

    (void)kind;
    if (!value)
        return MHD_YES;
    buf_put(all, name, strlen(name) + 1);
    buf_put(all, value, strlen(value) + 1);
    if (buf_failed(all) == 0)
        return MHD_YES;
    buf_rollback(all, mark); /* httpd_query() reads pairs */
    return MHD_NO;
}

/* Reads the fields and the query of a request whose route is known. NULL, or the text of the refusal. */
const char *httpd_head_read(struct exchange *x, const char *method, const char *version)
{
    struct httpd_request *rq = &x->request;
    struct head h = {.x = x};

    x->arguments.max = ARGUMENTS_MAX;
    (void)MHD_get_connection_values(x->connection, MHD_GET_ARGUMENT_KIND, on_argument, &x->arguments);
    rq->arguments = buf_str(&x->arguments);
    rq->accept = cstr(httpd_header(rq, "Accept"));
    rq->accept_encoding = cstr(httpd_header(rq, "Accept-Encoding"));
    rq->if_none_match = cstr(httpd_header(rq, "If-None-Match"));
    rq->content_type = cstr(httpd_header(rq, "Content-Type"));
    rq->content_encoding = cstr(httpd_header(rq, "Content-Encoding"));
    rq->authorization = cstr(httpd_header(rq, "Authorization"));
    (void)MHD_get_connection_values(x->connection, MHD_HEADER_KIND, head_on_field, &h);
    if (x->authority) /* Host does not count then (RFC 9112, section 3.2.2) */
        h.host = x->authority;
    return head_problem(&h, method, version);
}
