/* The last call of an endpoint, for the page at "/". */
#ifndef DS_MODELS_LAST_CALL_H
#define DS_MODELS_LAST_CALL_H

#include "exporter/base/buf.h"
#include "exporter/base/clock.h"
#include "exporter/models/model.h"
#include "exporter/models/request.h"
#include "exporter/ui/out.h"

enum {
    LAST_CALL_SERIES = 50,
    LAST_CALL_SAMPLES = 240,
    LAST_CALL_RESULTS = 200,
    LAST_CALL_MAX_BYTES = 2 << 20
};

/* What the page shows of one endpoint. Loop thread. */
struct last_call {
    uint64_t calls, failures;
    unix_ms at; /* of the last call that succeeded; 0: none */
    double seconds, backtest_error;
    size_t bytes, series, results, backtests, left_out[LEFT_OUTS];
    struct buf shown; /* from last_call_show() */
    unix_ms failed_at;
    unsigned failed_status;
    char failure[REQUEST_WHY_BYTES];
};

/* Appends members "shownSeries" and "shownResults" with the first series of a valid request and the first
 * results of its answer. Any thread. -ENOMEM, -EFBIG. */
MUST_USE int last_call_show(struct str body, struct str answer, struct buf *into);
/* Members of one endpoint: "calls", "failures", "lastCall", "lastFailure". */
void member_last_call(struct out *o, const struct last_call *c);

#endif
