/* Private to the HTTP server (httpd*.c). */
#ifndef DS_BASE_HTTPD_INTERNAL_H
#define DS_BASE_HTTPD_INTERNAL_H

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/base/httpd.h"
#include "exporter/base/httpd_tls.h"
#include "exporter/base/loop.h"
#include "exporter/base/memory.h"

#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

/* A connection in the table, by its descriptor. It is handed over to libmicrohttpd (ACCEPTED), sends a
 * request (READING), waits for the handler's reply (HANDLING), is sent the response (ANSWERING), and is
 * kept for the next request (IDLE). */
enum conn_state { CONN_NONE, CONN_ACCEPTED, CONN_READING, CONN_HANDLING, CONN_ANSWERING, CONN_IDLE };

struct conn {
    mono_ms since;    /* when it entered its state */
    uint64_t bytes;   /* ANSWERING: of the body */
    uint64_t version; /* ANSWERING: of a shared body; 0: the body is this response's own */
    enum conn_state state;
    uint8_t listener;
    bool closing; /* shut down by us; libmicrohttpd has not closed it yet */
};

struct listener {
    int fd;
    unsigned port;
    bool loopback;
    char *host; /* of the listen address, as given; empty for all interfaces */
};

struct httpd {
    struct loop *loop;
    struct httpd_options options;
    struct listener *listeners;
    size_t n_listeners;
    struct MHD_Daemon *daemon;
    pthread_t gate; /* accepts connections and closes those that are over a limit */
    bool has_gate;
    bool checks_heads; /* libmicrohttpd refuses malformed heads itself */
    int gate_wake;     /* eventfd: the gate must look at `connections` or `stopping` */
    char *known_paths; /* the body of a 404 */
    atomic_bool stopping;
    int wake; /* eventfd: `queue` is not empty */
    struct watch watch;
    struct timer spacing;                  /* set: the spaced route's handler ran a short time ago */
    struct exchange *spaced, **spaced_end; /* requests for it. Loop's thread */
    pthread_mutex_t lock;                  /* for the fields below; its holder never blocks */
    pthread_cond_t left;                   /* `under_way` became 0 */
    unsigned under_way;                    /* number of exchanges whose head has been read */
    struct exchange *queue, **queue_end;
    struct exchange *guarded; /* they wait for the guard's decision, the latest first */
    unsigned n_guarded;
    uint64_t last_ticket;
    char *headers; /* additional ones: name, value, name, value, each ended by a NUL; an empty name ends it */
    struct conn *conns; /* by descriptor */
    int n_conns, top;   /* size of the table; no descriptor in use is at or above `top` */
    unsigned connections, closing, answering;
    uint64_t body_held; /* bytes of request bodies */
    uint64_t own_bytes; /* of the bodies of ANSWERING connections that are not shared */
};

/* What is kept for a connection: its socket context. Server's thread. The target is that of the request being
 * read: libmicrohttpd 0.9.75 may close a connection without a word about a request whose target it has
 * announced. */
struct client {
    struct tls_session *tls;
    size_t target_size;    /* bytes of the request target */
    bool has_nul;          /* an encoded one, in the request target */
    char *arguments;       /* of its query: name, value, name, value, each ended by a NUL; NULL: none */
    size_t arguments_size; /* bytes */
};

enum exchange_state { READING, GUARDED, ALLOWED, WAITING, READY, ANSWERED };

/* One request and its answer. Belongs to the server's thread, but to the loop while WAITING, and to whoever
 * holds the lock while GUARDED. It is ALLOWED from the guard's decision until the server's thread sees it. */
struct exchange {
    struct httpd *server;
    struct MHD_Connection *connection;
    int fd;
    const struct httpd_route *route; /* NULL if none matches the path */
    enum exchange_state state;
    bool head, close;
    bool handling, deferred; /* the handler runs; its reply comes later. Loop's thread */
    uint64_t body_bytes;     /* of the request's body that have come */
    struct buf body;         /* those that are kept; its bytes count in the server's body_held */
    unsigned body_status;    /* of the refusal of the body; 0: none */
    struct httpd_request request;
    char *arguments; /* request.arguments */
    char *joined[6]; /* header values of several fields */
    bool routed;     /* the route's method matches, too */
    char allow[32];
    uint64_t ticket;       /* while GUARDED */
    mono_ms guarded_since; /* while GUARDED */
    bool suspended;        /* while GUARDED */
    bool own_error;        /* the reply is of httpd_reply_error() */
    unsigned status;
    uint64_t answer_bytes;
    struct httpd_reply reply;
    struct exchange *next;
};

