/* The functions that make one number of the samples in a window. */
#ifndef DS_PROMQL_FUNCTION_H
#define DS_PROMQL_FUNCTION_H

#include "exporter/base/str.h"
#include "exporter/promql/window.h"
#include "exporter/tsdb/tsdb.h"

struct range_function {
    const char *name;
    enum window_track track;
    bool keeps_name; /* of the metric */
    /* The result at the time `at` for a window that is not empty and reaches back range_ms; value_absent()
     * if it has too few samples. */
    double (*value)(const struct window *w, int64_t at, int64_t range_ms);
};

/* NULL for an unknown name. */
const struct range_function *range_function_of(struct str name);
/* Sorted by name; the last one's name is NULL. */
extern const struct range_function range_functions[];

/* No value at a point: the bits of a stale marker, which no sample in a window and no result has. */
static inline double value_absent(void)
{
    uint64_t bits = TSDB_STALE_BITS;
    double v;

    memcpy(&v, &bits, sizeof(v));
    return v;
}

static inline bool value_is_absent(double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof(bits));
    return bits == TSDB_STALE_BITS;
}

#endif
