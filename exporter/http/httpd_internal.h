/* Private to the HTTP server (httpd*.c). */
#pragma once

#include "exporter/base/clock.h"
#include "exporter/base/lock.h"
#include "exporter/base/loop.h"
#include "exporter/http/httpd.h"
#include "exporter/http/tls.h"

#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

struct listener {
    struct httpd *server;
    struct MHD_Daemon *daemon;
    int fd;
    unsigned port;
    bool loopback;
    char *host; /* of the listen address, as given; empty for all interfaces */
};

/* It sends a request, waits for the handler's reply, is sent the response, is kept for the next request. */
enum conn_state { CONN_READING, CONN_HANDLING, CONN_ANSWERING, CONN_IDLE };

/* The state, and what follows it, is under the server's lock; the rest belongs to the listener's thread. */
struct conn {
    struct listener *listener;
    struct httpd_tls *tls; /* NULL: plain HTTP */
    bool tls_begun;        /* the first bytes have been read */
    size_t target_size;    /* of the request target, in bytes */
    bool target_has_nul;   /* encoded */
    bool target_is_bad;    /* absolute-form without a plain host */
    int fd;
    enum conn_state state;
    bool closing;     /* shut down by us; libmicrohttpd has not closed it yet */
    mono_ms since;    /* when it entered its state */
    uint64_t bytes;   /* ANSWERING: of the body */
    uint64_t version; /* ANSWERING: of a shared body; 0: the body is this response's own */
    TAILQ_ENTRY(conn) entry;
};

TAILQ_HEAD(conns, conn);
STAILQ_HEAD(exchanges, exchange);

struct httpd {
    struct loop *loop;
    struct httpd_options options; /* headers and TLS: under the lock */
    struct listener *listeners;
    size_t n_listeners;
    bool checks_heads; /* libmicrohttpd refuses malformed heads itself */
    atomic_bool stopping;
    atomic_uint under_way; /* exchanges whose head has been read */
    struct timer sweep;
    struct timer spacing;     /* set: the spaced route's handler ran a short time ago */
    struct exchanges spaced;  /* requests for it. Loop's thread */
    struct post post;         /* posted while `queue` is not empty */
    struct lock lock;         /* for the fields below; its holder never blocks */
    struct exchanges queue;   /* they wait for the loop */
    struct exchanges guarded; /* they wait for the guard's decision, the earliest first */
    unsigned n_guarded;
    uint64_t last_ticket;
    struct conns conns; /* the one that is in its state for the longest time first */
    unsigned n_conns, closing;
    uint64_t body_held; /* bytes of request bodies */
};

enum exchange_state {
    EXCHANGE_READING,
    EXCHANGE_GUARDED, /* it waits for the guard's decision */
    EXCHANGE_ALLOWED, /* the guard has decided, which the listener's thread has not seen */
    EXCHANGE_WAITING, /* for the loop, or handled there */
    EXCHANGE_READY,   /* to be answered by the listener's thread */
    EXCHANGE_ANSWERED
};

/* One request and its answer. Belongs to the listener's thread, but to the loop while EXCHANGE_WAITING, and
 * whoever holds the lock while EXCHANGE_GUARDED. */
struct exchange {
    struct httpd *server;
    struct MHD_Connection *connection;
    struct conn *conn;
    const struct httpd_route *route; /* NULL if none matches the path */
    enum exchange_state state;
    bool head, close;
    bool routed;             /* the route's method matches, too */
    unsigned holders;        /* the handler that runs, and httpd_finish() to come. Loop's thread */
    uint64_t body_announced; /* by Content-Length */
    uint64_t body_bytes;     /* of the request's body that have come */
    struct buf body;         /* those that are kept; its bytes count in the server's body_held */
    struct httpd_request request;
    char *authority;      /* of a target in absolute-form; NULL of others */
    struct buf arguments; /* request.arguments */
    const char *allow;    /* the methods of a path that does not have the one asked for */
    uint64_t ticket;      /* while EXCHANGE_GUARDED */
    bool own_error;       /* the reply is of httpd_reply_error(), also before the request has been read */
    uint64_t answer_bytes;
    struct httpd_reply reply;
    STAILQ_ENTRY(exchange) next;
};

