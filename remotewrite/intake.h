/* From batches to records: knows each scorer's series, keeps their frames, writes stale markers. Sender thread. */
#ifndef DS_REMOTEWRITE_INTAKE_H
#define DS_REMOTEWRITE_INTAKE_H

#include "remotewrite/labels.h"
#include "remotewrite/queue.h"

struct intake;

enum { INTAKE_GRACE_MS = 5 * 60 * 1000 };

/* Loads what was alive when the agent last ran. spool may be NULL. Nothing is owned. -ENOMEM. */
MUST_USE int intake_new(struct intake **ret, const struct rw_endpoint_config *c, struct queue *q,
                        struct spool *spool);
struct intake *intake_free(struct intake *in);
DEFINE_CLEANUP(struct intake, intake_free)

/* A scorer's new scores: markers for series that are not there any more, then the samples. Everything is on disk when it
 * returns, or in memory where the disk fails. -ENOMEM: the samples are counted as dropped. */
MUST_USE int intake_publish(struct intake *in, const struct batch *b, int64_t now_ms);
/* Markers for all series of a scorer. */
MUST_USE int intake_withdraw(struct intake *in, struct str score_name, int64_t at_ms, int64_t now_ms);
/* The agent's own metrics as text 0.0.4: lines `name{...} value`. */
MUST_USE int intake_text(struct intake *in, struct str text, int64_t at_ms, int64_t now_ms);
/* Markers for what was alive before a crash and has not come back within the grace. */
void intake_grace(struct intake *in, int64_t now_ms);
/* A clean stop: markers for everything. */
void intake_stop(struct intake *in, int64_t now_ms);
/* Series alive; bytes held. */
size_t intake_series(const struct intake *in);
size_t intake_memory(const struct intake *in);

#endif
