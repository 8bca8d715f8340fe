/* What an API server answered: its verdict, and why, in words for people. */
#pragma once

#include "controller/kube/verdict.h"
#include "exporter/base/str.h"

#include <jansson.h>

struct kube_answer {
    enum kube_verdict verdict;
    long http_status;       /* 0 without an answer */
    char reason[64];        /* the Status object's: "AlreadyExists"; empty without */
    char why[768];          /* the error for people, one line without credentials; empty on KUBE_OK */
    int64_t retry_after_ms; /* from the header or the Status object; -1 without */
    size_t bytes;           /* of the body */
    json_t *object;         /* the body on KUBE_OK; borrowed, json_incref() to keep. NULL with on_data, and
                             * without the items with on_item */
    double seconds;
};

/* Sets verdict, reason, why (one line of UTF-8) and retry_after_ms: from a Status object, text or nothing;
 * or from the Status object in a watch's ERROR event. */
void kube_status_of_answer(long http_status, struct str body, struct kube_answer *ret);
void kube_status_of_event(const json_t *status, struct kube_answer *ret);
