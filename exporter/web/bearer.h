/* A guard of an HTTP server: requests need one bearer token, from a file or a variable. */
#ifndef DS_WEB_BEARER_H
#define DS_WEB_BEARER_H

#include "exporter/base/clock.h"
#include "exporter/base/httpd.h"

#include <stdbool.h>

/* Embedded in its owner; must not move. */
struct bearer {
    const char *file, *token; /* not owned; one of them, or NULL both: every request is allowed */
    bool (*is_open)(const struct httpd_request *rq); /* whether a request needs no token. Server's thread */
    struct httpd_guard guard;
    mono_ms logged_at; /* server's thread */
    bool has_logged;
};

/* The file is read for each request, so that a new token takes effect at once. */
void bearer_init(struct bearer *b, const char *file, const char *token,
                 bool (*is_open)(const struct httpd_request *rq));
/* NULL without a token. */
const struct httpd_guard *bearer_guard(const struct bearer *b);

#endif
