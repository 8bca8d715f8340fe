/* Turns batches into records, and writes stale markers. Endpoint's thread. A scorer's active series are
 * handed over to the queue before their first sample, so that they get stale markers after a crash. */
#pragma once

#include "exporter/base/clock.h"
#include "exporter/metric/batch.h"
#include "exporter/metric/metrics.h"
#include "remotewrite/labels.h"
#include "remotewrite/queue.h"

struct intake;

enum { INTAKE_GRACE_MS = 5 * 60 * 1000 };

/* Nothing is owned. */
struct intake *intake_new(const struct rw_endpoint_config *c, struct queue *q);
/* The queue has opened a spool: loads what was active before, and stores what is. If scorers have had batches
 * by then, queues stale markers for their series of the previous run that are gone. */
void intake_attach(struct intake *in, int64_t at_ms);
/* Likewise while another agent leads, whose series they may be: without markers. All that is stored there
 * stays, for who opens the folder next to end what is gone. Includes intake_resume(). */
void intake_attach_standby(struct intake *in);
struct intake *intake_free(struct intake *in);
/* From now on, this configuration counts. intake_renew() follows for each scorer. */
void intake_configure(struct intake *in, const struct rw_endpoint_config *c);

/* Some of what these take is queued only by intake_commit(), so that many batches share a sync. */

/* Takes the samples of a batch, and stale markers for series that disappeared. at_ms: the batch's own time,
 * or a later one if it is sent again. */
void intake_publish(struct intake *in, struct batch *b, int64_t at_ms);
/* The current batch of a scorer, after intake_configure() or for a new endpoint: takes samples of those
 * series only that have other labels than before, or that are new, and stale markers for labels that are
 * gone. */
void intake_renew(struct intake *in, struct batch *b, int64_t at_ms);
/* Stale markers for all series of a scorer. */
void intake_withdraw(struct intake *in, struct str score_name, int64_t at_ms);
/* The program's own metrics. */
void intake_metrics(struct intake *in, const struct metrics *m, int64_t at_ms);
/* All that was taken is then on disk, or in memory if that fails; what cannot be queued counts as dropped. */
void intake_commit(struct intake *in);

/* Treats all series taken so far as those of a previous run, as another agent may have led since. */
void intake_resume(struct intake *in);
/* Queues stale markers for series of the previous run that are not back in INTAKE_GRACE_MS on `now`, and for
 * the program's own metrics once the configuration does not send them. */
void intake_grace(struct intake *in, mono_ms now, int64_t at_ms);
/* A clean stop: queues stale markers for every active series. */
void intake_stop(struct intake *in, int64_t now_ms);
/* Type and help by name; valid as long as the intake. */
const struct families *intake_families(const struct intake *in);
/* Forgets scorers that have ended, as queue_forget_lanes() does. */
void intake_forget(struct intake *in, mono_ms now, int64_t wall_ms);
/* The number of active series. */
size_t intake_series(const struct intake *in);
