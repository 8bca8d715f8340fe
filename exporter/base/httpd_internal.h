/* Private to the HTTP server (httpd*.c). */
#ifndef DS_BASE_HTTPD_INTERNAL_H
#define DS_BASE_HTTPD_INTERNAL_H

#include "exporter/base/httpd.h"
#include "exporter/base/loop.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

struct listener {
    int fd;
    unsigned port;
    struct MHD_Daemon *daemon;
};

struct httpd {
    struct loop *loop;
    struct httpd_options options;
    struct listener *listeners;
    size_t n_listeners;
    char *known_paths;              /* the body of a 404 */
    struct MHD_Response *no_memory; /* prepared in advance */
    atomic_uint connections;
    atomic_bool stopping;
    pthread_mutex_t served_lock;
    int wake; /* eventfd: `queue` is not empty */
    struct watch watch;
    pthread_mutex_t lock; /* for the fields below; its holder never blocks */
    pthread_cond_t left;  /* `under_way` became 0 */
    unsigned under_way;   /* number of exchanges */
    struct exchange *queue, **queue_end;
};

enum exchange_state { READING, WAITING, READY, ANSWERED };

/* One request and its answer. Belongs to the server's thread, but to the loop while WAITING. */
struct exchange {
    struct httpd *server;
    struct MHD_Connection *connection;
    const struct httpd_route *route; /* NULL if none matches the path */
    enum exchange_state state;
    bool head, crowded, close;
    uint64_t body_bytes; /* of the request; the body is discarded */
    struct httpd_request request;
    char *joined[3]; /* header values of several fields */
    char allow[32];
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
/* The 500 to use when out of memory. NULL when out of memory. */
struct MHD_Response *httpd_no_memory_response(void);

/* libmicrohttpd's callbacks; cls is the server. */
enum MHD_Result httpd_on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *upload,
                                 size_t *upload_size, void **context);
void httpd_on_completed(void *cls, struct MHD_Connection *connection, void **context,
                        enum MHD_RequestTerminationCode how);
void httpd_on_connection(void *cls, struct MHD_Connection *connection, void **context,
                         enum MHD_ConnectionNotificationCode what);
/* Runs the handlers of the queued requests, or answers 503 if the server is stopping. Loop's thread. */
void httpd_run_queue(struct httpd *h);

/* Opens a socket that listens on "host:port". On failure a negative errno and *ret_why, from malloc (NULL
 * when out of memory). */
int httpd_listen(const char *address, int *ret_fd, unsigned *ret_port, char **ret_why);

#endif
