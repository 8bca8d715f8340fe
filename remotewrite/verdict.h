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

#endif
