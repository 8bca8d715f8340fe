/* Turns batches into records: remembers each scorer's active series, reuses their frames, and writes stale
 * markers. Sender thread. */
#ifndef DS_REMOTEWRITE_INTAKE_H
#define DS_REMOTEWRITE_INTAKE_H

#include "exporter/metric/metrics.h"
#include "exporter/metric/series.h"
#include "remotewrite/families.h"
#include "remotewrite/labels.h"
#include "remotewrite/queue.h"

struct intake;

enum { INTAKE_GRACE_MS = 5 * 60 * 1000 };

/* Loads the series that were active when the agent last ran. spool may be NULL. Nothing is owned. -ENOMEM. */
MUST_USE int intake_new(struct intake **ret, const struct rw_endpoint_config *c, struct queue *q,
                        struct spool *spool);
/* The queue has another spool now, or none (NULL): loads what is active in it, and stores what is active. */
void intake_attach(struct intake *in, struct spool *spool);
struct intake *intake_free(struct intake *in);
DEFINE_CLEANUP(struct intake, intake_free)

/* Queues stale markers for series that disappeared, then the samples of the batch. On return, all of it is
 * on disk, or in memory if the disk fails. -ENOMEM: the samples are counted as dropped. */
MUST_USE int intake_publish(struct intake *in, const struct batch *b, int64_t now_ms);
/* Queues stale markers for all series of a scorer. */
MUST_USE int intake_withdraw(struct intake *in, struct str score_name, int64_t at_ms, int64_t now_ms);
/* Queues the program's own metrics. */
MUST_USE int intake_metrics(struct intake *in, const struct metrics *m, int64_t at_ms, int64_t now_ms);
/* Queues stale markers for series of the previous run that have not come back within the grace period. */
void intake_grace(struct intake *in, int64_t now_ms);
/* A clean stop: queues stale markers for every active series. */
void intake_stop(struct intake *in, int64_t now_ms);
/* Type and help by name; valid as long as the intake. */
const struct families *intake_families(const struct intake *in);
/* The number of active series. */
size_t intake_series(const struct intake *in);

#endif
