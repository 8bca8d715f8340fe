/* Reads the hub: page by page, when a request comes; nothing is kept. On the loop.
 *
 * Between requests one object of each kind is listed every half a minute, so that the page, the gauges,
 * /readyz and the log say what cannot be read before somebody asks for it. */
#pragma once

#include "controller/assist/kind.h"
#include "controller/kube/verdict.h"

#include <stdbool.h>

struct api_error;
struct kube;
struct loop;
struct metrics;
struct snapshot;
struct snapshot_reader;

/* The status of a request that failed because the API server answered so. */
unsigned reader_status(enum kube_verdict verdict);

enum { READER_MAX_READS = 16 }; /* at once; further ones end with 503 */

/* What to read. The strings must live until `done`. */
struct reader_query {
    unsigned kinds;             /* of KIND_BIT() */
    const char *namespace;      /* of all but ManagedClusters and scores; NULL: all */
    const char *cluster;        /* the only one of which ManagedClusters and scores are read; NULL: all */
    const char *score;          /* name of the scores; NULL: all */
    const char *label_selector; /* NULL: that of the kind */
};

/* `s` is owned by the callee; NULL after a failure. May free anything but the reader. */
typedef void (*reader_done_fn)(void *arg, struct snapshot *s, const struct api_error *failure);

struct snapshot_reader *reader_new(struct loop *loop, struct kube *k);
/* Reads under way end with 503. Takes NULL, returns NULL. */
struct snapshot_reader *reader_free(struct snapshot_reader *r);

/* Ends with `done`, now or within a minute. A kind that is not installed is an empty list; whatever else
 * cannot be listed is a failure. */
void reader_read(struct snapshot_reader *r, const struct reader_query *q, reader_done_fn done, void *arg);

/* Whether each kind has been listed once, or is not installed. */
bool reader_is_synced(const struct snapshot_reader *r);
/* Why a kind could not be listed the last time, or that it has not been yet; NULL if it was. */
const char *reader_error(const struct snapshot_reader *r, enum kind kind);
/* Sets the gauges kubernetes_up and kubernetes_last_answer_timestamp_seconds. Before each scrape. */
void reader_set_metrics(const struct snapshot_reader *r, struct metrics *m);
