/* What to do with a request, by its response: one table. */
#ifndef DS_REMOTEWRITE_VERDICT_H
#define DS_REMOTEWRITE_VERDICT_H

#include "exporter/base/http.h"

enum rw_verdict {
    VERDICT_SENT,
    VERDICT_RETRY,     /* send the same bytes again later */
    VERDICT_HALVE,     /* some of the samples are rejected: find out which */
    VERDICT_SHRINK,    /* the request is too large */
    VERDICT_DROP,      /* never send again */
    VERDICT_STEP_DOWN, /* the format is not supported: send the samples in a simpler one */
    VERDICT_PARTIAL,   /* final: a 2.0 receiver rejected some samples and said how many it has written */
};

/* status is ignored unless error is HTTP_OK. */
enum rw_verdict verdict_of(enum http_error error, long status);

#endif
