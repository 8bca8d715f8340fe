/* What to do after an answer, or after none: one table. */
#ifndef DS_REMOTEWRITE_VERDICT_H
#define DS_REMOTEWRITE_VERDICT_H

#include "exporter/base/http.h"

enum rw_verdict {
    VERDICT_SENT,
    VERDICT_RETRY,     /* the same bytes again, later */
    VERDICT_HALVE,     /* something in it is refused: find out what */
    VERDICT_DROP,      /* never again */
    VERDICT_STEP_DOWN, /* the form is not understood: the same samples in a simpler one */
    VERDICTS
};

/* "sent", "retry", "halve", "drop", "step_down". */
const char *verdict_word(enum rw_verdict v);
/* status counts only when error is HTTP_OK. */
enum rw_verdict verdict_of(enum http_error error, long status);
/* Milliseconds until the nth retry in a row (from 1): doubles from min to max, at random between half of that and all of
 * it; never less than what the receiver asked for (retry_after_ms, -1 for nothing), which counts up to an hour. */
int64_t verdict_backoff(unsigned nth, int64_t min_ms, int64_t max_ms, int64_t retry_after_ms);

#endif
