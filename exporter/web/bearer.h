/* A guard of the program's own: one bearer token (RFC 6750), from a file or a variable. */
#pragma once

#include "exporter/http/httpd.h"

/* Embedded in its owner; must not move. */
struct bearer {
    const char *file, *token; /* not owned; one of them, or NULL both: every request is allowed */
    bool (*is_open)(const struct httpd_request *rq); /* whether a request needs no token. Server's thread */
    struct httpd_guard guard;
    _Atomic int64_t log_at_ms; /* the next time that a problem is logged; monotonic */
};

/* The guard, NULL without a token. The file is read for each request: a new token takes effect at once. */
const struct httpd_guard *bearer_init(struct bearer *b, const char *file, const char *token,
                                      bool (*is_open)(const struct httpd_request *rq));
