/* The HTTP server: libmicrohttpd in poll mode, on a thread for each listen address, with a table of routes.
 *
 * The handler of a `direct` route runs on a server's thread, maybe on several at once: it must not block, and
 * shares data only behind a lock. Other handlers run on the loop while the connection is suspended.
 *
 * The server itself answers 404 with the list of paths, 405 with Allow, 413, 400 to a head that others
 * might read in another way, 421 to a strange Host on a loopback address, 403 to a request of another
 * site's page that changes something, and 503 instead of a large response while too many are under way.
 * HEAD is GET without a body. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/base/loop.h"

#include <sys/socket.h>
#include <sys/uio.h>

struct httpd;
struct httpd_tls;

/* A handler's input; valid only while it runs, or until httpd_finish(). */
struct httpd_request {
    const char *method; /* "GET" for HEAD too */
    const char *path;
    const char *accept; /* header values, "" if absent; the first of several */
    const char *accept_encoding;
    const char *if_none_match;
    const char *content_type;
    const char *content_encoding;
    const char *authorization;
    const struct sockaddr *peer;   /* AF_INET or AF_INET6; for the guard only */
    struct str client_certificate; /* DER, if it was verified; for the guard only */
    struct str arguments;          /* for httpd_query() */
    struct str body;               /* as received; empty unless the route takes one */
};

/* A handler's output. */
struct httpd_reply {
    unsigned status;              /* 200 unless set */
    const char *content_type;     /* a literal */
    const char *content_encoding; /* a literal or NULL */
    const char *vary;             /* a literal or NULL */
    const char *cache_control;    /* a literal; "no-store" unless set */
    const char *csp;  /* Content-Security-Policy, a literal or NULL; sent with Referrer-Policy: no-referrer */
    const char *etag; /* quoted, NULL for none; lives as long as the server */
    const char *challenge; /* WWW-Authenticate, a literal or NULL */
    unsigned retry_after;  /* seconds; 0: not sent */
    /* The body: it stays valid until release(arg), which may be NULL, is called once, from any thread. */
    const struct iovec *parts;
    unsigned n_parts;
    void (*release)(void *arg);
    void *arg;
    struct iovec own_part; /* of httpd_reply_take() */
    /* Of a body that replies share, see httpd_options.old_bytes; 0: the body is this reply's own. */
    uint64_t version;
};

typedef void (*httpd_fn)(void *arg, const struct httpd_request *rq, struct httpd_reply *reply);

struct httpd_route {
    const char *method; /* "GET" or "POST" */
    const char *path;
    httpd_fn fn;
    void *arg;
    bool direct;
    /* The handler runs at most once in this time; requests that come meanwhile wait, and the next run
     * answers all of them. For one route, not direct. 0: no limit. */
    unsigned spacing_ms;
    size_t max_body; /* bytes of the largest request body that the handler takes; 0: bodies are discarded */
    bool local_origins; /* programs of this machine may send requests that name it as their origin */
};

/* The answer to a request that is not allowed. */
struct httpd_refusal {
    const char *text;      /* the body, which begins with the status; copied */
    const char *challenge; /* WWW-Authenticate, a literal or NULL */
    unsigned retry_after;  /* seconds; 0: not sent */
};

/* A request that waits for a decision. */
struct httpd_ticket {
    struct httpd *server;
    uint64_t id;
};

/* Decides who may send a request. */
struct httpd_guard {
    /* On a server's thread, for each request whose head is valid, before its body is read. Must not block.
     * Calls httpd_decide() once for the ticket or a copy of it, before or after it returns; *rq is valid only
     * until it returns. */
    void (*check)(void *arg, const struct httpd_request *rq, const struct httpd_ticket *ticket);
    void *arg;
    unsigned deadline_ms; /* a request that has waited longer is answered with 503 */
};

/* An additional field of each response. */
struct httpd_header {
    const char *name, *value;
};

