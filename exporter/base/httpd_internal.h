/* What the files of the HTTP server share; nothing else includes it. */
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
    struct MHD_Response *no_memory; /* made in advance */
    atomic_uint connections;
    atomic_bool stopping;
    pthread_mutex_t served_lock;
    int wake; /* eventfd: `queue` has something for the loop */
    struct watch watch;
    pthread_mutex_t lock; /* for what follows; its holder never blocks */
    pthread_cond_t left;  /* `under_way` became 0 */
    unsigned under_way;   /* exchanges that exist */
    struct exchange *queue, **queue_end;
};

enum exchange_state { READING, WAITING, READY, ANSWERED };

/* One request and its answer. Belongs to the server's thread, but to the loop while WAITING. */
struct exchange {
    struct httpd *server;
    struct MHD_Connection *connection;
    const struct httpd_route *route; /* NULL: none has this path */
    enum exchange_state state;
    bool head, crowded, close;
    uint64_t body_bytes; /* of the request, thrown away */
    struct httpd_request request;
    char *joined[3]; /* header values that came in several fields */
    char allow[32];
    unsigned status;
    uint64_t answer_bytes;
    struct httpd_reply reply;
    struct exchange *next;
};

/* Answers with x->reply; consumes it. Server's thread. */
enum MHD_Result httpd_respond(struct exchange *x);
/* An answer of the server's own, with a text that outlives it. */
void httpd_say(struct exchange *x, unsigned status, const char *text);
/* Calls the reply's release, once. */
void httpd_release(struct httpd_reply *reply);
/* The answer when there is no memory for another; NULL when there is none for this either. */
struct MHD_Response *httpd_no_memory_response(void);

/* libmicrohttpd's callbacks; cls is the server. */
enum MHD_Result httpd_on_request(void *cls, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *upload,
                                 size_t *upload_size, void **context);
void httpd_on_completed(void *cls, struct MHD_Connection *connection, void **context,
                        enum MHD_RequestTerminationCode how);
void httpd_on_connection(void *cls, struct MHD_Connection *connection, void **context,
                         enum MHD_ConnectionNotificationCode what);
/* Runs the handlers of the queue, or refuses its requests once the server is stopping. Loop's thread. */
void httpd_run_queue(struct httpd *h);

/* A socket that listens on "host:port". On failure a negative errno and *ret_why, from malloc (NULL if
 * that failed). */
int httpd_listen(const char *address, int *ret_fd, unsigned *ret_port, char **ret_why);

#endif
