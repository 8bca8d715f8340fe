/* Where scores go. A sink never blocks the loop: it renders, queues or counts, and returns. */
#ifndef DS_METRIC_SINK_H
#define DS_METRIC_SINK_H

#include "exporter/base/clock.h"
#include "exporter/metric/series.h"

struct scorer;
struct sink;

/* Each but the name may be NULL. */
struct sink_ops {
    const char *name;
    /* A scorer's whole new set of scores. The sink takes a reference of its own if it keeps the batch. */
    void (*publish)(struct sink *s, struct batch *b);
    /* A scorer's scores are gone: it was removed, or they grew too old. Does nothing for a name never
     * published. */
    void (*withdraw)(struct sink *s, const char *score_name, unix_ms at);
    /* A round of the scorer has ended, successfully or not, or its scores have expired. */
    void (*round)(struct sink *s, const struct scorer *scorer);
    /* A configuration has been applied: these are the scorers, and earlier ones are freed. */
    void (*applied)(struct sink *s, struct scorer *const *scorers, size_t n);
};

struct sink {
    const struct sink_ops *ops;
};

#endif
