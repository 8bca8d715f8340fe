/* The HTTP client: libcurl transfers on the loop. TLS is verified against SSL_CERT_FILE / SSL_CERT_DIR
 * when set, otherwise the system's store. Proxies come from http_proxy, HTTPS_PROXY, ALL_PROXY and
 * NO_PROXY in either case.
 *
 * At most five redirects are followed, within the origin of the URL, so that neither body nor credentials go
 * elsewhere: 301, 302, 307 and 308 with the same method and body, 303 for a GET only. Any other 3xx is an
 * answer. We resolve and judge each Location ourselves (redirect.h); one that cannot be understood ends the
 * call. Deadline and limits count for all hops together. */
#pragma once

#include "exporter/base/buf.h"
#include "exporter/base/loop.h"
#include "exporter/http/cause.h"

#include <curl/curl.h>
#include <sys/queue.h>

struct http;      /* a client: connections and DNS cache of one loop */
struct http_call; /* one request in progress */

/* NULL or empty for the defaults. Must live until `done`. */
struct http_tls {
    const char *ca_file, *cert_file, *key_file; /* PEM */
    struct str ca, cert, key;                   /* the same as PEM in memory instead of files */
    const char *server_name; /* to be verified, and sent as SNI; NULL: the host of the URL */
    bool insecure;           /* verify neither chain nor name */
};

/* Client credentials of OAuth 2.0 (RFC 6749, section 4.4). Must live until `done`. */
struct http_oauth2 {
    const char *token_url; /* http_is_url() */
    struct str client_id, client_secret;
    struct str form;            /* the token request without those: grant_type, scope, ..., encoded */
    const struct http_tls *tls; /* of the token endpoint */
    const char *proxy;          /* as that of a request */
};

/* What the owner of calls, one at a time, holds of the client's budget for bodies of answers. Zeroed
 * before its first call; kept until http_share_done(), also while a body that `done` took is in use. */
struct http_share {
    struct http *http; /* NULL before the first call */
    TAILQ_ENTRY(http_share) entry;
    struct http_call *call; /* in progress */
    size_t reserved;        /* bytes, by the call in progress, by earlier ones and by http_share_reserve() */
    size_t waiting_for; /* further bytes that the call asks for, for which there is no room yet; 0: none */
    bool evicted;       /* the call is about to fail */
};

struct http_request {
    const char *url;          /* copied */
    const char *method;       /* NULL: POST when there is a body, else GET. Not HEAD */
    const char *content_type; /* of the body; NULL for none */
    struct str bearer;        /* copied; empty for none. Never logged */
    const struct str *body;   /* parts; the array is copied, the bytes must live until `done` */
    size_t body_parts;
    size_t max_answer;  /* bytes after decoding, with those of redirects */
    int64_t timeout_ms; /* for the whole call; > 0 */
    /* Optional: */
    const char *const *headers; /* "Name: value" each; copied */
    size_t n_headers;
    const char *trace;           /* see http_trace_id(): sent as `traceparent`, with a span of its own */
    const char *user, *password; /* basic authentication; copied */
    /* In place of `bearer` and `user`: the client gets a token, and keeps it for all calls with these values.
     * The call waits for it, within timeout_ms, and fails with HTTP_AUTH without it. A token that is answered
     * with 401 is not used again. */
    const struct http_oauth2 *oauth2;
    const struct http_tls *tls;
    const char *proxy; /* overrides the environment, including NO_PROXY */
    bool no_redirects; /* return any redirect as the answer */
    bool cut_answer;   /* truncate the body at max_answer, without an error */
    /* The call succeeds with the headers. The body is read for 2 s (200 ms after a 2xx) and up to
     * max_answer, and not decoded; neither Accept nor Accept-Encoding is sent. */
    bool status_decides;
    bool accept_gzip; /* for networks slower than decoding; not with on_data */
    /* Connect only to globally reachable addresses (RFC 6890), also on redirects. Disables `proxy` and the
     * environment's proxies, which would connect on our behalf, and the reuse of connections. */
    bool public_only;
    /* Called with the arg of `done` for each header of the answer, and of the redirects before it. */
    void (*on_header)(void *arg, struct str name, struct str value);
    /* Receives the body of a 2xx in pieces once the headers are complete: the first may be empty. It is
     * neither kept nor limited nor decoded; max_answer applies to other statuses. Counts what it does with
     * them (loop_spend()), and returns how many bytes it has taken: the others come again in a later turn,
     * with what follows, and `done` once all were taken. May call http_cancel(). */
    size_t (*on_data)(void *arg, struct str piece);
    struct http_share *share; /* NULL: the body is counted until `done` runs */
    int64_t idle_timeout_ms;  /* HTTP_TIMEOUT when no byte is received for this long; 0: none */
};

