/* The HTTP client: libcurl transfers on the loop. Every call has a deadline and a ceiling for its answer.
 * TLS is always verified: against SSL_CERT_FILE / SSL_CERT_DIR when set, otherwise the system's store.
 * Proxies come from http_proxy, HTTPS_PROXY, ALL_PROXY and NO_PROXY in either case.
 * Redirects are followed five times at most, a POST stays a POST (303 apart), and
 * credentials never follow to another host, port or scheme. */
#ifndef DS_BASE_HTTP_H
#define DS_BASE_HTTP_H

#include "exporter/base/buf.h"
#include "exporter/base/loop.h"

#include <stdbool.h>

struct http;      /* a client: connections and DNS cache of one loop */
struct http_call; /* one request under way */

enum http_error {
    HTTP_OK,        /* an answer came, whatever its status */
    HTTP_URL,       /* the URL cannot be used */
    HTTP_DNS,       /* the name does not resolve */
    HTTP_CONNECT,   /* refused, unreachable, proxy not reached */
    HTTP_TLS,       /* handshake or verification */
    HTTP_TIMEOUT,   /* the deadline passed */
    HTTP_TOO_LARGE, /* body or headers past their ceiling */
    HTTP_BROKEN,    /* cut off, not HTTP, bad encoding, too many redirects */
    HTTP_MEMORY,
    HTTP_ERRORS
};

/* What a call needs beside the system's store; NULL for none. Must live until `done`. */
struct http_tls {
    const char *ca_file, *cert_file, *key_file; /* PEM */
    struct str ca, cert, key;                   /* the same in memory, instead of files; empty for none */
    bool insecure;                              /* neither chain nor name is verified */
};

struct http_request {
    const char *url;          /* copied */
    const char *method;       /* NULL: POST when there is a body, else GET */
    const char *content_type; /* of the body; NULL for none */
    struct str bearer;        /* copied; empty for none. Never logged */
    const struct str
        *body; /* parts sent one after the other; the array is copied, the bytes must live until `done` */
    size_t body_parts;
    size_t max_answer;  /* bytes after decoding */
    int64_t timeout_ms; /* for the whole call; > 0 */
    /* All below may be left zero. */
    const char *const *headers; /* "Name: value" each; copied */
    size_t n_headers;
    const char *user, *password; /* basic authentication; copied */
    const struct http_tls *tls;
    const char *proxy;      /* instead of the environment's, NO_PROXY included */
    const char *connect_to; /* "host:port:to-host:to-port": where to connect to instead of the URL's host */
    bool no_redirects;      /* a redirect is the answer */
    bool cut_answer;  /* a body past max_answer is cut there, its rest not waited for, and is no error */
    bool accept_gzip; /* over a network that is slower than decoding */
    /* Connects to addresses of the public Internet only (address.h), redirects included. No proxy is used,
     * `proxy` and the environment's included, since it would connect for us; nor is a connection shared
     * with other calls. */
    bool public_only;
    /* Each header of the answer, with the arg of `done`; more than once after redirects. */
    void (*on_header)(void *arg, struct str name, struct str value);
    /* Takes the body of a 2xx answer as it comes, with the arg of `done`: an empty piece when the headers
     * are in, then each piece. Such a body is not kept and has no ceiling; max_answer is for other
     * answers. Runs on the loop, never inside curl, and may do anything, http_cancel() included. Pieces
     * that came before an error are passed on too. */
    void (*on_data)(void *arg, struct str piece);
    int64_t
        /* no byte for so long, by the loop's clock, ends the call with HTTP_TIMEOUT; 0: none */
        idle_timeout_ms;
};

struct http_answer {
    enum http_error error;
    char reason[512];       /* for a person: why there is no answer; empty on HTTP_OK. Holds no credentials */
    bool refused;           /* HTTP_CONNECT on account of public_only */
    long status;            /* 0 without an answer */
    struct buf body;        /* the callback may take it with buf_take() */
    int64_t retry_after_ms; /* from Retry-After (seconds or HTTP date), -1 without */
    char content_type[128];
    double seconds;          /* whole call */
    uint64_t sent, received; /* bytes of body on the wire */
};

/* Runs on the loop once per call, never from inside http_start(). The answer is freed after it returns. */
typedef void (*http_done_fn)(void *arg, struct http_answer *a);

/* user_agent as "name/version". -ENOMEM. */
MUST_USE int http_new(struct http **ret, struct loop *loop, const char *user_agent);
/* Cancels what is under way. Before loop_free(); also from a `done`. */
struct http *http_free(struct http *h);
DEFINE_CLEANUP(struct http, http_free)

/* Starts a call. -ENOMEM, or -EINVAL when the URL is not http or https, the bearer token is not one by
 * secret_token(), or there is no deadline; then `done` is never called. */
MUST_USE int http_start(struct http_call **ret, struct http *h, const struct http_request *r,
                        http_done_fn done, void *arg);
/* Ends a call; `done` is not called. Takes NULL, returns NULL. */
struct http_call *http_cancel(struct http_call *c);

/* Replaces user:password@ in a URL by nothing, for logs and pages. -ENOMEM, -EFBIG. */
MUST_USE int http_url_for_people(struct str url, struct buf *into);

#endif
