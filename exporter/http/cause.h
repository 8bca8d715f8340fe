/* Why a call of the HTTP client failed: a cause, which the place that knows it names, and the cause's class,
 * by which callers decide and count. The words are for tests and for who reads the code: a user sees the
 * answer's sentence. Pure; any thread. */
#pragma once

/* The classes. A place that judges answers has one row for each class that it tells apart (rule.h). */
enum http_error {
    HTTP_OK,        /* an answer was received, with any status */
    HTTP_URL,       /* invalid URL */
    HTTP_DNS,       /* could not resolve the name */
    HTTP_CONNECT,   /* refused, unreachable, proxy failed */
    HTTP_FORBIDDEN, /* the address is not one that may be asked */
    HTTP_TLS,       /* handshake or verification */
    HTTP_TIMEOUT,   /* the deadline passed */
    HTTP_TOO_LARGE, /* body or headers over their limit */
    HTTP_BROKEN,    /* truncated, not HTTP, bad encoding, too many redirects or an invalid one */
    HTTP_REDIRECT,  /* to another origin */
    HTTP_MEMORY,    /* over the budget */
    HTTP_AUTH,      /* no token of OAuth 2.0 */
    HTTP_ERRORS,
    HTTP_ANY = HTTP_ERRORS, /* in a rule: whatever happened */
};

enum http_cause {
    CAUSE_NONE, /* an answer was received */
    CAUSE_URL,
    CAUSE_DNS,
    /* The connection */
    CAUSE_CONNECT,         /* to the server: refused, unreachable */
    CAUSE_PROXY_DNS,       /* the proxy's name could not be resolved */
    CAUSE_PROXY_CONNECT,   /* to the proxy, or its handshake */
    CAUSE_PROXY_TUNNEL,    /* it refused the CONNECT */
    CAUSE_PRIVATE_ADDRESS, /* of a request with public_only */
    /* TLS, step by step */
    CAUSE_TLS_CA,                 /* the CA certificates cannot be read */
    CAUSE_TLS_CERTIFICATE,        /* our certificate or key cannot be used */
    CAUSE_TLS_HANDSHAKE,          /* no TLS, or no common version or cipher */
    CAUSE_TLS_SERVER_CERTIFICATE, /* the server's is not trusted, or for another name */
    CAUSE_TLS_CLIENT_REFUSED, /* the server ended the connection: for our certificate, or the lack of one */
    /* Time */
    CAUSE_DEADLINE,
    CAUSE_IDLE,           /* idle_timeout_ms */
    CAUSE_PROXY_DEADLINE, /* the proxy did not answer by the deadline */
    /* Limits */
    CAUSE_BODY_LIMIT,    /* max_answer */
    CAUSE_HEADERS_LIMIT, /* ours, or libcurl's of one line */
    CAUSE_BUDGET,        /* http_set_budget() */
    CAUSE_ALLOCATION,
    /* Answers that are not understood */
    CAUSE_NOT_HTTP,
    CAUSE_ENCODING,         /* a Content-Encoding that was not asked for */
    CAUSE_ENCODED_BODY,     /* that cannot be decoded */
    CAUSE_TRANSFER,         /* ended early, or any other fault */
    CAUSE_LOCATION_SEVERAL, /* a redirect with more than one Location */
    CAUSE_LOCATION_INVALID, /* or with one that programs read differently */
    CAUSE_REDIRECTS,        /* too many */
    CAUSE_REDIRECT_URL,     /* libcurl does not take it */
    CAUSE_ELSEWHERE,        /* a redirect to another origin */
    /* OAuth 2.0 */
    CAUSE_TOKEN,          /* the token request failed */
    CAUSE_TOKEN_DEADLINE, /* it had not ended by the call's deadline */
    CAUSES
};

enum http_error http_cause_class(enum http_cause cause);
/* "body_limit", "tls_handshake", ...; "none". */
const char *http_cause_word(enum http_cause cause);
/* "too_large", "tls", ...; "ok". */
const char *http_error_word(enum http_error error);
