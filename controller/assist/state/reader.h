/* Reads from the hub what a request needs when it comes: lists, page by page, and one ManifestWork. Nothing
 * is kept. Between requests one object of each kind is listed every half a minute, so that the page, the
 * gauges, /readyz and the log say what cannot be read before somebody asks for it.
 *
 * Rights: list on all kinds of snapshot.h, in all namespaces, and get on the ManifestWork
 * dynamic-scoring-config-manifestwork. */
#ifndef DS_ASSIST_STATE_READER_H
#define DS_ASSIST_STATE_READER_H

#include "controller/assist/api/operation.h"
#include "controller/assist/rules/snapshot.h"
#include "controller/kube/client.h"
#include "exporter/base/loop.h"
#include "exporter/metric/metrics.h"

struct reader;

/* The status of a request that failed because the API server answered so. */
unsigned reader_status(enum kube_verdict verdict);

enum { READER_MAX_READS = 16 }; /* at once; further ones end with 503 */

#define KIND_BIT(kind) (1u << (kind))

/* What to read. The strings must live until `done`. */
struct reader_query {
    unsigned kinds;             /* of KIND_BIT() */
    const char *namespace;      /* of all but ManagedClusters and scores; NULL: all */
    const char *cluster;        /* the only one of which ManagedClusters and scores are read; NULL: all */
    const char *score;          /* name of the scores; NULL: all */
    const char *label_selector; /* NULL: that of the kind */
    bool wants_work;            /* the ManifestWork that the hub's controller writes for the cluster */
};

/* `s` is owned by the callee; NULL after a failure. May free anything but the reader. */
typedef void (*reader_done_fn)(void *arg, struct snapshot *s, const struct objection *failure);

struct reader *reader_new(struct loop *loop, struct kube *k);
/* Reads under way end with 503. Takes NULL, returns NULL. */
struct reader *reader_free(struct reader *r);
DEFINE_CLEANUP(struct reader, reader_free)

/* Ends with `done`, now or within a minute. A kind that is not installed is an empty list; whatever else
 * cannot be listed is a failure. */
void reader_read(struct reader *r, const struct reader_query *q, reader_done_fn done, void *arg);
/* Reads, has the answer filled on a worker's thread, and ends the call. */
void reader_answer(struct reader *r, struct call *c, const struct reader_query *q,
                   void (*fill)(struct listing *l, const struct snapshot *hub));

/* Whether each kind has been listed once, or is not installed. */
bool reader_is_synced(const struct reader *r);
/* Why a kind could not be listed the last time; NULL if it could. */
const char *reader_trouble(const struct reader *r, enum kind kind);
/* Sets the gauges kubernetes_up and kubernetes_last_answer_timestamp_seconds. Before each scrape. */
void reader_set_metrics(const struct reader *r, struct metrics *m);

#endif
