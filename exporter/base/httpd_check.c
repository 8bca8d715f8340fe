/* What a request's head must and must not be, and its query.
 *
 * libmicrohttpd 0.9.75 accepts heads that another program reads in another way, which lets a request be
 * smuggled past a proxy: it takes the first of two Content-Lengths or Hosts, prefers Transfer-Encoding to
 * Content-Length, takes "Transfer-Encoding " as a name of its own, and ends a path at a NUL (RFC 9112,
 * sections 3.2, 5.1 and 6.3). */
#include "exporter/base/httpd_internal.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>

struct head {
    unsigned hosts, lengths, codings;
    bool bad_name, chunked, torn;
    uintptr_t end; /* of the line before */
    const char *host, *origin, *fetch_site;
};

/* A token of RFC 9110, section 5.6.2. */
static bool head_is_token(const char *s)
{
    size_t n = strspn(s, "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");

    return n && !s[n];
}

/* libmicrohttpd reads a head in place and replaces the end of each line with one NUL or two. If the lines
 * do not follow each other, it took a NUL or an empty name for the end of a value or of the head, or moved
 * a name on to which it had joined the next line. */
static bool head_follows(uintptr_t end, uintptr_t next, size_t max)
{
    static const char nuls[4];

    return next > end && next - end <= max && memcmp((const void *)end, nuls, next - end) == 0;
}

static enum MHD_Result head_on_field(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
    struct head *h = arg;
    struct str n = str_of(name);

    (void)kind;
    value = cstr(value);
    h->torn = h->torn || !head_follows(h->end, (uintptr_t)name, 2);
    h->end = (uintptr_t)value + strlen(value);
    if (!head_is_token(name)) {
        h->bad_name = true;
    } else if (str_eq_nocase(n, STR("Host"))) {
        h->hosts++;
        h->host = value;
    } else if (str_eq_nocase(n, STR("Content-Length"))) {
        h->lengths++;
    } else if (str_eq_nocase(n, STR("Transfer-Encoding"))) {
        h->codings++;
        h->chunked = str_eq_nocase(str_of(value), STR("chunked"));
    } else if (str_eq_nocase(n, STR("Origin"))) {
        h->origin = value;
    } else if (str_eq_nocase(n, STR("Sec-Fetch-Site"))) {
        h->fetch_site = value;
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

    (void)snprintf(text, sizeof(text), "%.*s", STR_ARG(host));
    return str_eq_nocase(host, STR("localhost")) || str_eq_nocase(host, str_of(l->host)) ||
           inet_pton(AF_INET, text, address) == 1 || inet_pton(AF_INET6, text, address) == 1;
}

static bool head_is_local_origin(const char *authority)
{
    struct str host = head_host(authority);

    return str_eq_nocase(host, STR("localhost")) || str_eq(host, STR("127.0.0.1")) ||
           str_eq(host, STR("::1"));
}

/* Whether a page of another site sent the request. Other clients than browsers send neither field. */
static bool head_is_cross_site(const struct head *h, const struct httpd_route *route)
{
    const char *at = h->origin ? strstr(h->origin, "://") : NULL;

    if (route && route->local_origins && at && head_is_local_origin(at + 3))
        return false;
    if (h->fetch_site && strcmp(h->fetch_site, "same-origin") != 0 && strcmp(h->fetch_site, "none") != 0)
        return true;
    return h->origin && !(at && str_eq_nocase(str_of(at + 3), str_of(h->host)));
}

unsigned httpd_check_head(const struct exchange *x, const char *method, const char *version,
                          const char **ret_text)
{
    const struct listener *l = &x->server->listeners[x->server->conns[x->fd].listener];
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(x->connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    struct head h = {.end = (uintptr_t)version + strlen(version)};
    const char *why = NULL;

    (void)MHD_get_connection_values(x->connection, MHD_HEADER_KIND, head_on_field, &h);
    if (x->has_nul || x->uri_end + 1 != (uintptr_t)version)
        why = "400: NUL in the request target\n";
    else if (h.torn || !head_follows(h.end, (uintptr_t)method + info->header_size, 4))
        why = "400: invalid header\n";
    else if (h.bad_name)
        why = "400: invalid name of a header field\n";
    else if (h.hosts > 1)
        why = "400: several Host fields\n";
    else if (h.lengths > 1 || h.codings > 1 || (h.lengths && h.codings))
        why = "400: several Content-Length or Transfer-Encoding fields\n";
    else if (h.codings && !h.chunked)
        why = "400: unsupported Transfer-Encoding\n";
    if (why) {
        *ret_text = why;
        return MHD_HTTP_BAD_REQUEST;
    }
    if (l->loopback && h.host && !head_is_local_host(h.host, l)) {
        *ret_text = "421: this address only serves requests whose Host is localhost or an IP address\n";
        return MHD_HTTP_MISDIRECTED_REQUEST;
    }
    if (strcmp(x->request.method, "GET") != 0 && head_is_cross_site(&h, x->route)) {
        *ret_text = "403: cross-origin request refused\n";
        return MHD_HTTP_FORBIDDEN;
    }
    return 0;
}

/* ---- The query ---- */

static int query_digit(char c)
{
    return c >= '0' && c <= '9'                     ? c - '0'
           : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (c | 0x20) - 'a' + 10
                                                    : -1;
}

/* Decodes + and %XX in place, and ends it with a NUL. Returns the end; *ret_nul is set if there is a NUL
 * in it. */
static char *query_decode(char *to, const char *from, size_t n, bool *ret_nul)
{
    for (size_t i = 0; i < n; i++) {
        bool coded =
            from[i] == '%' && i + 2 < n && query_digit(from[i + 1]) >= 0 && query_digit(from[i + 2]) >= 0;

        *to = from[i] == '+' ? ' ' : from[i];
        if (coded) {
            *to = (char)(query_digit(from[i + 1]) << 4 | query_digit(from[i + 2]));
            *ret_nul = *ret_nul || !*to;
            i += 2;
        }
        to++;
    }
    *to = '\0';
    return to + 1;
}

void httpd_take_query(struct exchange *x, char *uri)
{
    char *mark = strchr(uri, '?'), *nul = strstr(uri, "%00"), *to, *from;

    x->uri_end = (uintptr_t)uri + strlen(uri);
    x->has_nul = nul && (!mark || nul < mark);
    if (!mark || !(x->query = strdup(mark + 1)))
        return;
    mark[1] = '\0';
    to = from = x->query;
    while (*from) {
        size_t n = strcspn(from, "&"), name = strcspn(from, "=&");
        char *next = from + n + (from[n] != '\0');

        if (name < n) {
            to = query_decode(to, from, name, &x->has_nul);
            to = query_decode(to, from + name + 1, n - name - 1, &x->has_nul);
        }
        from = next;
    }
    x->request.arguments = (struct str){x->query, (size_t)(to - x->query)};
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
