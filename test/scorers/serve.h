/* What a scorer's HTTP side needs: routes that answer JSON, a bearer token, a graceful stop. One
 * libmicrohttpd thread runs every route; the main thread waits for a signal. */
#ifndef DS_TEST_SCORERS_SERVE_H
#define DS_TEST_SCORERS_SERVE_H

#include <jansson.h>
#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

/* No response means that memory is out: the connection is then closed. */
struct answer {
    unsigned status;
    struct MHD_Response *response;
};

struct route {
    const char *method, *path; /* "GET" is for HEAD too */
    bool secret;               /* asks for the token, when there is one */
    struct answer (*fn)(const char *body, size_t n);
};

struct server {
    const char *program;    /* its name, for messages */
    const char *listen;     /* "host:port", ":port" or "[address]:port"; port 0 takes a free one */
    const char *token_file; /* NULL: no token */
    const struct route *routes;
    size_t n_routes;
};

/* Takes over `body`; NULL counts as lack of memory. */
struct answer answer_json(unsigned status, json_t *body);
/* {"error":"..."} */
struct answer answer_error(unsigned status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Says its address on stdout and serves until SIGTERM or SIGINT. The exit status: 0, or 1 after saying
 * what is wrong. */
int serve(const struct server *s);

#endif
