/* The sockets of calls, and calls that may connect to public addresses only.
 *
 * The check is on the address that curl is about to connect to, not on the name, so it also covers redirects
 * and names that resolve differently the second time. curl may follow a redirect over an existing connection
 * without opening a socket, so the peer is checked again before each request. */
#include "exporter/base/address.h"
#include "exporter/base/http_internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>

/* Notes the port, and the address for the case that it is refused. */
static void note_address(struct http_call *c, const struct sockaddr *a)
{
    struct sockaddr_in in4;
    struct sockaddr_in6 in6;

    (void)snprintf(c->refused, sizeof(c->refused), "unknown address");
    if (a->sa_family == AF_INET) {
        memcpy(&in4, a, sizeof(in4));
        (void)inet_ntop(AF_INET, &in4.sin_addr, c->refused, sizeof(c->refused));
        c->socket_port = ntohs(in4.sin_port);
    } else if (a->sa_family == AF_INET6) {
        memcpy(&in6, a, sizeof(in6));
        (void)inet_ntop(AF_INET6, &in6.sin6_addr, c->refused, sizeof(c->refused));
        c->socket_port = ntohs(in6.sin6_port);
    }
}

/* If a name has several addresses, the last one tried decides the error. */
curl_socket_t http_on_open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *a)
{
    struct http_call *c = arg;
    curl_socket_t fd;

    (void)purpose;
    note_address(c, &a->addr);
    if (c->rq.public_only && !address_is_public(&a->addr))
        return CURL_SOCKET_BAD;
    c->refused[0] = '\0';
    fd = socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
    c->socket_errno = fd < 0 ? errno : 0;
    return fd < 0 ? CURL_SOCKET_BAD : fd;
}

static int on_connected(void *arg, char *peer, char *local, int peer_port, int local_port)
{
    struct http_call *c = arg;
    struct sockaddr_in in4 = {.sin_family = AF_INET};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    bool is_public = false;

    (void)local;
    (void)peer_port;
    (void)local_port;
    if (inet_pton(AF_INET, peer, &in4.sin_addr) == 1)
        is_public = address_is_public((const struct sockaddr *)&in4);
    else if (inet_pton(AF_INET6, peer, &in6.sin6_addr) == 1)
        is_public = address_is_public((const struct sockaddr *)&in6);
    if (is_public)
        return CURL_PREREQFUNC_OK;
    (void)snprintf(c->refused, sizeof(c->refused), "%s", peer);
    return CURL_PREREQFUNC_ABORT;
}

int http_set_public_only(struct http_call *c, CURL *easy)
{
    const bool set = curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_connected) == CURLE_OK &&
                     curl_easy_setopt(easy, CURLOPT_PREREQDATA, c) == CURLE_OK &&
                     curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L) == CURLE_OK &&
                     curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L) == CURLE_OK &&
                     curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK;

    return set ? 0 : -EINVAL;
}

bool http_explain_refused(struct http_call *c, CURLcode code)
{
    struct http_answer *a = &c->answer;

    if (!c->refused[0] || (code != CURLE_COULDNT_CONNECT && code != CURLE_ABORTED_BY_CALLBACK))
        return false;
    a->error = HTTP_CONNECT;
    a->refused = true;
    (void)snprintf(a->reason, sizeof(a->reason), "connections to private addresses are not allowed: %s",
                   c->refused);
    return true;
}
