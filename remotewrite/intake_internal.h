/* Private to intake*.c. */
#ifndef DS_REMOTEWRITE_INTAKE_INTERNAL_H
#define DS_REMOTEWRITE_INTAKE_INTERNAL_H

#include "exporter/metric/series_set.h"
#include "remotewrite/frame.h"
#include "remotewrite/intake.h"

/* The series of one scorer; without a name, the program's own metrics. */
struct intake_lane {
    struct intake_lane *next;
    struct series_set *set; /* of the last batch; NULL: none yet in this run */
    struct frame **frames;  /* of that set */
    size_t n_frames;
    struct label_bytes *labels; /* active series without a set: of the previous run, or the own metrics */
    int64_t grace_until_ms;
    size_t n;       /* active series */
    size_t invalid; /* series of the set that are dropped */
    size_t name_n;
    char name[];
};

enum { INTAKE_WARNED = 64 };

struct intake {
    const struct rw_endpoint_config *config;
    struct queue *queue;
    struct spool *spool;
    struct intake_lane *lanes;
    struct families families;
    uint64_t warned[INTAKE_WARNED]; /* hashes of invalid names */
    size_t n_warned;
};

/* Labels and values of every sample, in the order of metrics_each(); notes their metadata. -ENOMEM. */
MUST_USE int intake_collect_metrics(struct intake *in, const struct metrics *m, struct label_bytes **ret,
                                    double **ret_values);

#endif