/* ---- Listen addresses (httpd_listener.c) ---- */

/* Returns `error` and sets *ret_why, from malloc. */
int httpd_explain(char **ret_why, int error, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Opens a socket that listens on "host:port". On failure a negative errno and *ret_why. */
MUST_USE int httpd_listener_open(struct listener *l, const char *address, char **ret_why);

/* ---- Connections (httpd_conn.c). Any thread ---- */

/* Ignores what exceeds half of the open files allowed. */
void httpd_conns_init(struct httpd *h);
/* A connection was accepted: the one that has waited longest makes room if there are too many. Returns the
 * number of responses that were cut for it. */
unsigned httpd_conn_add(struct httpd *h, struct conn *c);
void httpd_conn_remove(struct httpd *h, struct conn *c);
void httpd_conn_set(struct httpd *h, struct conn *c, enum conn_state state);
/* The response begins: false if it is large and others must end first. */
bool httpd_conn_answer(struct httpd *h, struct conn *c, uint64_t bytes, uint64_t version);
/* Shuts down connections that are over a deadline or a limit. Returns the number of responses among them. */
unsigned httpd_conns_sweep(struct httpd *h);

/* libmicrohttpd's callback. */
void httpd_on_connection(void *cls, struct MHD_Connection *connection, void **context,
                         enum MHD_ConnectionNotificationCode what);
/* Counts responses that were cut. */
void httpd_count_cut(struct httpd *h, unsigned cut);

/* ---- Replies (httpd_reply.c). The thread that has the exchange ---- */

#define HTTPD_TEXT_STOPPING "503: shutting down\n"

void httpd_reply_release(struct httpd_reply *reply);
/* Replies with the server's own text, which begins with the status. */
void httpd_reply_error(struct exchange *x, const char *text);

/* ---- Heads (httpd_head.c). Listener's thread ---- */

/* libmicrohttpd's callbacks. */
void *httpd_on_target(void *cls, const char *target, struct MHD_Connection *connection);
size_t httpd_unescape(void *cls, struct MHD_Connection *connection, char *text);
/* The length of "http://" of a target in absolute-form; 0 for any other form. */
size_t httpd_target_scheme(const char *target);
/* Reads the fields and the query of a request whose route is known. NULL, or the text of the refusal. */
const char *httpd_head_read(struct exchange *x, const char *method, const char *version);

/* ---- Responses (httpd_response.c). Listener's thread ---- */

/* Frees what is kept of the request's body. */
void httpd_body_drop(struct exchange *x);
/* Answers with x->reply; consumes it. */
enum MHD_Result httpd_respond(struct exchange *x);

/* ---- The guard (httpd_guard.c) ---- */

/* Suspends the request until the guard has decided, or refuses it at once. Listener's thread. */
enum MHD_Result httpd_guard_ask(struct exchange *x);
/* Refuses the requests that have waited too long for the guard; all of them if the server is stopping. */
void httpd_guard_expire(struct httpd *h);

/* ---- Requests (httpd_request.c) ---- */

/* libmicrohttpd's callbacks. */
enum MHD_Result httpd_on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *upload,
                                 size_t *upload_size, void **context);
void httpd_on_completed(void *cls, struct MHD_Connection *connection, void **context,
                        enum MHD_RequestTerminationCode how);
/* Run the handlers of the requests that wait, or answer 503 if the server is stopping. Loop's thread. */
void httpd_on_queue(struct post *p);
void httpd_on_spacing(struct timer *t);

/* ---- TLS (tls.c). Server's thread ---- */

/* The connection's session begins, before its handshake. Sets c->tls, a reference. */
void httpd_tls_begin(struct httpd_tls *t, gnutls_session_t session, struct conn *c);
/* The client's certificate, DER, which lives as long as the session; empty unless it was verified. */
struct str httpd_tls_peer(gnutls_session_t session);
