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
    size_t charged; /* bytes of the body granted by the budget */
    /* Streaming: answer.body holds the bytes not yet passed on */
    bool streaming, paused;
    bool stream_begun; /* on_data has not been called yet */
    bool is_over;      /* the transfer has ended, with over_code, but on_data has not taken everything */
    CURLcode over_code;
    /* With bytes that no turn had a share for yet. A call works on at most CALL_TURN_BYTES a turn, so that
     * large answers do not hold up small ones. */
    struct share_wait wait;
    uint64_t turn; /* in which it worked on turn_bytes */
    size_t turn_bytes;
    struct timer soon; /* looks for memory, an eviction or a token in the loop's next turn */
    struct timer idle; /* ends an idle call, the body of a decided one, or the wait for a token */
    mono_ms ends_at;   /* the deadline of all hops */
    mono_ms last_byte;
    bool *gone; /* set while on_data runs: where to note that it ended the call */
    /* OAuth 2.0 */
    struct http_token *token; /* NULL: another way, or none */
    mono_ms token_at;         /* when what was sent of it was received */
    bool awaits_token;        /* the transfer has not started */
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

/* Sets all options of a new handle (http_setup.c). False if curl refuses one. */
MUST_USE bool http_set_up(struct http_call *c);
/* Has the handle send the same request to c->url, with the time that is left. False if curl refuses it. */
MUST_USE bool http_set_hop(struct http_call *c, int64_t timeout_ms);
/* "GET", "POST", ... */
const char *http_method(const struct http_request *rq);
void http_set_bearer(struct http_call *c, struct str token);
/* In the next turn, since curl's callbacks must not: asks for memory again, ends a transfer, or looks for the
 * token. */
void http_call_soon(struct http_call *c);

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

void http_token_join(struct http_call *c);
/* Prepares the transfer with the token. -EAGAIN: it is being requested, and http_call_soon() follows;
 * -EACCES: it cannot be had now, and the answer has the error. */
MUST_USE int http_token_apply(struct http_call *c);
/* The call ends, perhaps with an answer. */
void http_token_leave(struct http_call *c);
/* After all calls. */
void http_tokens_free(struct http *h);

/* curl's callbacks; arg is the call. */
size_t http_on_header(char *p, size_t size, size_t n, void *arg);
size_t http_on_body(char *p, size_t size, size_t n, void *arg);
