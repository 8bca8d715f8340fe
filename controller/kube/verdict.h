/* What an API server's answer, or the lack of one, means to the caller. Pure. */
#pragma once

#include "exporter/http/cause.h"

#include <jansson.h>
#include <stdint.h>

/* Callers decide by it, and by nothing that the answer says in words. */
enum kube_verdict {
    KUBE_OK,
    KUBE_RETRY,        /* no connection, 429, 5xx, time-out: transient; retry after kube_backoff_ms() */
    KUBE_UNAUTHORIZED, /* 401, or no readable credentials: passes when they are renewed */
    KUBE_FORBIDDEN,    /* 403: passes when the right is granted */
    KUBE_NOT_FOUND,    /* 404 of an object, or of the namespace to create it in */
    KUBE_NO_KIND,      /* 404 of the whole resource: its CRD is not installed */
    KUBE_EXISTS,       /* 409 to a create */
    KUBE_CONFLICT,     /* 409 to a write: the object changed since it was read */
    KUBE_GONE,         /* 410: the resourceVersion or the continue token is too old; list again */
    KUBE_INVALID,      /* 400, 405, 415, 422 ...: the same request would fail again */
    KUBE_TOO_LARGE,    /* 413, refused by the store for its size, or an answer over its ceiling */
    KUBE_VERDICTS
};

/* For labels: "ok", "not_found", "too_large". */
const char *kube_verdict_word(enum kube_verdict v);

/* backoff_ms() that honors a Retry-After of up to two minutes. */
int64_t kube_backoff_ms(unsigned nth, int64_t min_ms, int64_t max_ms, int64_t retry_after_ms);

/* By the tables in verdict.c. `status`: the Status object of the answer, or NULL; reason and message are its
 * own, or what the answer says as text. */
enum kube_verdict kube_verdict_of_status(long http_status, const char *reason, const char *message,
                                         const json_t *status);
/* Without an answer. */
enum kube_verdict kube_verdict_of_failure(enum http_error error);
