/* Whether a call that failed went by a proxy, from what libcurl tells: its code, the answer to CONNECT, and
 * the last socket that it opened. Read only. Which proxy is used is libcurl's decision. */
#include "exporter/http/http_internal.h"

#include <arpa/inet.h>
#include <stdlib.h>

static bool environment_has(const char *name)
{
    const char *value = getenv(name);

    return value && *value;
}

/* The variables that libcurl reads for the scheme. */
static bool environment_has_proxy(bool is_https)
{
    if (environment_has("all_proxy") || environment_has("ALL_PROXY"))
        return true;
    if (is_https)
        return environment_has("https_proxy") || environment_has("HTTPS_PROXY");
    return environment_has("http_proxy");
}

/* libcurl 8.7 and later say so, once a connection was tried. */
static bool curl_says_proxy(const struct http_call *c)
{
    long used = 0;

#if LIBCURL_VERSION_NUM >= 0x080700
    if (curl_easy_getinfo(c->easy, CURLINFO_USED_PROXY, &used) != CURLE_OK)
        used = 0;
#else
    (void)c;
#endif
    return used == 1;
}

/* Whether the server's host is an address, and another than the last socket's. */
static bool is_other_address(const char *host, const char *address)
{
    char plain[64];
    struct in6_addr a, b;
    size_t n = strlen(host);
    int family = *host == '[' ? AF_INET6 : AF_INET;

    if (family == AF_INET6 && n >= 2) { /* without the brackets */
        host++;
        n -= 2;
    }
    if (n >= sizeof(plain))
        return false;
    memcpy(plain, host, n);
    plain[n] = '\0';
    if (inet_pton(family, plain, &a) != 1)
        return false;
    return inet_pton(family, address, &b) != 1 || memcmp(&a, &b, family == AF_INET6 ? 16 : 4) != 0;
}

enum proxy_use http_proxy_use(const struct http_call *c, CURLcode code, const struct http_origin *server)
{
    long connect_status = 0;

    if (c->rq.public_only)
        return PROXY_NONE;
    if (c->rq.proxy)
        return PROXY_USED;
    if (curl_easy_getinfo(c->easy, CURLINFO_HTTP_CONNECTCODE, &connect_status) != CURLE_OK)
        connect_status = 0;
    if (code == CURLE_COULDNT_RESOLVE_PROXY || code == CURLE_PROXY || connect_status || curl_says_proxy(c))
        return PROXY_USED;
    if (!environment_has_proxy(server->is_https))
        return PROXY_NONE;
    if (!environment_has("no_proxy") && !environment_has("NO_PROXY"))
        return PROXY_USED;
    /* NO_PROXY may except the server: then the socket leads to it. */
    if (c->socket_port == 0)
        return PROXY_UNKNOWN;
    if (c->socket_port != server->port || is_other_address(server->host, c->socket_address))
        return PROXY_USED;
    return PROXY_UNKNOWN;
}