struct http_response {
    enum http_cause cause;  /* why the call failed; CAUSE_NONE: an answer was received */
    enum http_error error;  /* its class */
    char reason[512];       /* the same for a person; empty on HTTP_OK. Without credentials */
    long status;            /* 0 without an answer */
    struct buf body;        /* `done` may take it with buf_take() */
    int64_t retry_after_ms; /* from Retry-After (seconds or HTTP date); -1 if absent or 0 */
    char content_type[128];
    double seconds;          /* whole call */
    uint64_t sent, received; /* bytes of body on the wire */
};

/* Runs on the loop once per call, never from inside http_start(). The answer is freed after it returns. */
typedef void (*http_done_fn)(void *arg, struct http_response *a);

/* user_agent as "name/version". */
struct http *http_new(struct loop *loop, const char *user_agent);
/* Cancels all calls. To be called before loop_free(); allowed from a `done`. */
struct http *http_free(struct http *h);

/* Bytes of answers' bodies that may be in memory together, of all calls; 0: half of what the process may
 * use. A call that does not fit waits for others until its deadline, or fails with HTTP_MEMORY. */
void http_set_budget(struct http *h, uint64_t bytes);
void http_budget(const struct http *h, uint64_t *ret_used, uint64_t *ret_max);
/* Counts other bytes against the budget until http_share_done(). -EDQUOT at once if there is no room. */
MUST_USE int http_share_reserve(struct http_share *s, struct http *h, size_t bytes);
/* After the calls of the share, and its bodies, are gone. */
void http_share_done(struct http_share *s);

/* -EINVAL, without `done`: no http or https URL, a bearer token with bad characters, timeout_ms <= 0. */
MUST_USE int http_start(struct http_call **ret, struct http *h, const struct http_request *r,
                        http_done_fn done, void *arg);
/* Ends a call; `done` is not called. Takes NULL, returns NULL. */
struct http_call *http_cancel(struct http_call *c);

/* The id of a new trace (W3C Trace Context, level 1), in hexadecimal digits. */
enum { HTTP_TRACE_BYTES = 33 };
void http_trace_id(char ret[HTTP_TRACE_BYTES]);

/* ---- URLs and addresses (url.c) ---- */

/* Whether it begins with http:// or https:// and a host; libcurl also accepts mistakes like "http:/host". */
bool http_is_url(struct str url);
/* Appends the URL for logs and pages: without user:password@ and the values of parameters, other than those
 * of the query API. The text may go on after the URL. */
void http_url_for_people(struct str url, struct buf *into);
/* Has the password and the values of parameters that may be secret hidden in all text (secret.h). */
void url_secrets_used(const char *url);

/* "scheme://host:port" (RFC 6454) in lower case and with the port, from malloc; NULL without a host. */
char *url_origin_of(CURLU *u);
/* The origin of an http or https URL; "" for all else, and with user information, which hides the host. */
char *url_origin(const char *url) __attribute__((malloc, returns_nonnull));

/* Whether the IPv4 or IPv6 address, in network byte order, is globally reachable (RFC 6890). */
bool address_is_public(int family, const void *address);

DEFINE_CLEANUP(CURLU, curl_url_cleanup)
