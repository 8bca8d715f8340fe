/* What the files of the intake share; nothing else includes it. */
#ifndef DS_REMOTEWRITE_INTAKE_INTERNAL_H
#define DS_REMOTEWRITE_INTAKE_INTERNAL_H

#include "remotewrite/intake.h"

enum { CLOCK_BACK_MS = 3600 * 1000 };

struct intake_lane {
    struct intake_lane *next;
    struct series_set *set; /* of the last batch; NULL: none yet in this run */
    struct frame **frames;  /* of that set */
    size_t n_frames;
    struct label_bytes
        *labels; /* what is alive where there is no set: of the run before, or the own metrics */
    int64_t grace_until_ms;
    size_t n; /* series alive */
    size_t name_n;
    char name[];
};

struct intake {
    const struct rw_endpoint_config *config;
    struct queue *queue;
    struct spool *spool;
    struct intake_lane *lanes;
};

void intake_drop_frames(struct intake_lane *l);
/* Text 0.0.4: labels and values of the lines that can be read. -ENOMEM. */
MUST_USE int intake_parse_text(const struct rw_endpoint_config *c, struct str text, struct label_bytes **ret,
                               double **ret_values);

#endif