struct httpd_options {
    const char *const *listen; /* "host:port", ":port", "[::1]:port"; port 0 takes a free one */
    size_t n_listen;
    uint64_t max_body_bytes;          /* of all request bodies held at once; 0: 64 MiB */
    unsigned max_connections;         /* over all listen addresses; at most half of the open files allowed */
    unsigned idle_seconds;            /* a connection on which nothing moves is closed after this */
    const struct httpd_route *routes; /* must outlive the server */
    size_t n_routes;
    const struct httpd_guard *guard; /* must outlive the server; NULL: everyone may send every request */
    struct httpd_tls *tls;           /* a reference, which is taken; NULL: plain HTTP */
    /* Additional fields of responses, which win over the server's own. They stay the caller's, until others
     * are set or the server is stopped. */
    const struct httpd_header *headers;
    size_t n_headers;
    /* After each answer: the route's path ("other" if none matched), and the bytes of the body (0 for HEAD
     * and if the client disconnected early). Server's thread. May be NULL. */
    void (*served)(void *arg, const char *route, unsigned status, uint64_t bytes);
    /* So many responses were cut because their clients read too slowly. Any thread. May be NULL. */
    void (*cut)(void *arg, unsigned n);
    /* Replaces body and content type of an error of the server itself. Server's thread. May be NULL. */
    void (*error_body)(const struct httpd_request *rq, struct httpd_reply *reply, struct str text);
    /* The bytes that replies with earlier versions of a shared body keep allocated, the current version,
     * and its bytes. Any thread. May be NULL. */
    uint64_t (*old_bytes)(void *arg, uint64_t *ret_version, uint64_t *ret_bytes);
    void *served_arg; /* for served, cut and old_bytes */
};

/* Whether the syntax is that of a listen address; the host is not resolved. */
bool httpd_is_address(const char *address);
/* Binds every address and starts serving. On failure *ret_why (from malloc) names the address and the cause;
 * -EADDRINUSE, -EINVAL for an invalid address, -EACCES, ... */
MUST_USE int httpd_new(struct httpd **ret, struct loop *loop, const struct httpd_options *o, char **ret_why);
/* Answers requests that wait with 503, waits up to `grace_ms` for answers to be sent, and frees the
 * server. On the loop's thread, not from a handler. Takes NULL, returns NULL. */
struct httpd *httpd_stop(struct httpd *h, int grace_ms);
/* The bound port of listen address i. */
unsigned httpd_port(const struct httpd *h, size_t i);
/* Whether listen address i is only reached from this machine. */
bool httpd_is_loopback(const struct httpd *h, size_t i);
/* Replaces the additional fields of responses, and TLS for new connections, as in struct httpd_options. */
void httpd_set(struct httpd *h, const struct httpd_header *headers, size_t n, struct httpd_tls *tls);
/* The guard's decision: allowed if `refusal` is NULL. Does nothing if the request does not wait any more. Any
 * thread; not after httpd_stop() was called. */
void httpd_decide(const struct httpd_ticket *ticket, const struct httpd_refusal *refusal);
/* In a handler on the loop, not of a spaced route: request and reply stay valid until httpd_finish(). */
void httpd_defer(struct httpd_reply *reply);
/* Sends a deferred reply. On the loop's thread, once, before httpd_stop(). */
void httpd_finish(struct httpd_reply *reply);
/* A query argument, NULL if absent; valid as long as the request. */
const char *httpd_query(const struct httpd_request *rq, const char *name);
/* A header field that struct httpd_request does not have, NULL if absent; the first of several. */
const char *httpd_header(const struct httpd_request *rq, const char *name);
/* Sets the body to these bytes, which are taken. */
void httpd_reply_take(struct httpd_reply *reply, struct buf *bytes);
/* The same with a copy. */
void httpd_reply_copy(struct httpd_reply *reply, struct str body);
/* The same as plain text, with this status. */
void httpd_reply_text(struct httpd_reply *reply, unsigned status, struct str body);
