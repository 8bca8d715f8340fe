/* Listen addresses: "host:port", ":port", "[::1]:port". */
#include "exporter/base/httpd_internal.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>

enum { BACKLOG = 1024 };

int httpd_explain(char **ret_why, int error, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    if (vasprintf(ret_why, fmt, ap) < 0)
        *ret_why = NULL;
    va_end(ap);
    return error;
}

static int explain_errno(char **ret_why, const char *address, int error)
{
    const char *text = strerror(error);

    /* strerror() starts with an upper-case letter. */
    return httpd_explain(ret_why, -error, "listen on %s: %c%s", address, text[0] | 0x20, text + 1);
}

static const char *read_port(const char *p, unsigned *ret)
{
    uint64_t port;

    if (*p == '\0')
        return "missing port";
    if (!str_to_u64(str_of(p), &port) || port > 65535)
        return "port must be a number from 0 to 65535";
    *ret = (unsigned)port;
    return NULL;
}

/* Splits the address; *ret_host is empty for all interfaces. Returns an error text, or NULL. */
static const char *listen_split(const char *address, struct str *ret_host, unsigned *ret_port)
{
    const char *colon = strrchr(address, ':'), *close;
    struct str host;

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
    *ret_host = host;
    return read_port(colon + 1, ret_port);
}

bool httpd_is_address(const char *address)
{
    struct str host;
    unsigned port;

    return !listen_split(address, &host, &port);
}

/* 0 and *ret_fd, or a negative errno. */
static int open_socket(const struct sockaddr *a, socklen_t n, int *ret_fd)
{
    int fd CLEANUP(cleanup_close) = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int one = 1, only_v6 = 0;

    if (fd < 0)
        return -errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (a->sa_family == AF_INET6)
        (void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, sizeof(only_v6));
    if (bind(fd, a, n) < 0 || listen(fd, BACKLOG) < 0)
        return -errno;
    *ret_fd = fd;
    fd = -1;
    return 0;
}

/* A dual-stack socket, or IPv4 only if the kernel lacks IPv6. */
static int open_everywhere(unsigned port, int *ret_fd)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int r = open_socket((struct sockaddr *)&six, sizeof(six), ret_fd);

    if (r == -EAFNOSUPPORT || r == -EADDRNOTAVAIL)
        r = open_socket((struct sockaddr *)&four, sizeof(four), ret_fd);
    return r;
}

/* Prefers IPv4 if a name has both kinds of address, as Go programs do. */
static int open_host(struct str host, unsigned port, int *ret_fd, const char **ret_why)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV}, *all,
                    *best;
    char name[NI_MAXHOST], service[8];
    int r;

    (void)snprintf(name, sizeof(name), "%.*s", STR_ARG(host));
    (void)snprintf(service, sizeof(service), "%u", port);
    r = getaddrinfo(name, service, &hints, &all);
    if (r != 0) {
        *ret_why = gai_strerror(r);
        return r == EAI_MEMORY ? -ENOMEM : -EINVAL;
    }
    for (best = all; best && best->ai_family != AF_INET; best = best->ai_next)
        continue;
    if (!best)
        best = all;
    r = open_socket(best->ai_addr, best->ai_addrlen, ret_fd);
    freeaddrinfo(all);
    return r;
}

static void listener_read_bound(struct listener *l)
{
    struct sockaddr_storage a;
    const struct sockaddr_in *four = (const void *)&a;
    const struct sockaddr_in6 *six = (const void *)&a;
    socklen_t n = sizeof(a);

    if (getsockname(l->fd, (struct sockaddr *)&a, &n) < 0)
        return;
    if (a.ss_family == AF_INET6) {
        l->port = ntohs(six->sin6_port);
        l->loopback = IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
    } else {
        l->port = ntohs(four->sin_port);
        l->loopback = ntohl(four->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
}

int httpd_listen(const char *address, struct listener *ret, char **ret_why)
{
    struct listener l = {.fd = -1};
    struct str host = {0};
    const char *wrong = listen_split(address, &host, &l.port);
    int r;

    if (wrong)
        return httpd_explain(ret_why, -EINVAL, "listen on %s: %s", address, wrong);
    r = host.n ? open_host(host, l.port, &l.fd, &wrong) : open_everywhere(l.port, &l.fd);
    if (wrong)
        return httpd_explain(ret_why, r, "listen on %s: could not resolve host: %s", address, wrong);
    if (r < 0)
        return explain_errno(ret_why, address, -r);
    listener_read_bound(&l);
    l.host = str_dup(host);
    if (!l.host) {
        (void)close(l.fd);
        return -ENOMEM;
    }
    *ret = l;
    return 0;
}
