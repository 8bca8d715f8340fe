/* The HTTP server: libmicrohttpd in its poll mode, on its own thread, with a table of routes.
 *
 * A route is either `direct`, run on the server's thread (it must not block and may touch only what is
 * shared behind a lock), or `on the loop`: the connection is suspended, the handler runs on the loop's
 * thread, the answer goes back.
 *
 * The server answers by itself: 404 with the list of paths, 405 with Allow, 413, 400, 503 beyond
 * max_connections. HEAD is GET without a body. */
#ifndef DS_BASE_HTTPD_H
#define DS_BASE_HTTPD_H

#include "exporter/base/loop.h"
#include "exporter/base/str.h"

#include <sys/uio.h>

struct httpd;

/* What a handler reads; valid only while it runs. */
struct httpd_request {
    const char *method; /* "GET" for HEAD too */
    const char *path;
    const char *accept; /* header values, "" when absent; several of one name are joined by ", " */
    const char *accept_encoding;
    const char *if_none_match;
    void *connection; /* libmicrohttpd's own, for httpd_query() */
};

/* What a handler fills in. */
struct httpd_reply {
    unsigned status;              /* 200 unless set */
    const char *content_type;     /* a literal */
    const char *content_encoding; /* a literal or NULL */
    const char *vary;             /* a literal or NULL */
    const char *cache_control;    /* a literal; "no-store" unless set */
    const char *csp;  /* Content-Security-Policy, a literal or NULL; sent with Referrer-Policy: no-referrer */
    const char *etag; /* quoted, NULL for none; lives as long as the server */
    /* The body: the array and the bytes stay valid until release(arg) is called, once, from any thread.
     * release may be NULL. */
    struct iovec *parts;
    unsigned n_parts;
    void (*release)(void *arg);
    void *arg;
};

typedef void (*httpd_fn)(void *arg, const struct httpd_request *rq, struct httpd_reply *reply);

struct httpd_route {
    const char *method; /* "GET" or "POST" */
    const char *path;
    httpd_fn fn;
    void *arg;
    bool direct;
};

struct httpd_options {
    const char *const *listen; /* "host:port", ":port", "[::1]:port"; port 0 takes a free one */
    size_t n_listen;
    unsigned max_connections;         /* in all */
    unsigned idle_seconds;            /* an idle or slow connection is closed after this */
    const struct httpd_route *routes; /* must outlive the server */
    size_t n_routes;
    /* Told on the server's thread (there is one for each listen address, but never two calls at once)
     * after each answer: route's path ("other" where none matched), status, body bytes (0 for HEAD, and
     * where the client went away before the end). May be NULL. */
    void (*served)(void *arg, const char *route, unsigned status, uint64_t bytes);
    void *served_arg;
};

/* Whether it reads as an address to listen on, whatever host it names. */
bool httpd_is_address(const char *address);
/* Binds every address and starts serving. On failure *ret_why (from malloc) says which address and why;
 * -EADDRINUSE, -EINVAL for an address that cannot be read, -EACCES, -ENOMEM, ... */
MUST_USE int httpd_new(struct httpd **ret, struct loop *loop, const struct httpd_options *o, char **ret_why);
/* Stops taking connections, then ends: answers under way get up to `grace_ms` to leave; requests that
 * still wait for the loop are answered with 503. From the loop's thread, and not from a handler. Takes
 * NULL, returns NULL. */
struct httpd *httpd_stop(struct httpd *h, int grace_ms);
/* The port that listen address i was given. */
unsigned httpd_port(const struct httpd *h, size_t i);
/* A query argument, NULL when absent; lives as long as the request. */
const char *httpd_query(const struct httpd_request *rq, const char *name);
/* Fills reply with a copy of the bytes. On lack of memory it becomes an empty 500. */
void httpd_reply_copy(struct httpd_reply *reply, struct str body);
/* The same as plain text, with that status where there is memory. */
void httpd_reply_text(struct httpd_reply *reply, unsigned status, struct str body);

#endif
