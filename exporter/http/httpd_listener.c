/* A listen address: its syntax, and the socket that listens on it. The server owns what is opened. Loop
 * thread, before the server serves. */
#include "exporter/http/httpd_internal.h"

#include "exporter/base/alloc.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>

enum { BACKLOG = 1024 };

int httpd_explain(char **ret_why, int error, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    *ret_why = xvasprintf(fmt, ap);
    va_end(ap);
    return error;
}

/* Splits the address; *ret_host is empty for all interfaces. Returns an error text, or NULL. */
static const char *listen_split(const char *address, struct str *ret_host, const char **ret_port)
{
    const char *colon = strrchr(address, ':'), *close;
    struct str host;
    uint64_t port;

    if (!colon)
        return "expected host:port or :port";
    host = (struct str){address, (size_t)(colon - address)};
    if (address[0] == '[') {
        close = strchr(address, ']');
        if (!close || close + 1 != colon || close == address + 1)
            return "expected [IPv6 address]:port";
        host = (struct str){address + 1, (size_t)(close - address) - 1};
    } else if (host.n && memchr(host.p, ':', host.n)) {
        return "enclose an IPv6 address in brackets, as in [::1]:8080";
    }
    if (host.n >= NI_MAXHOST)
        return "host name too long";
    if (!colon[1])
        return "missing port";
    if (!str_to_u64(str_of(colon + 1), &port) || port > 65535)
        return "port must be a number from 0 to 65535";
    *ret_host = host;
    *ret_port = colon + 1;
    return NULL;
}

bool httpd_is_address(const char *address)
{
    struct str host;
    const char *port;

    return !listen_split(address, &host, &port);
}

/* A socket that listens, or a negative errno. IPv4 if a name has both kinds of address, as in Go programs. */
static int open_host(struct str host, const char *port, const char **ret_why)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV}, *all,
                    *best;
    int fd, one = 1, only_v6 = 0, r;
    char name[NI_MAXHOST];

    (void)snprintf(name, sizeof(name), "%.*s", STR_ARG(host));
    r = getaddrinfo(name, port, &hints, &all);
    if (r != 0) {
        *ret_why = gai_strerror(r);
        return -EINVAL;
    }
    for (best = all; best && best->ai_family != AF_INET; best = best->ai_next)
        continue;
    if (!best)
        best = all;
    fd = socket(best->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0)
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (fd >= 0 && best->ai_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, sizeof(only_v6));
    if (fd < 0 || bind(fd, best->ai_addr, best->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0) {
        r = -errno;
        cleanup_close(&fd);
    }
    freeaddrinfo(all);
    return r < 0 ? r : fd;
}

/* Opens a socket that listens on "host:port". On failure a negative errno and *ret_why. */
int httpd_listener_open(struct listener *l, const char *address, char **ret_why)
{
    struct sockaddr_storage bound = {0};
    const struct sockaddr_in *four = (const void *)&bound;
    const struct sockaddr_in6 *six = (const void *)&bound;
    socklen_t n = sizeof(bound);
    const char *text, *port = NULL, *wrong;
    struct str host = {0};
    int r;

    wrong = listen_split(address, &host, &port);
    if (wrong)
        return httpd_explain(ret_why, -EINVAL, "listen on %s: %s", address, wrong);
    r = open_host(host.n ? host : STR("::"), port, &wrong); /* dual-stack */
    if (!host.n && (r == -EAFNOSUPPORT || r == -EADDRNOTAVAIL))
        r = open_host(STR("0.0.0.0"), port, &wrong);
    if (wrong)
        return httpd_explain(ret_why, r, "listen on %s: could not resolve host: %s", address, wrong);
    if (r < 0) {
        text = strerror(-r); /* starts with an upper-case letter */
        return httpd_explain(ret_why, r, "listen on %s: %c%s", address, text[0] | 0x20, text + 1);
    }
    l->fd = r;
    (void)getsockname(l->fd, (struct sockaddr *)&bound, &n);
    l->port = ntohs(four->sin_port); /* at the same place in both */
    l->loopback = bound.ss_family == AF_INET6 ? IN6_IS_ADDR_LOOPBACK(&six->sin6_addr)
                                              : ntohl(four->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    l->host = str_dup(host);
    return 0;
}
