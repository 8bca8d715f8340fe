/* Private to the HTTP client (http*.c). */
#ifndef DS_BASE_HTTP_INTERNAL_H
#define DS_BASE_HTTP_INTERNAL_H

#include "exporter/base/clock.h"
#include "exporter/base/http.h"
#include "exporter/base/inflate.h"
#include "exporter/base/loop.h"

#include <sys/queue.h>

struct http {
    struct loop *loop;
    CURLM *multi;
    char *user_agent;
    const char *ca_file, *ca_dir; /* from the environment; NULL if unset */
    LIST_HEAD(, http_call) calls; /* in progress */
    CURL **idle;                  /* handles for reuse, already reset */
    size_t n_idle;
    uint64_t budget_used, budget_max;
    TAILQ_HEAD(, http_share) shares; /* the oldest first */
};

struct http_call {
    struct http *http;
    LIST_ENTRY(http_call) entry;
    CURL *easy;
    http_done_fn done;
    void *arg;
    bool finishing; /* `done` is running: http_cancel() does nothing */
    struct http_answer answer;
    struct http_request rq; /* what it points to may be gone */
    bool head;
    char content_type[160];
    struct curl_slist headers; /* Content-Type; the first of the list */
    struct curl_slist *extra;  /* the caller's, between Content-Type and the common ones */
    struct curl_slist *connect_to;
    bool cut;     /* the body was truncated at its limit */
    bool decided; /* status_decides: the final status and its headers were received */
    struct timer body_end;
    char *joined; /* a copy of a small body's parts */
    uint64_t body_bytes;
    size_t part, offset; /* position of the next byte to send */
    /* The answer's headers */
    size_t header_bytes;
    uint64_t announced;   /* Content-Length; 0 if absent */
    bool encoded;         /* has a Content-Encoding, so the decoded size is unknown */
    char encoding[32];    /* one that was not asked for, or empty */
    struct inflate *gzip; /* of a body with Content-Encoding gzip or deflate */
    struct http_share *share, own_share;
    size_t charged;  /* bytes of the body granted by the budget */
    bool in_headers; /* between the status line and the end of its headers */
    /* Streaming: answer.body holds the bytes not yet passed on */
    bool streaming, paused;
    bool stream_begun; /* on_data has not yet received the empty first piece */
    struct timer deliver, idle;
    mono_ms last_byte;
    bool *gone; /* set while on_data runs: where to note that it ended the call */
    char curl_error[CURL_ERROR_SIZE];
    int socket_errno;     /* of the last socket that could not be opened; 0 */
    unsigned socket_port; /* where the last socket was to connect to; a proxy's may differ from the URL's */
    char refused[64];     /* public_only: the refused address, or empty */
    size_t n_parts;
    struct str parts[];
};

/* Sets all options of a new or reset handle. -ENOMEM, -EINVAL. */
MUST_USE int http_set_up(struct http_call *c, CURL *easy, const struct http_request *rq);
/* Has the request's secrets hidden in all text (http_secrets.c, secret.h). */
void http_secrets_used(const struct http_request *rq);
/* Frees what http_set_up() allocated. The handle must be reset or freed before. */
void http_tear_down(struct http_call *c);

/* curl's callbacks; arg is the call. */
size_t http_on_read(char *to, size_t size, size_t n, void *arg);
int http_on_seek(void *arg, curl_off_t offset, int origin);
size_t http_on_header(char *p, size_t size, size_t n, void *arg);
size_t http_on_body(char *p, size_t size, size_t n, void *arg);

/* curl's callback that opens sockets, for all calls (http_public.c). */
curl_socket_t http_on_open_socket(void *arg, curlsocktype purpose, struct curl_sockaddr *a);
/* public_only. -ENOMEM. */
MUST_USE int http_set_public_only(struct http_call *c, CURL *easy);
/* If the call ended because an address was refused, fills the answer and returns true. */
bool http_explain_refused(struct http_call *c, CURLcode code);

/* Redirects (http_redirect.c): true if `location` is in the origin of the current URL, or no URL. Else sets
 * the answer's error. */
bool http_same_origin(struct http_call *c, struct str location);

/* The body has ended: sets the answer's error if an encoded one is incomplete (http_body.c). */
void http_end_body(struct http_call *c);

/* The budget for bodies (http_budget.c). */
void http_share_join(struct http_share *s, struct http_call *c);
void http_share_leave(struct http_call *c);
/* Asks for a body of `need` bytes. -EAGAIN: the transfer must pause, and is resumed or ended. -EDQUOT: it
 * never fits. */
MUST_USE int http_charge(struct http_call *c, size_t need);
void http_fail_budget(struct http_call *c, const char *what);

/* Sets error and reason unless they are set. */
void http_fail(struct http_call *c, enum http_error error, const char *fmt, ...) PRINTF_LIKE(3, 4);
/* Sets error and reason of the answer from curl's code, unless a callback has set them. */
void http_explain(struct http_call *c, CURLcode code);

/* Removes the call from the client and runs `done`. */
void http_finish(struct http_call *c, CURLcode code);

/* Streaming and the idle timeout (http_stream.c). */
void http_stream_start(struct http_call *c);
/* At the end of the headers. -ENOMEM. */
void http_stream_headers(struct http_call *c);
/* Returns the value for http_on_body() to return. */
size_t http_stream_in(struct http_call *c, const char *p, size_t n);
/* Goes on with a paused transfer, or ends an evicted one, in the loop's next turn: curl forbids both in its
 * callbacks. False without memory. */
void http_call_soon(struct http_call *c);
/* Passes the buffered bytes to on_data. False if on_data ended the call. */
bool http_stream_end(struct http_call *c);
void http_stream_stop(struct http_call *c);

#endif
