/* The meaning of an API server's answer, in one table, so that no caller inspects status codes. */
#ifndef DS_KUBE_VERDICT_H
#define DS_KUBE_VERDICT_H

#include "controller/kube/json.h"
#include "exporter/base/backoff.h"
#include "exporter/base/http.h"

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

/* For labels: "ok", "retry", "unauthorized", "forbidden", "not_found", "no_kind", "exists", "conflict",
 * "gone", "invalid", "too_large". */
const char *kube_verdict_word(enum kube_verdict v);

/* A Status object and its meaning. */
struct kube_status {
    enum kube_verdict verdict;
    char reason[64];        /* metav1.StatusReason: "NotFound", "Expired"; empty without */
    char message[512];      /* one line of valid UTF-8; empty on KUBE_OK */
    int64_t retry_after_ms; /* details.retryAfterSeconds, -1 without */
};

/* The meaning of an HTTP status with its body: a Status object, plain text or nothing. */
void kube_status_of_answer(long http_status, struct str body, struct kube_status *ret);
/* The meaning of the Status object in a watch's ERROR event. */
void kube_status_of_event(const json_t *status, struct kube_status *ret);
/* The meaning of a transfer without an answer. */
enum kube_verdict kube_verdict_of_error(enum http_error e);

/* backoff_ms() with the longest Retry-After of an API server that is honored: two minutes. */
static inline int64_t kube_backoff_ms(unsigned nth, int64_t min_ms, int64_t max_ms, int64_t retry_after_ms)
{
    return backoff_ms(&(struct backoff){min_ms, max_ms, 2 * 60 * 1000}, nth, retry_after_ms);
}

#endif
