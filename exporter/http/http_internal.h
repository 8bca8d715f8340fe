/* Private to the HTTP client (http*.c). */
#pragma once

#include "exporter/base/alloc.h"
#include "exporter/base/clock.h"
#include "exporter/base/inflate.h"
#include "exporter/base/loop.h"
#include "exporter/base/text.h"
#include "exporter/http/cause.h"
#include "exporter/http/http.h"

struct http {
    struct loop *loop;
    CURLM *multi;
    char *user_agent;
    LIST_HEAD(, http_call) calls; /* in progress */
    uint64_t budget_used, budget_max;
    TAILQ_HEAD(, http_share) shares; /* the oldest first */
    TAILQ_HEAD(, http_token) tokens; /* the oldest first */
};

enum {
    HTTP_MAX_REDIRECTS = 5,
    HTTP_WINDOW_BYTES = 256 << 10, /* of a stream buffered at most; one piece of curl's may exceed it */
};

/* What holds a call back before its transfer: a token that is being requested. */
struct http_gate {
    /* The call has come to the gate; apply() follows in the loop's next turn. */
    void (*join)(struct http_call *c);
    /* Prepares the transfer, and returns 0. -EAGAIN: it cannot begin yet, and http_call_soon() follows;
     * another error: it cannot begin at all, and the answer says why. */
    int (*apply)(struct http_call *c);
    /* The call's deadline has come: says so in the answer. */
    void (*late)(struct http_call *c);
    /* The call ends, perhaps with an answer. */
    void (*leave)(struct http_call *c);
};

struct http_call {
    struct http *http;
    LIST_ENTRY(http_call) entry;
    CURL *easy; /* NULL while `done` runs */
    http_done_fn done;
    void *arg;
    struct http_response answer;
    struct http_request rq; /* what it points to may be gone */
    bool bad_option;        /* curl refused one */
    struct curl_slist *headers, *connect_to;
    /* The request's body */
    size_t part, offset; /* position of the next byte to send */
    uint64_t body_bytes;
    /* The answer */
    size_t header_bytes;
    bool retry_after_is_bad; /* neither seconds nor a date: libcurl reads a number at its beginning */
    bool in_head;            /* between a status line and the empty line; later headers are trailers */
    bool encoded;            /* has a Content-Encoding */
    char encoding[32];       /* one that was not asked for, or empty */
    struct inflate *gzip;    /* of a body with Content-Encoding gzip or deflate */
    struct str unpacked;     /* the last step of it, which `answer.body` does not have yet */
    size_t taken;            /* bytes already decoded of what curl will deliver again after a pause */
    bool cut;                /* the body was truncated at its limit */
    bool decided;            /* status_decides: the final status and its headers were received */
    struct http_share *share, own_share;
    size_t reserved; /* of the share's, for the body of this call */
    /* Streaming: answer.body holds the bytes not yet passed on */
    bool streaming, paused;
    bool first_piece_due; /* on_data has not been called yet */
    bool is_over;         /* the transfer has ended, with over_code, but on_data has not taken everything */
    CURLcode over_code;
    /* With bytes that no turn had a share for yet. A call works on at most CALL_TURN_BYTES a turn, so that
     * large answers do not hold up small ones. */
    struct share_wait wait;
    uint64_t turn; /* in which it worked on turn_bytes */
    size_t turn_bytes;
    struct timer soon; /* looks for memory, an eviction or the gate in the loop's next turn */
    struct timer idle; /* ends an idle call, the body of a decided one, or the wait at the gate */
    mono_ms ends_at;   /* the deadline of all hops */
    mono_ms last_byte;
    bool *gone;                   /* set while on_data runs: where to note that it ended the call */
    const struct http_gate *gate; /* NULL: none */
    bool is_held;                 /* by the gate: the transfer has not begun */
    /* OAuth 2.0 */
    struct http_token *token; /* NULL: another way, or none */
    mono_ms token_at;         /* when what was sent of it was received */
    char curl_error[CURL_ERROR_SIZE];
    unsigned socket_port; /* where the last socket was to connect to, perhaps a proxy; 0: none was opened */
    char socket_address[64]; /* likewise */
    char refused[64];        /* public_only: the refused address, or empty */
    /* Redirects: one transfer follows the other on the same handle */
    enum location_state {
        LOCATION_NONE,
        LOCATION_ONE,     /* the value is in `location` */
        LOCATION_SEVERAL, /* parsers take either */
        LOCATION_FOLDED,  /* it goes on in another line, which some parsers append and others drop */
    } location_state;     /* of the head that is being read */
    struct buf location;  /* of it, as it came */
    bool in_location;     /* the last header was a Location, which the next line may continue */
    CURLU *url;           /* of the hop in progress; NULL of the first, which is the request's */
    CURLU *next_url;      /* the answer is a redirect to there, and its body is not kept */
    struct hops {
        unsigned n; /* redirects followed */
        double seconds;
        uint64_t sent, received;
    } hops;             /* the transfers before the one in progress */
    struct str parts[]; /* of the request's body */
};