/* Answers with x->reply; consumes it. Server's thread. */
enum MHD_Result httpd_respond(struct exchange *x);
/* Replies with the server's own text. */
void httpd_reply_error(struct exchange *x, unsigned status, const char *text);
/* Calls the reply's release, once. */
void httpd_release(struct httpd_reply *reply);
void httpd_body_drop(struct exchange *x);

/* libmicrohttpd's callbacks; cls is the server. */
void *httpd_on_target(void *cls, const char *target, struct MHD_Connection *connection);
enum MHD_Result httpd_on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *upload,
                                 size_t *upload_size, void **context);
void httpd_on_completed(void *cls, struct MHD_Connection *connection, void **context,
                        enum MHD_RequestTerminationCode how);
void httpd_on_connection(void *cls, struct MHD_Connection *connection, void **context,
                         enum MHD_ConnectionNotificationCode what);
/* All values of a header, joined, "" if absent; only the first if they exceed 64 KiB. *joined is to be
 * freed. */
const char *httpd_get_header(struct exchange *x, const char *name, char **joined);

/* Asks the guard about a request whose head has been read. HTTPD_LATER: the connection is suspended, and the
 * exchange may be gone already; HTTPD_REFUSE: the reply is set. Server's thread. */
enum httpd_access httpd_guard_check(struct exchange *x);
/* Refuses the requests that have waited too long for a decision; all of them if the server is stopping. */
void httpd_guard_expire(struct httpd *h);

/* Runs the handlers of the queued requests, or answers 503 if the server is stopping. Loop's thread. */
void httpd_run_queue(struct httpd *h);
void httpd_on_spacing(struct timer *t);

/* Takes the request target as it was sent, and decodes its query. Server's thread. */
void httpd_take_target(struct client *c, const char *target);

/* ---- Connections. Any thread ---- */

void httpd_conns_init(struct httpd *h);
/* Before the descriptor is handed over. False if the table has no place for it. */
bool httpd_conn_accepted(struct httpd *h, int fd, size_t listener);
void httpd_conn_closed(struct httpd *h, int fd);
void httpd_conn_set(struct httpd *h, int fd, enum conn_state state);
/* The response begins: false if it is large and others must end first. */
bool httpd_conn_answer(struct httpd *h, int fd, uint64_t bytes, uint64_t version);
/* Shuts down connections that are over a deadline or a limit. Returns the milliseconds until the next call
 * is due, -1 for none; *ret_room: whether another connection may be accepted; *ret_cut: responses that
 * were cut. */
int httpd_conns_sweep(struct httpd *h, bool *ret_room, unsigned *ret_cut);
/* Shuts down the connection that has waited longest, to get its descriptor. */
void httpd_conns_make_room(struct httpd *h);

/* Returns `error` and sets *ret_why, from malloc. */
int httpd_explain(char **ret_why, int error, const char *fmt, ...) PRINTF_LIKE(3, 4);

/* ---- TLS ---- */

/* client_auth_type, from the most lenient. */
enum client_auth { AUTH_NONE, AUTH_REQUEST, AUTH_REQUIRE_ANY, AUTH_VERIFY_IF_GIVEN, AUTH_REQUIRE_AND_VERIFY };

struct tls_context {
    struct httpd_tls *owner;
    unsigned refs; /* by sessions and as `current`; under the owner's lock */
    enum client_auth auth;
    gnutls_certificate_credentials_t credentials;
    gnutls_priority_t priorities;
    gnutls_datum_t ticket_key; /* GnuTLS derives those in use from it and the time */
};

/* A session begins, before its handshake. Returns what httpd_tls_end() takes after it was freed.
 * Server's thread. */
struct tls_session *httpd_tls_begin(struct httpd_tls *t, gnutls_session_t session, int fd);
void httpd_tls_end(struct tls_session *s);
/* The client's certificate, DER, which lives as long as the session; empty unless it was verified. */
struct str httpd_tls_peer(gnutls_session_t session);

#endif
