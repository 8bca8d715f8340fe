/* Checks the bearer token of requests that change something or show data: POST, and /api/. */
#ifndef DS_MODELS_BEARER_H
#define DS_MODELS_BEARER_H

#include "exporter/base/clock.h"
#include "exporter/base/httpd.h"

#include <stdbool.h>

/* Embedded in its owner; must not move. */
struct bearer {
    const char *file, *token; /* not owned; one of them, or NULL both: every request is allowed */
    struct httpd_guard guard;
    mono_ms logged_at; /* server's thread */
    bool has_logged;
};

/* The file is read for each request, so that a new token takes effect at once. */
void bearer_init(struct bearer *b, const char *file, const char *token);
/* NULL without a token. */
const struct httpd_guard *bearer_guard(const struct bearer *b);

#endif