/* Sets the cause and its class. */
static inline void http_answer_set_cause(struct http_response *a, enum http_cause cause)
{
    a->cause = cause;
    a->error = http_cause_class(cause);
}

/* "GET", "POST", ... */
static inline const char *http_method(const struct http_request *rq)
{
    if (rq->method)
        return rq->method;
    return rq->body_parts ? "POST" : "GET";
}

/* In the next turn, since curl's callbacks must not: asks for memory again, ends a transfer, or asks the
 * gate. */
static inline void http_call_soon(struct http_call *c)
{
    if (!c->soon.place)
        loop_timer_set(c->http->loop, &c->soon, loop_now(c->http->loop));
}

/* ---- Options (http_setup.c) ---- */

/* Sets all options of a new handle. False if curl refuses one. */
MUST_USE bool http_set_up(struct http_call *c);
/* Has the handle send the same request to c->url, with the time that is left. False if curl refuses it. */
MUST_USE bool http_set_hop(struct http_call *c, int64_t timeout_ms);
void http_set_bearer(struct http_call *c, struct str token);

/* ---- Proxies (http_proxy.c) ---- */

enum proxy_use {
    PROXY_UNKNOWN, /* one of the environment, unless NO_PROXY excepts the server */
    PROXY_NONE,
    PROXY_USED
};

/* The server of a URL, as libcurl reads it. */
struct http_origin {
    bool is_https;
    const char *host; /* an IPv6 address has its brackets */
    unsigned port;
};

/* How the call, which failed with that code, was to reach the server. */
enum proxy_use http_proxy_use(const struct http_call *c, CURLcode code, const struct http_origin *server);

/* ---- Tokens of OAuth 2.0 (http_oauth2.c) ---- */

extern const struct http_gate http_token_gate;
/* After all calls. */
void http_tokens_free(struct http *h);

/* ---- What libcurl knows of the transfer (http_info.c) ---- */

long http_info_long(const struct http_call *c, CURLINFO what);
curl_off_t http_info_off(const struct http_call *c, CURLINFO what);
long http_call_status(const struct http_call *c);
/* The URL of the hop in progress. NULL if libcurl's parser refuses the request's. */
CURLU *http_last_url(const struct http_call *c);
/* Of all hops. */
double http_call_seconds(const struct http_call *c);
uint64_t http_call_sent(const struct http_call *c);
uint64_t http_call_received(const struct http_call *c);

/* ---- Failures (http_failure.c) ---- */

/* Of a reason before it is cut: an origin in it is no longer than the URL or the head that it is from. */
#define HTTP_REASON_MAX_BYTES (SIZE_MAX / 2)

/* Sets cause and reason of the answer unless they are set. The reason becomes one line, cut in the middle to
 * fit. */
void http_call_fail_with(struct http_call *c, enum http_cause cause, struct buf *reason);
/* The same of a reason without parts that may be absent. */
void http_call_fail(struct http_call *c, enum http_cause cause, const char *fmt, ...) PRINTF_LIKE(3, 4);
void http_fail_budget(struct http_call *c, const char *what);
/* The transfer has ended with this code: does the same if it is no success. */
void http_explain_failure(struct http_call *c, CURLcode code);

/* ---- The budget for bodies (http_budget.c) ---- */

void http_share_enter(struct http_share *s, struct http *h);
/* Asks for a body of `need` bytes. -EAGAIN: the transfer must pause, and is resumed or ended. -EDQUOT: it
 * never fits. */
MUST_USE int http_share_reserve_body(struct http_call *c, size_t need);

/* ---- The answer (http_head.c, http_body.c). curl's callbacks; arg is the call ---- */

size_t http_on_header(char *p, size_t size, size_t n, void *arg);
size_t http_on_body(char *p, size_t size, size_t n, void *arg);
/* A later turn that has a share for it goes on with the call's body. */
void http_call_line_up(struct http_call *c);
/* Reports what is wrong with an encoded body; r: of the decoder. */
void http_body_check(struct http_call *c, int r);

/* ---- Calls (http_call.c) ---- */

/* As http_start(), without regard to `oauth2`. gate: NULL for none. */
MUST_USE int http_call_start(struct http_call **ret, struct http *h, const struct http_request *rq,
                             const struct http_gate *gate, http_done_fn done, void *arg);
/* For loop_multi(). */
void http_on_transfer_done(CURL *easy, CURLcode code);
