/* What an answer, or its absence, means to whoever asked: a table of one shape for five of the six places
 * that judge answers; Kubernetes adds reasons and words, see verdict.c. exporter/http/README.md shows all six
 * side by side; `test/docs --write` reads them.
 *
 *     static const struct http_rule rules[] = {
 *         {200, 299, HTTP_OK, VERDICT_SENT},
 *         {429, 429, HTTP_OK, VERDICT_RETRY},
 *         {0, 0, HTTP_TLS, VERDICT_RETRY},
 *         {0, HTTP_STATUS_MAX, HTTP_ANY, VERDICT_DROP},
 *     };
 *
 * A place may set the cause of an answer itself, as remote write does for a 401 to a token of OAuth 2.0.
 * The first row that matches decides; the last one matches everything. Pure; any thread. */
#pragma once

#include "exporter/http/cause.h"

#include <stddef.h>
#include <stdint.h>

enum { HTTP_STATUS_MAX = 999 };

struct http_rule {
    uint16_t from, to; /* the status; 0: there is no answer */
    /* HTTP_OK: there is one; HTTP_ANY: whatever happened; else the class of what went wrong. */
    enum http_error cause;
    int verdict; /* of the place's own enum */
};

int http_rule_verdict(const struct http_rule *rules, size_t n, long status, enum http_error cause);

/* Of a table that is in sight. */
#define HTTP_VERDICT(rules, status, cause) \
    http_rule_verdict(rules, sizeof(rules) / sizeof((rules)[0]), status, cause)
